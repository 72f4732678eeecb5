import { linkTo, pathTo } from '../../../console/page-paths.ts'
import type { Live } from '../../api/live.ts'
import type { OverviewAnswer, TotalStatsAnswer } from '../../api/routes.ts'
import { compactText, countOf, countText, rateText } from '../../components/figures.ts'
import { Plot, type PlotSeries } from '../../components/plot.tsx'
import { ShareBar, type Share } from '../../components/share-bar.tsx'
import { Ago } from '../../components/time.tsx'
import { Loaded } from '../../components/views.tsx'

type Point = TotalStatsAnswer['points'][number]

/** What became of the deliveries that were due in the last hour, as one bar and over time. */
export function LastHour({ overview, stats }: { overview: OverviewAnswer; stats: Live<TotalStatsAnswer> }) {
  const { totals, knownSince } = overview
  const isWhole = knownSince !== null && knownSince <= overview.from
  const refused = stats.data?.totals.refused ?? 0
  return (
    <section class="section" aria-labelledby="last-hour">
      <div class="section-head">
        <h2 id="last-hour">The last hour</h2>
        <p>
          {`Received ${countOf(totals.accepted, 'call')}, ${rateText(totals.acceptedPerSecond)} at collectors. `}
          {refused > 0 && (
            <>
              <a href={pathTo('sources')}>{`Refused ${countText(refused)}`}</a>.{' '}
            </>
          )}
          A call counts once for each of its destinations.
          {!isWhole && knownSince !== null && (
            <>
              {' '}
              Known since <Ago at={knownSince} />.
            </>
          )}
        </p>
      </div>
      <Loaded live={stats} what="the last hour">
        {(hour) => (
          <>
            <div class="card shares-card">
              <ShareBar
                label="What became of the deliveries of the last hour"
                parts={partsOf(hour.pipeline)}
              />
            </div>
            <div class="plots">
              <MinutePlot
                title="Received and delivered per minute"
                stats={hour}
                series={[
                  ['Received', '--series-1', ({ accepted }) => accepted],
                  ['Delivered', '--series-2', ({ delivered }) => delivered],
                ]}
              />
              <MinutePlot
                title="Retries per minute"
                stats={hour}
                series={[
                  ['After an attempt', '--series-3', ({ retried }) => retried],
                  ['Without one', '--series-4', ({ deferred }) => deferred],
                ]}
              />
              <MinutePlot
                title="Dead letters per minute"
                stats={hour}
                series={[['Dead letters', '--series-5', ({ deadLettered }) => deadLettered]]}
              />
            </div>
          </>
        )}
      </Loaded>
    </section>
  )
}

const notCounted = 'What waits in the retry tiers could not be counted, or it moves'

/** Each is counted by itself: together they are what was due. */
function partsOf({
  delivered,
  waiting,
  held,
  skipped,
  erased,
  deadLettered,
  unaccounted,
}: TotalStatsAnswer['pipeline']): Share[] {
  return [
    { name: 'Delivered', count: delivered, tone: 'good', href: pathTo('destinations') },
    {
      ...{ name: 'Waiting for a retry', count: waiting, why: notCounted, tone: 'warn', note: ', now' },
      href: linkTo('destinations', { sort: 'success' }),
    },
    { name: 'Held', count: held, tone: 'plain', href: linkTo('destinations', { health: 'held' }) },
    { name: 'Skipped', count: skipped, tone: 'plain' },
    { name: 'Erased', count: erased, tone: 'plain' },
    {
      ...{ name: 'Dead letters', count: deadLettered, tone: 'bad' },
      href: linkTo('deadLetters', { since: '1h' }),
    },
    { name: 'Unaccounted', count: unaccounted, why: notCounted, tone: 'bad', href: pathTo('audit') },
  ]
}

function MinutePlot({
  title,
  stats: { points, knownSince, stepSeconds },
  series,
}: {
  title: string
  stats: TotalStatsAnswer
  series: readonly (readonly [label: string, color: string, value: (point: Point) => number])[]
}) {
  const lines = series.map(([label, color, value]): PlotSeries => ({
    label,
    color,
    values: points.map((point) => value(point)),
  }))
  const sums = lines.map(
    ({ label, values }) =>
      `${label}: ${countText(values.reduce<number>((sum, each) => sum + (each ?? 0), 0))}`,
  )
  return (
    <div class="card">
      <Plot
        title={title}
        summary={`${title}, one hour. ${sums.join(', ')}.`}
        times={points.map(({ at }) => Date.parse(at))}
        known={{ since: knownSince, stepMs: stepSeconds * 1_000 }}
        series={lines}
        format={compactText}
      />
    </div>
  )
}
