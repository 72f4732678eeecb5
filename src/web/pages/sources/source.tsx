import { Fragment } from 'preact'
import { linkTo, pathTo } from '../../../console/page-paths.ts'
import { useLive } from '../../api/live.ts'
import type { SourceAnswer, SourceStatsAnswer } from '../../api/routes.ts'
import { may } from '../../app/session.ts'
import { PageTitle } from '../../app/shell.tsx'
import { compactText, countText, wordsOf } from '../../components/figures.ts'
import { Icon } from '../../components/icon.tsx'
import { Lazy } from '../../components/lazy.tsx'
import { NoValue } from '../../components/notices.tsx'
import { optionFields } from '../../components/options.ts'
import { Plot } from '../../components/plot.tsx'
import { Table, type Column } from '../../components/table.tsx'
import { Figure } from '../../components/text.tsx'
import { Ago } from '../../components/time.tsx'
import { Loaded } from '../../components/views.tsx'
import type { PageProps } from '../page-props.ts'
import { AndMore, SourceBadge, WriteKey } from './parts.tsx'
import { Violations } from './violations.tsx'

const sendCalls = () => import('../../components/send-calls.tsx').then(({ SendCalls }) => SendCalls)

/** One source: its write key, options and destinations, and what of it was taken, refused and against its plan in the last day. */
export function Source({ params }: PageProps) {
  const id = params.id!
  const live = useLive('GET /sources/{id}', { id }, 10_000)
  const { data } = live
  return (
    <>
      <PageTitle
        title={data?.name ?? id}
        above={<a href={pathTo('sources')}>Sources</a>}
        beside={data && <SourceBadge source={data} />}
        curl={{ route: 'GET /sources/{id}', asked: { id } }}
      >
        {data && may('operator') && (
          <a class="button" href={pathTo('sourceEvents', { id })}>
            <Icon name="find" />
            Events
          </a>
        )}
        {data && (
          <a class="button" href={linkTo('live', { source: id })}>
            <Icon name="live" />
            Watch its calls
          </a>
        )}
        {data && may('admin') && (
          <a class="button" href={linkTo('newDestination', { source: id })}>
            Send its calls on …
          </a>
        )}
      </PageTitle>
      <Loaded live={live} what={`source ${id}`}>
        {(source) => (
          <>
            <Facts source={source} />
            {!source.builtIn && (
              <Lazy load={sendCalls} what="how to send it calls" props={{ source, isOpen: false }} />
            )}
            {/* Collectors never see the calls of the built-in one. */}
            {!source.builtIn && <LastDay id={id} />}
            {source.plan !== null && <Violations id={id} plan={source.plan} />}
          </>
        )}
      </Loaded>
    </>
  )
}

function Facts({ source }: { source: SourceAnswer }) {
  const { id, writeKey, builtIn, destinationIds, destinationCount } = source
  return (
    <dl class="card pairs pairs-card">
      <dt>Id</dt>
      <dd class="id">{id}</dd>
      <dt>Write key</dt>
      <dd>
        {writeKey === null ? (
          <NoValue why="Built in: nobody sends calls to it" />
        ) : (
          <WriteKey of={id} text={writeKey} />
        )}
      </dd>
      {/* Collectors take no calls for the built-in one. */}
      {!builtIn &&
        optionFields.source.map(({ name, label }) => (
          <Fragment key={name}>
            <dt>{label}</dt>
            <dd>{source[name] ?? <NoValue why="None" />}</dd>
          </Fragment>
        ))}
      <dt>Goes to</dt>
      <dd class="words">
        {destinationIds.length === 0 && <NoValue why="No destination: its calls go nowhere" />}
        {destinationIds.map((each) => (
          <a key={each} class="id" href={pathTo('destination', { id: each })}>
            {each}
          </a>
        ))}
        <AndMore shown={destinationIds.length} count={destinationCount} />
      </dd>
    </dl>
  )
}

const lastDay = { window: '24h', step: '15m' }

function LastDay({ id }: { id: string }) {
  const live = useLive('GET /sources/{id}/stats', { id, query: lastDay }, 60_000)
  const knownSince = live.data?.knownSince ?? null
  return (
    <section class="section" aria-labelledby="last-day">
      <div class="section-head">
        <h2 id="last-day">The last 24 hours</h2>
        <p>
          At collectors; calls that were written to Kafka directly are not in it.
          {knownSince !== null && knownSince > live.data!.from && (
            <>
              {' '}
              Known since <Ago at={knownSince} />.
            </>
          )}
        </p>
      </div>
      <Loaded live={live} what="the last 24 hours">
        {(stats) => (
          <div class="plots">
            <Table
              label="Calls by outcome"
              columns={columns}
              rows={outcomesOf(stats)}
              keyOf={({ name }) => name}
            />
            <OverTime stats={stats} />
          </div>
        )}
      </Loaded>
    </section>
  )
}

interface Outcome {
  name: string
  count: number
  isBad?: boolean
  /** To the list of what it counts. */
  href?: string
}

/** What was dropped as it should be: its senders were answered as if it were taken. */
const dropped: Readonly<Record<string, string>> = { bot: 'bots', suppressed: 'suppressed users' }

/** Calls that were not taken by their reason, most first. */
function outcomesOf({
  sourceId,
  totals: { accepted, flagged, duplicate, refusals },
}: SourceStatsAnswer): Outcome[] {
  const reasons = Object.entries(refusals).toSorted(([, a], [, b]) => b - a)
  return [
    { name: 'Accepted', count: accepted, href: pathTo('sourceEvents', { id: sourceId }) },
    ...(flagged > 0 ? [{ name: 'Accepted and flagged: bots', count: flagged }] : []),
    { name: 'Duplicates', count: duplicate },
    ...(reasons.length === 0 ? [{ name: 'Refused', count: 0 }] : []),
    ...reasons.map(([code, count]) =>
      dropped[code]
        ? {
            ...{ name: `Dropped: ${dropped[code]}`, count },
            ...(code === 'suppressed' && { href: pathTo('suppressions') }),
          }
        : { name: `Refused: ${wordsOf(code)}`, count, isBad: true },
    ),
  ]
}

const columns: Column<Outcome>[] = [
  { head: 'Outcome', isName: true, cell: ({ name }) => name },
  {
    head: 'Calls',
    isNumber: true,
    cell: ({ name, count, isBad, href }) => (
      <span class={isBad ? 'is-bad' : ''}>
        <Figure href={count > 0 ? href : undefined} what={name}>
          {countText(count)}
        </Figure>
      </span>
    ),
  },
]

function OverTime({ stats: { points, totals, knownSince, stepSeconds } }: { stats: SourceStatsAnswer }) {
  const title = 'Calls per 15 min'
  const { accepted, duplicate, refused } = totals
  const sums = `Accepted: ${countText(accepted)}, duplicates: ${countText(duplicate)}, refused: ${countText(refused)}`
  return (
    <div class="card">
      <Plot
        title={title}
        summary={`${title}, 24 hours. ${sums}.`}
        times={points.map(({ at }) => Date.parse(at))}
        known={{ since: knownSince, stepMs: stepSeconds * 1_000 }}
        series={[
          { label: 'Accepted', color: '--series-1', values: points.map((point) => point.accepted) },
          { label: 'Duplicates', color: '--series-3', values: points.map((point) => point.duplicate) },
          { label: 'Refused', color: '--series-5', values: points.map((point) => point.refused) },
        ]}
        format={compactText}
      />
    </div>
  )
}
