import { useState } from 'preact/hooks'
import { may } from '../../../app/session.ts'
import { useEvents } from '../../../components/events.ts'
import { countOf } from '../../../components/figures.ts'
import { Failure, Loading } from '../../../components/notices.tsx'
import { linesOf } from '../../../components/options.ts'
import { Picker } from '../../../components/picker.tsx'

interface PickEventsProps {
  sourceIds: readonly string[]
  /** A name a line, as the field beside it has them. */
  value: string
  change: (value: string) => void
}

/** Names of events are picked from those that came in at the sources. They are read when somebody asks for them. */
export function PickEvents({ sourceIds, value, change }: PickEventsProps) {
  const [isOpen, setOpen] = useState(false)
  if (!may('operator') || sourceIds.length === 0) return null
  return (
    <details class="form-more-part" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Pick from those that came in</summary>
      {isOpen && <Events sourceIds={sourceIds} value={value} change={change} />}
    </details>
  )
}

function Events({ sourceIds, value, change }: PickEventsProps) {
  const { events, failure } = useEvents(sourceIds, true)
  if (failure) return <Failure failure={failure} />
  if (events === null) return <Loading what="events" />
  if (events.length === 0) return <p class="faint">No track call of these sources came in yet.</p>
  // An event of several sources is one name.
  const calls = new Map<string, number>()
  for (const each of events) calls.set(each.name, (calls.get(each.name) ?? 0) + each.calls)
  return (
    <Picker
      label="Events that came in"
      choices={[...calls].map(([name, count]) => ({ value: name, text: name, hint: countOf(count, 'call') }))}
      chosen={linesOf(value).filter((name) => calls.has(name))}
      change={(chosen) => {
        const others = linesOf(value).filter((name) => !calls.has(name))
        change([...others, ...chosen].join('\n'))
      }}
    />
  )
}
