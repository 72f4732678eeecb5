import { useLive } from '../../api/live.ts'
import type { DestinationAnswer, DestinationNowAnswer, StatsAnswer } from '../../api/routes.ts'
import { query, setQuery } from '../../app/address.ts'
import { Choice } from '../../components/fields.tsx'
import { compactText, countText, msText } from '../../components/figures.ts'
import { Plot, type PlotSeries } from '../../components/plot.tsx'
import { Replays } from '../../components/replays.tsx'
import { Ago } from '../../components/time.tsx'
import { Loaded } from '../../components/views.tsx'
import { Pipeline, Urls } from './pipeline.tsx'

const windows = [
  ['10m', '10 min'],
  ['1h', '1 hour'],
  ['24h', '24 hours'],
  ['7d', '7 days'],
] as const
/** Each point, and how often it is asked for again, in ms. */
const steps = {
  '10m': { step: '1m', everyMs: 5_000 },
  '1h': { step: '1m', everyMs: 10_000 },
  '24h': { step: '15m', everyMs: 60_000 },
  '7d': { step: '1h', everyMs: 60_000 },
} as const

/** That are shown, beside those that are not finished. */
const maxReplays = 5

export function Activity({
  destination,
  state,
}: {
  destination: DestinationAnswer
  state: DestinationNowAnswer | null
}) {
  const { id, sourceIds } = destination
  const asked = query.value.get('window')
  const window = windows.find(([each]) => each === asked)?.[0] ?? '1h'
  const { step, everyMs } = steps[window]
  const replays = useLive('GET /replays', { query: { destination: id, order: 'newest', limit: 200 } }, 5_000)
  const live = useLive('GET /destinations/{id}/stats', { id, query: { window, step } }, everyMs)
  return (
    <>
      <div class="section-head">
        <Choice
          label="Period"
          value={window}
          choices={windows}
          choose={(value) => setQuery({ window: value === '1h' ? null : value })}
        />
        {live.data?.knownSince && live.data.knownSince > live.data.from && (
          <p>
            Known since <Ago at={live.data.knownSince} />
          </p>
        )}
      </div>
      <Loaded live={live} what="what became of its calls">
        {(stats) => (
          <>
            <Pipeline stats={stats} sourceIds={sourceIds} window={window} step={step} everyMs={everyMs} />
            <Plots stats={stats} />
            <Urls destination={destination} state={state} stats={stats} />
          </>
        )}
      </Loaded>
      <Replays live={replays} max={maxReplays} />
    </>
  )
}

type Point = StatsAnswer['points'][number]

function Plots({ stats: { points, stepSeconds } }: { stats: StatsAnswer }) {
  const times = points.map(({ at }) => Date.parse(at))
  const line = (label: string, color: string, value: (point: Point) => number | null): PlotSeries => ({
    label,
    color,
    values: points.map((point) => value(point)),
  })
  const span =
    stepSeconds === 60 ? 'per minute' : stepSeconds === 3_600 ? 'per hour' : `per ${stepSeconds / 60} min`
  const worst = Math.max(0, ...points.map(({ p95Ms }) => p95Ms ?? 0))
  const sumOf = (field: 'delivered' | 'failed') => points.reduce((sum, point) => sum + point[field], 0)
  return (
    <div class="plots section">
      <div class="card">
        <Plot
          title={`Delivered ${span}`}
          summary={`Delivered ${span}: ${countText(sumOf('delivered'))} in all.`}
          times={times}
          series={[line('Delivered', '--series-2', ({ delivered }) => delivered)]}
          format={compactText}
        />
      </div>
      <div class="card">
        <Plot
          title={`Failed attempts ${span}`}
          summary={`Failed attempts ${span}: ${countText(sumOf('failed'))} in all.`}
          times={times}
          series={[
            line('Failed attempts', '--series-5', ({ failed }) => failed),
            line('Dead letters', '--series-4', ({ deadLettered }) => deadLettered),
          ]}
          format={compactText}
        />
      </div>
      <div class="card">
        <Plot
          title="Response time"
          summary={`Response time; the 95th percentile was at most ${msText(worst)}.`}
          times={times}
          series={[
            line('p50', '--series-1', ({ p50Ms }) => p50Ms),
            line('p95', '--series-3', ({ p95Ms }) => p95Ms),
            line('p99', '--series-5', ({ p99Ms }) => p99Ms),
          ]}
          format={msText}
        />
      </div>
    </div>
  )
}
