import type { ComponentChildren } from 'preact'
import { pathTo } from '../../../console/page-paths.ts'
import type { Live } from '../../api/live.ts'
import type { OverviewAnswer, TotalStatsAnswer } from '../../api/routes.ts'
import { compactText, countText, rateText } from '../../components/figures.ts'
import { deadLettersLink } from '../../components/figure-links.ts'
import { Icon } from '../../components/icon.tsx'
import { Loaded } from '../../components/views.tsx'
import { NotKnown } from '../../components/notices.tsx'
import { Figure } from '../../components/text.tsx'
import { Ago } from '../../components/time.tsx'
import { Plot, type PlotSeries } from '../../components/plot.tsx'

type Point = TotalStatsAnswer['points'][number]

/** The way of the calls in the last hour, as numbers and over time. */
export function LastHour({ overview, stats }: { overview: OverviewAnswer; stats: Live<TotalStatsAnswer> }) {
  const { totals, lag, waitingInTiers, knownSince } = overview
  const isWhole = knownSince !== null && knownSince <= overview.from
  return (
    <section class="section" aria-labelledby="last-hour">
      <div class="section-head">
        <h2 id="last-hour">The last hour</h2>
        <p>
          A call counts once for each of its destinations.
          {!isWhole && knownSince !== null && (
            <>
              {' '}
              Known since <Ago at={knownSince} />.
            </>
          )}
        </p>
      </div>
      <dl class="path card">
        <Step
          name="Received"
          count={totals.accepted}
          note={`${rateText(totals.acceptedPerSecond)} at collectors`}
          href={pathTo('sources')}
        />
        <Step
          name="Waiting for a forwarder"
          count={lag}
          note="calls in Kafka, now"
          why="No forwarder is running"
        />
        <Step
          name="Delivered"
          count={totals.delivered}
          note={rateText(totals.deliveredPerSecond)}
          href={pathTo('destinations')}
          tone="good"
        />
        <Step
          name="Waiting for a retry"
          count={waitingInTiers}
          note={`records in the tiers, now, some of many calls; ${countText(totals.retried + totals.deferred)} calls scheduled`}
          why="No forwarder is running"
        />
        <Step
          name="Dead letters"
          count={totals.deadLettered}
          note="finally failed"
          href={deadLettersLink({ since: overview.from })}
          {...(totals.deadLettered > 0 && { tone: 'bad' as const })}
        />
      </dl>
      <Loaded live={stats} what="the last hour">
        {({ points }) => (
          <div class="plots">
            <MinutePlot
              title="Received and delivered per minute"
              points={points}
              series={[
                ['Received', '--series-1', ({ accepted }) => accepted],
                ['Delivered', '--series-2', ({ delivered }) => delivered],
              ]}
            />
            <MinutePlot
              title="Retries per minute"
              points={points}
              series={[
                ['After an attempt', '--series-3', ({ retried }) => retried],
                ['Without one', '--series-4', ({ deferred }) => deferred],
              ]}
            />
            <MinutePlot
              title="Dead letters per minute"
              points={points}
              series={[['Dead letters', '--series-5', ({ deadLettered }) => deadLettered]]}
            />
          </div>
        )}
      </Loaded>
    </section>
  )
}

function Step({
  name,
  count,
  note,
  why,
  tone,
  href,
}: {
  name: string
  /** To the list of what it counts. */
  href?: string
  /** Null where it is not known. */
  count: number | null
  note: ComponentChildren
  why?: string
  tone?: 'good' | 'bad'
}) {
  return (
    <div class={tone ? `path-step tone-${tone}` : 'path-step'}>
      <dt>{name}</dt>
      <dd>
        <span class="path-count" title={count === null ? why : countText(count)}>
          {count === null ? (
            <NotKnown {...(why !== undefined && { why })} />
          ) : (
            <Figure href={count > 0 ? href : undefined} what={name}>
              {compactText(count)}
            </Figure>
          )}
        </span>
        <span class="path-note">{note}</span>
      </dd>
      <Icon name="next" />
    </div>
  )
}

function MinutePlot({
  title,
  points,
  series,
}: {
  title: string
  points: readonly Point[]
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
        series={lines}
        format={compactText}
      />
    </div>
  )
}
