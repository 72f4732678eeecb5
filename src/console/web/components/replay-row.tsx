import { useState } from 'preact/hooks'
import { request } from '../api/request.ts'
import type { ReplayAnswer, ReplayStatusAnswer } from '../api/routes.ts'
import { may } from '../app/session.ts'
import { Badge, type Tone } from './badge.tsx'
import { ActionDialog } from './dialog.tsx'
import { countOf } from './figures.ts'
import { Progress } from './progress.tsx'
import { MessageLink } from './text/message-link.tsx'
import { Ago } from './time.tsx'
import { say } from './toast.tsx'

const tones: Record<ReplayAnswer['state'], Tone> = {
  running: 'good',
  paused: 'warn',
  finished: 'plain',
  cancelled: 'plain',
}

type Turn = 'pause' | 'resume' | 'cancel'

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
          {status && <>; {countOf(status.sent, 'call')} sent</>}
          {status?.waitsFor && `; waits, because the destination is ${status.waitsFor}`}
        </p>
        {isUnfinished && status && <Looked status={status} />}
      </div>
      {isUnfinished && may('operator') && (
        <div class="row-actions">
          <button
            type="button"
            class="button button-small"
            onClick={() => turn(state === 'paused' ? 'resume' : 'pause')}
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

function What({ job: { messageId, pauseId, only } }: { job: ReplayAnswer }) {
  if (messageId !== null)
    return (
      <>
        one call, <MessageLink messageId={messageId} />
      </>
    )
  return <>{pauseId === null ? only.join(', ') : 'what a pause held'}</>
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
