import { Badge } from '../../components/badge.tsx'
import { absoluteText } from '../../components/figures.ts'
import { Ago } from '../../components/time.tsx'
import { DeadLetterLink } from './dead-letter-link.tsx'
import { entriesOf, waitText, type TimelineEntry } from './entries.ts'
import { receivedAt, type CallCopy } from './words.ts'

/** Everything that is recorded of a copy, in order, as a list. */
export function Timeline({ copy }: { copy: CallCopy }) {
  const startMs = receivedAt(copy)
  return (
    <section class="section" aria-labelledby="timeline-title">
      <div class="section-head">
        <h2 id="timeline-title">Step by step</h2>
        {startMs !== null && <p>times since it was received; point at one for the time itself</p>}
      </div>
      <ol class="timeline card" aria-labelledby="timeline-title">
        {entriesOf(copy, startMs).map((entry, index) => (
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
      </ol>
    </section>
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
