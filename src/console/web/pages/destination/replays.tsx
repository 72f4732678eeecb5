import { useLive } from '../../api/live.ts'
import type { ReplayAnswer } from '../../api/routes.ts'
import { ReplayRow } from '../../components/replay-row.tsx'

const maxShown = 5

/** Its replays of late, the newest first; those that are not finished with their progress. */
export function Replays({ id }: { id: string }) {
  const live = useLive('GET /replays', { query: { destination: id, limit: 200 } }, 5_000)
  const replays = (live.data?.data ?? []).toReversed()
  const shown = replays.filter(
    ({ state }, index) => index < maxShown || state === 'running' || state === 'paused',
  )
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
  const isUnfinished = job.state === 'running' || job.state === 'paused'
  const live = useLive('GET /replays/{id}', { id: job.id }, isUnfinished ? 2_000 : 0)
  const turned = () => {
    reload()
    live.reload()
  }
  return <ReplayRow job={job} status={live.data} turned={turned} />
}
