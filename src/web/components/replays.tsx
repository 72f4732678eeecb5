import { useState } from 'preact/hooks'
import { useLive, type Live } from '../api/live.ts'
import { ApiFailure, request } from '../api/request.ts'
import type { ListPage, ReplayAnswer, ReplayStatusAnswer } from '../api/routes.ts'
import { may } from '../app/session.ts'
import { ActionDialog } from './dialog.tsx'
import { countOf, countText, wordsOf } from './figures.ts'
import { Progress, say } from './notices.tsx'
import { Badge, type Tone, MessageLink } from './text.tsx'
import { Ago } from './time.tsx'

const isUnfinished = ({ state }: Pick<ReplayAnswer, 'state'>): boolean =>
  state === 'running' || state === 'paused'

/** The newest replays, and all that are not finished, with their progress. @param live them, the newest first */
export function Replays({ live, max }: { live: Live<ListPage<ReplayAnswer>>; max: number }) {
  const replays = live.data?.data ?? []
  const shown = replays.filter((job, index) => index < max || isUnfinished(job))
  if (shown.length === 0) return null
  return (
    <section class="section" aria-labelledby="replays">
      <div class="section-head">
        <h2 id="replays">Replays</h2>
        {replays.length > shown.length && <p>the newest {shown.length}</p>}
      </div>
      <ul class="rows card">
        {shown.map((job) => (
          <li key={job.id}>
            <Replay job={job} reload={live.reload} />
          </li>
        ))}
      </ul>
    </section>
  )
}

function Replay({ job, reload }: { job: ReplayAnswer; reload: () => void }) {
  const live = useLive('GET /replays/{id}', { id: job.id }, isUnfinished(job) ? 2_000 : 0)
  const turned = () => {
    reload()
    live.reload()
  }
  const state = live.data?.state ?? job.state
  return (
    <>
      <ReplayRow job={job} status={live.data} turned={turned} />
      <p class="hidden" role="status">
        Replay {job.id}: {state}
      </p>
    </>
  )
}

const tones: Record<ReplayAnswer['state'], Tone> = {
  running: 'good',
  paused: 'warn',
  finished: 'plain',
  cancelled: 'plain',
}

type Turn = 'pause' | 'resume' | 'cancel'
type Choice = NonNullable<ReplayAnswer['deadLetters']>
/** Of what dead letters are chosen by. */
const maxWords = 6

/** A replay, how far it is, and what can be done with it while it is unfinished. */
export function ReplayRow({
  job,
  status,
  turned,
}: {
  job: ReplayAnswer
  /** Null while it is not known. */
  status: ReplayStatusAnswer | null
  /** It was paused, resumed or cancelled. */
  turned: () => void
}) {
  const [isCancelling, setCancelling] = useState(false)
  const turn = async (to: Turn) => {
    await request(`POST /replays/{id}/${to}`, { id: job.id })
    say(`Replay ${job.id}: ${to === 'cancel' ? 'cancelled' : to === 'pause' ? 'paused' : 'goes on'}`)
    turned()
  }
  const turnAtOnce = async (to: Turn) => {
    try {
      await turn(to)
    } catch (error) {
      if (!(error instanceof ApiFailure)) throw error
      say(`Replay ${job.id}: ${error.message}`, 'bad')
      turned()
    }
  }
  const state = status?.state ?? job.state
  const isUnfinished = state === 'running' || state === 'paused'
  return (
    <>
      <div class="row-main">
        <p>
          <Badge tone={tones[state]} text={state} /> <span class="id">{job.id}</span>
        </p>
        <p class="faint">
          <What job={job} />, started <Ago at={job.createdAt} />
          {status && <>; {countOf(status.sent, job.deadLetters ? 'dead letter' : 'call')} sent</>}
          {status && status.totals.refused > 0 && `; ${countText(status.totals.refused)} could not be sent`}
          {status?.waitsFor && `; waits, because the destination is ${status.waitsFor}`}
        </p>
        {isUnfinished && status && <Looked status={status} />}
      </div>
      {isUnfinished && may('operator') && (
        <div class="row-actions">
          <button
            type="button"
            class="button button-small"
            onClick={() => turnAtOnce(state === 'paused' ? 'resume' : 'pause')}
          >
            {state === 'paused' ? 'Go on' : 'Pause'}
          </button>
          <button type="button" class="button button-small" onClick={() => setCancelling(true)}>
            Cancel
          </button>
        </div>
      )}
      {isCancelling && (
        <ActionDialog
          title={`Cancel replay ${job.id}?`}
          action="Cancel the replay"
          isDestructive
          act={() => turn('cancel')}
          close={() => setCancelling(false)}
        >
          <p>It ends for good. What it sent is delivered all the same.</p>
        </ActionDialog>
      )}
    </>
  )
}

function What({ job: { deadLetters, messageId, pauseId, only } }: { job: ReplayAnswer }) {
  if (deadLetters !== null) return <span class="foreign">{choiceText(deadLetters)}</span>
  if (messageId !== null)
    return (
      <>
        one call, <MessageLink messageId={messageId} />
      </>
    )
  return <>{pauseId === null ? only.join(', ') : 'what a pause held'}</>
}

/** `dead letters: crm, 503`. */
function choiceText({ ids, reason, destination, status, kinds }: Choice): string {
  if (ids !== null) return countOf(ids.length, 'dead letter')
  const codes = [
    ...(reason ?? []),
    ...(status ?? []),
    ...(kinds ?? []).map((kind) => kind.status ?? 'no attempt'),
  ]
  const destinations = [...(destination ?? []), ...(kinds ?? []).flatMap((kind) => kind.destinationId ?? [])]
  const words = [...new Set([...destinations, ...codes.map((code) => wordsOf(String(code)))])]
  const shown = words.slice(0, maxWords).join(', ') + (words.length > maxWords ? ', …' : '')
  return words.length === 0 ? 'dead letters' : `dead letters: ${shown}`
}

function Looked({ status: { totals, toLook } }: { status: ReplayStatusAnswer }) {
  return (
    <Progress
      label="Looked at"
      done={totals.looked}
      total={toLook === null ? null : Math.max(toLook, totals.looked)}
    />
  )
}
