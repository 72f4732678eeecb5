import { useLive } from '../../api/live.ts'
import type { DestinationAnswer, DestinationNowAnswer, StatsAnswer } from '../../api/routes.ts'
import { query, setQuery } from '../../app/address.ts'
import { isLimited } from '../../app/session.ts'
import { Choice } from '../../components/fields.tsx'
import { absoluteText, compactText, countText, msText } from '../../components/figures.ts'
import { Plot, type PlotMark, type PlotSeries } from '../../components/plot.tsx'
import { ReplaysIfAny } from '../../components/replays-if-any.tsx'
import { Ago } from '../../components/time.tsx'
import { Loaded } from '../../components/views.tsx'
import { chooseRange, chooseWindow, shownPeriod, windows, type Period } from './period.ts'
import { Pipeline, Urls } from './pipeline.tsx'
import { Range } from './range.tsx'

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
  const period = shownPeriod()
  const { asked, everyMs, range } = period
  const replays = useLive('GET /replays', { query: { destination: id, order: 'newest', limit: 200 } }, 5_000)
  const live = useLive('GET /destinations/{id}/stats', { id, query: asked }, everyMs)
  const since = range ? new Date(range.from).toISOString() : asked.window
  // A look reads the whole log of the settings: it takes somebody who wants it, and once is enough.
  const isMarked = query.value.get('marks') === 'settings'
  const history = useLive(
    'GET /settings/history',
    { query: { destination: id, since, limit: maxMarks } },
    0,
    isMarked && !isLimited(),
  )
  const marks = [
    ...(history.data?.data ?? []).map(({ at, actor }) => ({
      at: Date.parse(at),
      text: actor === null ? 'settings changed' : `settings changed by ${actor}`,
    })),
    ...(replays.data?.data ?? []).map(({ createdAt }) => ({
      at: Date.parse(createdAt),
      text: 'a replay began',
    })),
  ]
  return (
    <>
      <div class="section-head">
        <div class="period">
          <PeriodChoice period={period} />
          {!isLimited() && (
            <button
              type="button"
              class="button button-small"
              aria-pressed={isMarked}
              onClick={() => setQuery({ marks: isMarked ? null : 'settings' })}
            >
              Mark changes of its settings
            </button>
          )}
        </div>
        <p>
          {live.data?.knownSince && live.data.knownSince > live.data.from ? (
            <>
              Known since <Ago at={live.data.knownSince} />
            </>
          ) : (
            'Drag over a plot to choose a part of it'
          )}
        </p>
      </div>
      <Loaded live={live} what="what became of its calls">
        {(stats) => (
          <>
            <Pipeline stats={stats} sourceIds={sourceIds} asked={asked} everyMs={everyMs} />
            <Plots stats={stats} marks={marks} />
            <Urls destination={destination} state={state} stats={stats} />
          </>
        )}
      </Loaded>
      <ReplaysIfAny live={replays} max={maxReplays} />
    </>
  )
}

/** The settings' changes that plots have marks for. */
const maxMarks = 50

/** A few that end now; and the one that was chosen in a plot, with the way back. */
function PeriodChoice({ period: { window, range } }: { period: Period }) {
  return (
    <>
      <Choice
        label="Period"
        value={window ?? ''}
        choices={windows}
        choose={(to) => to !== '' && chooseWindow(to)}
      />
      {range && <Range range={range} />}
    </>
  )
}

type Point = StatsAnswer['points'][number]

function Plots({
  stats: { points, stepSeconds, knownSince, from, to },
  marks,
}: {
  stats: StatsAnswer
  marks: readonly PlotMark[]
}) {
  const shown = marks.filter(({ at }) => at >= Date.parse(from) && at < Date.parse(to))
  const common = {
    times: points.map(({ at }) => Date.parse(at)),
    known: { since: knownSince, stepMs: stepSeconds * 1_000 },
    marks: shown,
    choose: chooseRange,
  }
  const line = (label: string, color: string, value: (point: Point) => number | null): PlotSeries => ({
    label,
    color,
    values: points.map((point) => value(point)),
  })
  const span =
    stepSeconds === 60 ? 'per minute' : stepSeconds === 3_600 ? 'per hour' : `per ${stepSeconds / 60} min`
  const worst = Math.max(0, ...points.map(({ p95Ms }) => p95Ms ?? 0))
  const sumOf = (field: 'delivered' | 'deadLettered' | 'attempts' | 'failed') =>
    points.reduce((sum, point) => sum + point[field], 0)
  return (
    <div class="plots section">
      <div class="card">
        <Plot
          title={`Deliveries ${span}`}
          summary={`Deliveries ${span}: ${countText(sumOf('delivered'))} delivered, ${countText(sumOf('deadLettered'))} dead letters.`}
          {...common}
          series={[
            line('Delivered', '--series-2', ({ delivered }) => delivered),
            line('Dead letters', '--series-4', ({ deadLettered }) => deadLettered),
          ]}
          format={compactText}
        />
      </div>
      <div class="card">
        <Plot
          title={`Attempts ${span}`}
          summary={`Attempts ${span}, by the status of the answer: ${countText(sumOf('attempts'))} in all, of which ${countText(sumOf('failed'))} failed.`}
          {...common}
          isStacked
          series={answers.map(([name, label, color]) => line(label, color, (point) => point.answers[name]))}
          format={compactText}
        />
      </div>
      <div class="card">
        <Plot
          title="Response time"
          summary={`Response time; the 95th percentile was at most ${msText(worst)}.`}
          {...common}
          series={[
            line('p50', '--series-1', ({ p50Ms }) => p50Ms),
            line('p95', '--series-3', ({ p95Ms }) => p95Ms),
            line('p99', '--series-5', ({ p99Ms }) => p99Ms),
          ]}
          format={msText}
        />
      </div>
      {shown.length > 0 && (
        <p class="marks faint foreign">
          {`Marked: ${shown
            .slice(0, maxNamedMarks)
            .map(({ at, text }) => `${absoluteText(at).slice(11, 19)} ${text}`)
            .join(', ')}`}
          {shown.length > maxNamedMarks && ` and ${countText(shown.length - maxNamedMarks)} more`}
        </p>
      )}
    </div>
  )
}

/** From the top of the stack down: what is well is its ground. */
const answers = [
  ['none', 'No answer', '--series-4'],
  ['5xx', '5xx', '--series-5'],
  ['4xx', '4xx', '--series-3'],
  ['3xx', '3xx', '--series-1'],
  ['2xx', '2xx', '--series-2'],
] as const

const maxNamedMarks = 5
