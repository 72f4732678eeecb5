import { useState } from 'preact/hooks'
import { request } from '../api/request.ts'
import type { ReplayAnswer, ReplayStatusAnswer } from '../api/routes.ts'
import { may } from '../app/session.ts'
import { Badge, type Tone } from './badge.tsx'
import { ActionDialog } from './dialog.tsx'
import { countOf, countText, wordsOf } from './figures.ts'
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
