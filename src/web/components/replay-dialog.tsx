import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiFailure, request, requestWithProgress } from '../api/request.ts'
import type { DryRunAnswer } from '../api/routes.ts'
import { ActionDialog } from './dialog.tsx'
import { Checkbox, Select, TextField } from './fields.tsx'
import { countOf, countText } from './figures.ts'
import { Failure, Progress, say } from './notices.tsx'

const kinds = [
  ['held', 'Held', 'by a pause'],
  ['skipped', 'Skipped', 'never planned for it, for example while it was disabled'],
  ['failed', 'Failed', 'dead letters'],
  ['delivered', 'Delivered', 'again, under delivery ids of their own'],
] as const
type Kind = (typeof kinds)[number][0]

const begins = [
  ['1h', 'an hour ago'],
  ['6h', '6 hours ago'],
  ['1d', 'a day ago'],
  ['7d', '7 days ago'],
  ['other', 'another time …'],
] as const

interface Looking {
  looked: number
  total: number
}

/** Sends calls of the past again: first says how many these are, then starts a job that consoles run. */
export function ReplayDialog({ id, close }: { id: string; close: () => void }) {
  const [begin, setBegin] = useState<(typeof begins)[number][0]>('1h')
  const [since, setSince] = useState('')
  const [until, setUntil] = useState('')
  const [only, setOnly] = useState<readonly Kind[]>(['held', 'skipped', 'failed'])
  const [rate, setRate] = useState('')
  const terms = {
    destinationId: id,
    since: begin === 'other' ? since : begin,
    ...(until !== '' && { until }),
    only,
    ...(rate !== '' && { rate: Number(rate) }),
  }
  const act = async () => {
    const { data } = await request('POST /replays', { body: terms })
    say(`Replay ${data.id} to ${id} is running`)
  }
  return (
    <ActionDialog
      title={`Replay calls to ${id}?`}
      action={`Start the replay to ${id}`}
      act={act}
      close={close}
    >
      <p>Calls that Kafka still keeps are sent by today’s settings, in order for each user.</p>
      <Select label="Calls that came in since" value={begin} choices={begins} change={setBegin} />
      {begin === 'other' && (
        <TextField
          label="Since"
          value={since}
          change={setSince}
          placeholder="2026-01-31T10:00:00Z"
          hint="An ISO time, UTC unless it says otherwise, or a duration ago such as 3h."
        />
      )}
      <TextField
        label="Until"
        value={until}
        change={setUntil}
        placeholder="now"
        hint="Now unless given: an ISO time, or a duration ago such as 1h."
      />
      <fieldset>
        <legend>Only those that were</legend>
        {kinds.map(([kind, label, hint]) => (
          <Checkbox
            key={kind}
            label={label}
            hint={hint}
            checked={only.includes(kind)}
            change={(isOn) => setOnly(isOn ? [...only, kind] : only.filter((each) => each !== kind))}
          />
        ))}
      </fieldset>
      <TextField label="At most, per second" value={rate} change={setRate} placeholder="no limit" />
      <DryRun terms={terms} />
    </ActionDialog>
  )
}

/** What the replay would send. Asked for by a button: it reads as much as the replay itself. */
function DryRun({ terms }: { terms: object }) {
  const [looking, setLooking] = useState<Looking | null>(null)
  const [found, setFound] = useState<DryRunAnswer | null>(null)
  const [failure, setFailure] = useState<ApiFailure | null>(null)
  const ending = useRef(new AbortController())
  const key = JSON.stringify(terms)
  useEffect(() => {
    setFound(null)
    setFailure(null)
    return () => {
      ending.current.abort()
      ending.current = new AbortController()
      setLooking(null)
    }
  }, [key])
  const run = async () => {
    const { signal } = ending.current
    setFound(null)
    setFailure(null)
    setLooking({ looked: 0, total: 0 })
    try {
      const answer = await requestWithProgress(
        'POST /replays/dry-run',
        { body: terms, signal },
        (state: Looking) => {
          if (!signal.aborted) setLooking(state)
        },
      )
      if (!signal.aborted) setFound(answer)
    } catch (error) {
      if (signal.aborted) return
      if (!(error instanceof ApiFailure)) throw error
      setFailure(error)
    } finally {
      if (!signal.aborted) setLooking(null)
    }
  }
  return (
    <div class="dry-run" aria-live="polite">
      {looking ? (
        <Progress
          label="Looked at"
          done={looking.looked}
          total={looking.total === 0 ? null : looking.total}
        />
      ) : (
        <button type="button" class="button" onClick={run}>
          How many would that be?
        </button>
      )}
      {failure && <Failure failure={failure} />}
      {found && <Counts found={found} />}
    </div>
  )
}

function Counts({ found: { counts, erased, unfinished, keptSince } }: { found: DryRunAnswer }) {
  const sum = kinds.reduce((total, [kind]) => total + counts[kind], 0)
  const parts = kinds.flatMap(([kind]) => (counts[kind] > 0 ? [`${countText(counts[kind])} ${kind}`] : []))
  return (
    <div class="dry-run-found">
      <p>
        <strong>{countOf(sum, 'call')}</strong>
        {parts.length > 0 && `: ${parts.join(', ')}`}.
      </p>
      {erased > 0 && <p class="faint">{countOf(erased, 'call')} of deleted users are left out.</p>}
      {unfinished > 0 && (
        <p class="faint">{countOf(unfinished, 'call')} are not finished yet; the replay waits for them.</p>
      )}
      {keptSince !== null && (
        <p class="fault">Kafka keeps calls since {keptSince} only: what came before is missing.</p>
      )}
    </div>
  )
}
