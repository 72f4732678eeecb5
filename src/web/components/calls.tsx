import { useEffect, useMemo, useState } from 'preact/hooks'
import { query, setQuery } from '../app/address.ts'
import { missingParts } from '../app/parts-missing.tsx'
import { Choice } from './fields.tsx'
import { countOf, countText, absoluteText } from './figures.ts'
import { Icon } from './icon.tsx'
import { Empty, Failure } from './notices.tsx'
import { Badge, LongText, MessageLink } from './text.tsx'
import { maxHeld, Tail, type TailFilters, type TailState, type TailedCall } from './tail.ts'

/** The tail of one source. Another source or filter makes another one. */
export function Calls({ source, filters }: { source: string; filters: TailFilters }) {
  const [tail, setTail] = useState<Tail | null>(null)
  useEffect(() => {
    const begun = new Tail(source, filters)
    setTail(begun)
    return () => begun.close()
  }, [])
  return tail && <Shown tail={tail} />
}

const forms = [
  ['readable', 'Readable'],
  ['raw', 'Raw'],
] as const

function Shown({ tail }: { tail: Tail }) {
  const state = tail.state.value
  const { calls, is, isPaused, failure } = state
  const isRaw = query.value.get('form') === 'raw'
  const rows = useMemo(
    () => calls.map((call) => <CallRow key={call.key} call={call} isRaw={isRaw} />),
    [calls, isRaw],
  )
  return (
    <>
      <div class="live-bar">
        <span role="status">
          <StateBadge state={state} />
        </span>
        <Choice
          label="Form"
          value={isRaw ? 'raw' : 'readable'}
          choices={forms}
          choose={(form) => setQuery({ form: form === 'raw' ? form : null })}
        />
        <button type="button" class="button" onClick={() => tail.pause(!isPaused)}>
          <Icon name={isPaused ? 'play' : 'pause'} />
          {isPaused ? 'Go on' : 'Pause'}
        </button>
        <button type="button" class="button button-quiet" onClick={() => tail.clear()}>
          Clear
        </button>
        <p class="live-counts numbers">{countsText(state)}</p>
      </div>
      {failure && is === 'ended' && <Failure failure={failure} />}
      {calls.length > 0 ? (
        <ol class="card calls" aria-label="Calls, the newest first">
          {rows}
        </ol>
      ) : (
        is === 'open' && (
          <Empty title="Waiting for calls …">
            <p>Those that come in from now on are shown here.</p>
          </Empty>
        )
      )}
    </>
  )
}

function StateBadge({ state: { is, isPaused, failure } }: { state: TailState }) {
  if (is === 'connecting') return <Badge tone="plain" text="connecting" />
  if (is === 'waiting')
    return <Badge tone="warn" text="interrupted, trying again" title={failure?.message ?? ''} />
  if (is === 'ended') return <Badge tone="bad" text="ended" />
  if (isPaused) return <Badge tone="warn" text="paused" />
  // It follows the source all the same: producers may write to Kafka themselves.
  if (missingParts.value.some(({ kind }) => kind === 'no_collector'))
    return <Badge tone="warn" text="live, without a collector" />
  return <Badge tone="good" text="live" />
}

/** What is shown, and what is not. */
function countsText({ calls, came, leftOut, shownPerSecond, whilePaused }: TailState): string {
  const parts = [countOf(came, 'call')]
  if (came > calls.length) parts.push(`the newest ${maxHeld} are held`)
  if (whilePaused > 0) parts.push(`${countText(whilePaused)} more while paused`)
  if (leftOut > 0) {
    const why =
      shownPerSecond === null ? 'this browser reads too slowly' : `at most ${shownPerSecond} a second are`
    parts.push(`sampled: ${countText(leftOut)} more were not shown, ${why}`)
  }
  return parts.join(' · ')
}

const rawLength = 400

/** A call on a line; all of it when somebody opens it. */
export function CallRow({ call, isRaw }: { call: TailedCall; isRaw: boolean }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <li class="call">
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>{isRaw ? <RawLine call={call} /> : <ReadableLine call={call} />}</summary>
        {isOpen && <LongText text={call.text} what="call" />}
      </details>
      {call.messageId !== '' && <MessageLink messageId={call.messageId} text="Timeline" />}
    </li>
  )
}

const RawLine = ({ call: { text } }: { call: TailedCall }) => (
  <code class="foreign cut">{text.slice(0, rawLength)}</code>
)

function ReadableLine({ call: { receivedAt, type, user, what, preview, fault } }: { call: TailedCall }) {
  const time = receivedAt === null ? null : absoluteText(Date.parse(receivedAt))
  return (
    <>
      <time class="numbers faint" {...(time && { dateTime: receivedAt!, title: time })}>
        {time?.slice(11, 23) ?? '–'}
      </time>
      <span class={`call-type call-${type}`}>{type}</span>
      <span class="foreign cut call-what">
        {what ?? ''}
        {fault !== null && <span class="is-bad">{fault}</span>}
      </span>
      <span class="id cut">{user ?? ''}</span>
      <code class="foreign cut faint call-preview">{preview}</code>
    </>
  )
}
