import { useState } from 'preact/hooks'
import { pathTo } from '../../../console/page-paths.ts'
import { may } from '../../app/session.ts'
import { absoluteText, countOf } from '../../components/figures.ts'
import { Folded } from '../../components/folded.tsx'
import { Badge } from '../../components/text.tsx'
import { Ago } from '../../components/time.tsx'
import { entriesOf, receivedAt, waitText, type CallCopy, type TimelineEntry } from './words.ts'

/** Leads to a dead letter, for those who may see its contents. */
export function DeadLetterLink({ id }: { id: string | null | undefined }) {
  if (id === null || id === undefined) return null
  if (!may('operator')) return <span class="id">{id}</span>
  return (
    <a class="id" href={pathTo('deadLetter', { id })}>
      {id}
    </a>
  )
}

/** Everything that is recorded of a copy, in order, when somebody asks for it: each destination has its own steps beside it. */
export function AllSteps({ copy }: { copy: CallCopy }) {
  const startMs = receivedAt(copy)
  const entries = entriesOf(copy, startMs)
  return (
    <Folded title="All steps" hint={`${countOf(entries.length, 'step')} of all destinations, in order`}>
      <ol class="timeline card" aria-label="All steps">
        <Steps entries={entries} startMs={startMs} />
      </ol>
    </Folded>
  )
}

/** The steps of one delivery. */
export function StepsOf({ copy, deliveryId }: { copy: CallCopy; deliveryId: string }) {
  const [isOpen, setOpen] = useState(false)
  const startMs = receivedAt(copy)
  const entries = entriesOf(copy, startMs).filter((entry) => entry.deliveryId === deliveryId)
  if (entries.length === 0) return null
  return (
    <details class="own-steps" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{countOf(entries.length, 'step')}</summary>
      {isOpen && (
        <ol class="timeline">
          <Steps entries={entries.map((entry) => ({ ...entry, who: null }))} startMs={startMs} />
        </ol>
      )}
    </details>
  )
}

function Steps({ entries, startMs }: { entries: readonly TimelineEntry[]; startMs: number | null }) {
  return (
    <>
      {entries.map((entry, index) => (
        <li key={index}>
          <span class="timeline-at numbers faint">
            {entry.at !== null && (
              <time dateTime={new Date(entry.at).toISOString()} title={absoluteText(entry.at)}>
                {startMs === null ? absoluteText(entry.at).slice(11, 23) : sinceText(entry.at - startMs)}
              </time>
            )}
          </span>
          <Badge tone={entry.tone} text={entry.name} />
          <span class="timeline-text">
            {entry.who !== null && <strong>{entry.who}</strong>} <span class="foreign">{entry.text}</span>
            <Details entry={entry} />
          </span>
        </li>
      ))}
    </>
  )
}

function Details({ entry: { dueAt, deadLetterId, waitedMs, isRepeat } }: { entry: TimelineEntry }) {
  return (
    <>
      {dueAt && (
        <>
          , due <Ago at={dueAt} />
        </>
      )}
      {typeof waitedMs === 'number' && <span class="faint">, waited {waitText(waitedMs)}</span>}
      {deadLetterId && (
        <>
          {' '}
          <DeadLetterLink id={deadLetterId} />
        </>
      )}
      {isRepeat && (
        <span class="faint"> – by a process that ended before this counted: it was done again</span>
      )}
    </>
  )
}

/** `+12 ms`. Clocks of several machines: what came before may seem to come later. */
const sinceText = (ms: number): string => `${ms < 0 ? '−' : '+'}${waitText(Math.abs(ms))}`
