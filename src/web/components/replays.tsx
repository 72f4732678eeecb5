import { useLive, type Live } from '../api/live.ts'
import type { ListPage, ReplayAnswer } from '../api/routes.ts'
import { ReplayRow } from './replay-row.tsx'

const isUnfinished = ({ state }: Pick<ReplayAnswer, 'state'>): boolean =>
  state === 'running' || state === 'paused'

/** The newest replays, and all that are not finished, with their progress. */
export function Replays({ live, max }: { live: Live<ListPage<ReplayAnswer>>; max: number }) {
  const replays = (live.data?.data ?? []).toReversed()
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
