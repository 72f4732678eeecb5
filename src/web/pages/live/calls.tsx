import { useEffect, useMemo, useState } from 'preact/hooks'
import { query, setQuery } from '../../app/address.ts'
import { Badge } from '../../components/badge.tsx'
import { Choice } from '../../components/forms/choice.tsx'
import { countOf, countText } from '../../components/figures.ts'
import { Icon } from '../../components/icon.tsx'
import { Empty, Failure } from '../../components/notices.tsx'
import { CallRow } from './call-row.tsx'
import { maxHeld, Tail, type TailFilters, type TailState } from './tail.ts'

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
  return isPaused ? <Badge tone="warn" text="paused" /> : <Badge tone="good" text="live" />
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
