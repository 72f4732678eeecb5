import { useEffect, useRef, useState } from 'preact/hooks'
import { linkTo, pathTo } from '../../console/page-paths.ts'
import { ApiFailure, request } from '../api/request.ts'
import type { DestinationAnswer, ListPage } from '../api/routes.ts'
import { Icon, type IconName } from '../components/icon.tsx'
import { go } from './address.ts'

interface Suggestion {
  label: string
  detail: string
  icon: IconName
  href: string
}

/** Preact's types know a combobox with a `datalist` only. */
const combobox: object = { type: 'search', role: 'combobox' }
const maxSuggestions = 8
const maxPages = 10

/** Finds destinations by id or name, and leads to the search for calls. `/` focuses it from anywhere; arrow keys choose, Enter goes there. */
export function Search() {
  const input = useRef<HTMLInputElement>(null)
  const [text, setText] = useState('')
  const [known, setKnown] = useState<readonly Suggestion[]>([])
  const [isOpen, setOpen] = useState(false)
  const [chosen, setChosen] = useState(0)

  useEffect(() => {
    const focus = (event: KeyboardEvent) => {
      const isTyping =
        event.target instanceof HTMLElement && event.target.closest('input, textarea, select, dialog')
      if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || isTyping) return
      event.preventDefault()
      input.current!.focus()
      input.current!.select()
    }
    document.addEventListener('keydown', focus)
    return () => document.removeEventListener('keydown', focus)
  }, [])

  const found = suggestionsFor(text.trim(), known)
  const isShown = isOpen && text.trim() !== ''
  const leave = () => {
    setOpen(false)
    setText('')
    input.current!.blur()
  }
  const take = (suggestion: Suggestion | undefined) => {
    if (!suggestion) return
    leave()
    go(suggestion.href)
  }
  const onKey = (event: KeyboardEvent) => {
    if (event.key === 'Escape') leave()
    if (!['ArrowDown', 'ArrowUp'].includes(event.key) || found.length === 0) return
    event.preventDefault()
    setChosen((chosen + (event.key === 'ArrowDown' ? 1 : -1) + found.length) % found.length)
  }
  const submit = (event: Event) => {
    event.preventDefault()
    take(found[chosen])
  }

  return (
    <form class="search" role="search" onSubmit={submit}>
      <Icon name="find" />
      <input
        ref={input}
        {...combobox}
        aria-label="Search"
        aria-expanded={isShown}
        aria-controls="search-results"
        aria-autocomplete="list"
        aria-activedescendant={isShown && found.length > 0 ? `search-result-${chosen}` : undefined}
        placeholder="Search"
        autocomplete="off"
        spellcheck={false}
        value={text}
        onFocus={() => void allNamed().then(setKnown)}
        onBlur={() => setOpen(false)}
        onInput={(event) => {
          setText(event.currentTarget.value)
          setChosen(0)
          setOpen(true)
        }}
        onKeyDown={onKey}
      />
      <kbd aria-hidden="true">/</kbd>
      <ul id="search-results" class="search-results" role="listbox" aria-label="Results" hidden={!isShown}>
        {found.map((suggestion, index) => (
          <li
            key={suggestion.href}
            id={`search-result-${index}`}
            role="option"
            aria-selected={index === chosen}
            // Before the input loses the focus.
            onMouseDown={() => take(suggestion)}
          >
            <Icon name={suggestion.icon} />
            <span class="cut">{suggestion.label}</span>
            <span class="faint">{suggestion.detail}</span>
          </li>
        ))}
      </ul>
    </form>
  )
}

function suggestionsFor(text: string, known: readonly Suggestion[]): Suggestion[] {
  const wanted = text.toLowerCase()
  const matches = ({ label, detail }: Suggestion) => `${label}\n${detail}`.toLowerCase().includes(wanted)
  return [...known.filter(matches).slice(0, maxSuggestions), callSuggestion(text)]
}

/** Whatever is typed may be the id of a call, of a delivery or of a user. */
const callSuggestion = (text: string): Suggestion => ({
  label: `Find a call “${text}”`,
  detail: '',
  icon: 'find',
  href: linkTo('find', { q: text }),
})

/** All destinations; those that could be read, where reading fails. */
async function allNamed(): Promise<Suggestion[]> {
  const found: Suggestion[] = []
  try {
    let cursor: string | null = null
    for (let count = 0; count < maxPages; count++) {
      const page: ListPage<DestinationAnswer> = (
        await request('GET /destinations', { query: { limit: 200, cursor } })
      ).data
      for (const { id, name } of page.data)
        found.push({ label: name, detail: id, icon: 'destinations', href: pathTo('destination', { id }) })
      cursor = page.next
      if (cursor === null) break
    }
  } catch (error) {
    if (!(error instanceof ApiFailure)) throw error
  }
  return found
}
