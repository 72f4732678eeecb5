import { useEffect } from 'preact/hooks'
import { useLive } from '../../api/live.ts'
import type { MessageAnswer, ReplayStatusAnswer } from '../../api/routes.ts'
import { Loaded } from '../../components/loaded.tsx'
import { Note } from '../../components/notices.tsx'
import { ReplayRow } from '../../components/replay-row.tsx'

const lookEveryMs = 2_000
/** Until the life of the call has what the replay sent. */
const lookAgainMs = 500

/** The replay that was started here, until what it sent has come to its end. */
export function SentAgain({
  id,
  life,
  reload,
  isReloading,
}: {
  id: string
  life: MessageAnswer
  reload: () => void
  isReloading: boolean
}) {
  const live = useLive('GET /replays/{id}', { id }, lookEveryMs)
  const isOver = live.data !== null && live.data.state !== 'running' && live.data.state !== 'paused'
  const isKnown = life.copies.some(({ steps }) => steps.some(({ replay }) => replay === id))
  const isAwaited = isOver && live.data!.sent > 0 && !isKnown
  useEffect(() => {
    if (!isAwaited || isReloading) return
    const timer = window.setTimeout(reload, lookAgainMs)
    return () => window.clearTimeout(timer)
  }, [isAwaited, isReloading])
  return (
    <section class="section" aria-labelledby="again-title">
      <div class="section-head">
        <h2 id="again-title">Sent again</h2>
      </div>
      <Loaded live={live} what="the replay">
        {(status) => (
          <>
            <ul class="rows card">
              <li>
                <ReplayRow job={status} status={status} turned={live.reload} />
              </li>
            </ul>
            <p class="hidden" role="status">
              Replay {status.state}
            </p>
            {status.state === 'finished' && status.sent === 0 && <NothingSent status={status} />}
          </>
        )}
      </Loaded>
    </section>
  )
}

function NothingSent({ status: { destinationId, totals } }: { status: ReplayStatusAnswer }) {
  const why =
    totals.erased > 0
      ? 'a deletion request covers the call'
      : totals.lost > 0
        ? 'Kafka no longer held the call'
        : `by its settings of today, ${destinationId} does not get this call`
  return <Note tone="warn">Nothing was sent: {why}.</Note>
}
