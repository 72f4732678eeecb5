import { durationText } from '../../../core/duration.ts'
import { useLive } from '../../api/live.ts'
import { may } from '../../app/session.ts'
import { Empty } from '../../components/notices.tsx'
import type { Candidate, CallSearch } from './search.ts'

const shownLength = 80
/** Topics by the end of their names, with what they hold for people. */
const keptIn = [
  ['analytics.calls', 'calls'],
  ['webhooks.dead-letters', 'dead letters'],
  ['webhooks.deliveries', 'the ledger'],
] as const

/** Says that nothing is known, what was looked for, and how far. */
export function NotFound({
  text,
  candidates,
  search,
}: {
  text: string
  candidates: readonly Candidate[]
  search: CallSearch
}) {
  const kinds = new Set(candidates.map(({ kind }) => kind))
  const shown = text.length > shownLength ? `${text.slice(0, shownLength)}…` : text
  return (
    <Empty title={`Nothing is known of “${shown}”.`}>
      <div role="status" class="find-looked">
        <ul>
          {kinds.has('call') && <li>No call has this messageId.</li>}
          {kinds.has('delivery') && <li>No call has a delivery with this id.</li>}
          {kinds.has('user') && <li>No call is of a user with this id.</li>}
          {!may('operator') && <li>Users were not looked for: that takes the role operator.</li>}
        </ul>
        <Kept />
        <p>A call can be found as soon as it is in Kafka. One that no collector has accepted is not there.</p>
      </div>
      <button type="button" class="button" disabled={search.isRunning} onClick={search.reload}>
        {search.isRunning ? 'Looking …' : 'Look again'}
      </button>
    </Empty>
  )
}

/** How far back a search can look. */
function Kept() {
  const { data } = useLive('GET /infrastructure', {}, 0)
  const kept = keptIn.flatMap(([name, what]) => {
    const ms = data?.topics.find((topic) => topic.name.endsWith(name))?.retentionMs
    return typeof ms === 'number' && ms > 0 ? [`${what} for ${durationText(ms)}`] : []
  })
  return (
    <p>
      Every call, retry, dead letter and record of the ledger was looked through that Kafka holds now, as far
      back as the index of messages reaches (MESSAGE_INDEX_MB).
      {kept.length > 0 && ` It keeps ${kept.join(', ')}.`}
    </p>
  )
}
