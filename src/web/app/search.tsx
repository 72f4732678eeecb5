import { useEffect, useRef, useState } from 'preact/hooks'
import { linkTo, pathTo } from '../../console/page-paths.ts'
import { ApiFailure, request } from '../api/request.ts'
import { Icon, type IconName } from '../components/icon.tsx'
import { useSettled } from '../components/settled.ts'
import { go, navigation } from './address.ts'
import { isLimited } from './session.ts'

interface Suggestion {
  label: string
  detail: string
  icon: IconName
  href: string
}

/** What was found for a text. */
interface Named {
  text: string
  found: readonly Suggestion[]
}

/** Preact's types know a combobox with a `datalist` only. */
const combobox: object = { type: 'search', role: 'combobox' }
const maxSuggestions = 8

/** Finds pages, and destinations, sources, audiences and traits by id or name, and leads to a dead letter and to the search for calls. `/` focuses it from anywhere; arrow keys choose, Enter goes there. */
export function Search() {
  const input = useRef<HTMLInputElement>(null)
  const [text, setText] = useState('')
  const [named, setNamed] = useState<Named>({ text: '', found: [] })
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

  const wanted = useSettled(text.trim())
  useEffect(() => {
    let isOver = false
    if (wanted !== '')
      void namedLike(wanted).then((found) => {
        if (!isOver) setNamed({ text: wanted, found })
      })
    return () => void (isOver = true)
  }, [wanted])
  const found = suggestionsFor(text.trim(), named.found)
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
  const submit = async (event: Event) => {
    event.preventDefault()
    const typed = text.trim()
    if (named.text === typed || chosen > 0) return take(found[chosen])
    // Enter came before the API was asked.
    take(suggestionsFor(typed, await namedLike(typed))[0])
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
  const here = pages().filter(({ label }) => label.toLowerCase().startsWith(wanted))
  return [
    ...[...known.filter(matches), ...here].slice(0, maxSuggestions),
    ...deadLetterSuggestion(text),
    callSuggestion(text),
  ]
}

const pages = (): Suggestion[] =>
  navigation
    .filter(({ isOfAll }) => !isOfAll || !isLimited())
    .map(({ page, label, icon }) => ({ label, detail: 'page', icon, href: pathTo(page) }))

/** As the API names one: its partition and its offset. */
const deadLetterSuggestion = (id: string): Suggestion[] =>
  /^\d+-\d+$/.test(id)
    ? [{ label: `Dead letter ${id}`, detail: '', icon: 'letters', href: pathTo('deadLetter', { id }) }]
    : []

/** Whatever is typed may be the id of a call, of a delivery or of a user. */
const callSuggestion = (text: string): Suggestion => ({
  label: `Find a call “${text}”`,
  detail: '',
  icon: 'find',
  href: linkTo('find', { q: text }),
})

const settings = [
  { route: 'GET /destinations', page: 'destination', icon: 'destinations', kind: '' },
  { route: 'GET /sources', page: 'source', icon: 'sources', kind: 'source ' },
  { route: 'GET /audiences', page: 'audience', icon: 'people', kind: 'audience ' },
  { route: 'GET /traits', page: 'trait', icon: 'people', kind: 'trait ' },
] as const

/** The first whose id or name contains it, of each kind; of what cannot be read, none. */
async function namedLike(text: string): Promise<Suggestion[]> {
  const each = await Promise.all(
    settings.map(async ({ route, page, icon, kind }) => {
      try {
        const { data } = await request(route, { query: { q: text, limit: maxSuggestions } })
        return data.data.map(({ id, name }) => ({
          ...{ label: name, detail: `${kind}${id}`, icon, href: pathTo(page, { id }) },
        }))
      } catch (error) {
        if (!(error instanceof ApiFailure)) throw error
        return []
      }
    }),
  )
  return each.flat()
}
