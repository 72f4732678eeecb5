import type { ComponentChildren } from 'preact'
import { pathTo } from '../../../console/page-paths.ts'
import { away } from '../../api/away.ts'
import { useLive } from '../../api/live.ts'
import type { OverviewAnswer, ProblemsAnswer, TotalStatsAnswer } from '../../api/routes.ts'
import { may } from '../../app/session.ts'
import { PageTitle } from '../../app/shell.tsx'
import { compactText, countOf, countText } from '../../components/figures.ts'
import { Icon } from '../../components/icon.tsx'
import { NotKnown, Note } from '../../components/notices.tsx'
import { Ago } from '../../components/time.tsx'
import { Loaded } from '../../components/views.tsx'
import { LastHour } from './last-hour.tsx'
import { ProblemList } from './problem-list.tsx'

const asked = { query: { window: '1h' } }
const askedProblems = { query: { limit: 0 } }
const hour = { query: { window: '1h', step: '1m' } }

/** What needs somebody, and how the last hour went. */
export function Overview() {
  const live = useLive('GET /overview', asked)
  const problems = useLive('GET /problems', askedProblems)
  const stats = useLive('GET /stats', hour, 15_000)
  const reload = () => {
    for (const each of [live, problems]) each.reload()
  }
  return (
    <>
      <PageTitle title="Overview" curl={{ route: 'GET /problems' }} />
      <Loaded live={problems} what="what needs you">
        {(found) => (
          <Loaded live={live} what="the overview">
            {(overview) => (
              <>
                {overview.destinations.length === 0 && may('admin') && <BeginHere />}
                <Headline {...found} overview={overview} pipeline={stats.data?.pipeline ?? null} />
                {found.causes.length > 0 && (
                  <ProblemList causes={found.causes} omitted={found.causesOmitted} reload={reload} />
                )}
                <LastHour overview={overview} stats={stats} />
              </>
            )}
          </Loaded>
        )}
      </Loaded>
    </>
  )
}

/** Nothing goes anywhere yet. */
const BeginHere = () => (
  <Note>
    <p>
      Postrider takes the calls of your applications, and sends each one as a signed request to the addresses
      that you name.
    </p>
    <a class="button button-primary" href={pathTo('begin')}>
      Begin with the first webhook
    </a>
  </Note>
)

function Headline({
  headline,
  isWell,
  overview,
  pipeline,
}: Pick<ProblemsAnswer, 'headline' | 'isWell'> & {
  overview: OverviewAnswer
  /** Of the last hour; null while it is not known. */
  pipeline: TotalStatsAnswer['pipeline'] | null
}) {
  const { asOf, processes } = overview
  // What was known before is no answer to how it is now.
  const missing = away.value?.what
  const isGood = isWell && missing === undefined
  return (
    <div class={`headline card ${isGood ? 'is-well' : 'is-troubled'}`}>
      <span class="headline-mark">
        <Icon name={isGood ? 'check' : 'warning'} />
      </span>
      <div class="headline-words">
        <p class="headline-text" role="status">
          {missing === undefined
            ? headline
            : `${missing === 'kafka' ? 'Kafka' : 'The console'} does not answer`}
        </p>
        <p class="faint">
          {countOf(processes.live, 'process', 'processes')} running
          {' · '}
          {asOf === null ? (
            'the ledger is being read for the first time'
          ) : (
            <>
              counted up to <Ago at={asOf} />
            </>
          )}
        </p>
      </div>
      <dl class="promise">
        <Accounted audit={overview.audit} />
        <Waiting lag={overview.lag} waiting={pipeline?.waiting ?? null} />
        <Lost unaccounted={pipeline?.unaccounted ?? null} />
      </dl>
    </div>
  )
}

/** What Postrider promises, in three figures: all is accounted for, what waits, and that nothing is lost. */
function Figure({
  name,
  isBad = false,
  note,
  children,
}: {
  name: string
  isBad?: boolean
  note: ComponentChildren
  children: ComponentChildren
}) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <span class={isBad ? 'path-count is-bad' : 'path-count'}>{children}</span>
        <span class="path-note">{note}</span>
      </dd>
    </div>
  )
}

const toAudit = (text: string) => <a href={pathTo('audit')}>{text}</a>

function Accounted({ audit }: { audit: OverviewAnswer['audit'] }) {
  const name = 'Accounted for'
  if (!audit)
    return (
      <Figure name={name} note="as far as you are shown it">
        <NotKnown why="An audit is of everything" />
      </Figure>
    )
  const { last, isRunning } = audit
  if (!last)
    return (
      <Figure name={name} note={isRunning ? 'an audit is running' : 'no audit was run yet'}>
        <NotKnown why="An audit finds out" />
      </Figure>
    )
  const note = (
    <>
      {toAudit(last.ok ? 'every call accounted for' : 'calls not accounted for')}, audited{' '}
      <Ago at={last.at} />
    </>
  )
  return (
    <Figure name={name} isBad={!last.ok} note={note}>
      {last.ok ? '100 %' : countOf(last.faults, 'fault')}
    </Figure>
  )
}

function Waiting({ lag, waiting }: { lag: number | null; waiting: number | null }) {
  const parts = [lag === null ? null : `${compactText(lag)} for a forwarder`]
  parts.push(waiting === null ? null : `${compactText(waiting)} for a retry`)
  return (
    <Figure name="Waiting" note={parts.filter(Boolean).join(', ') || 'not counted yet'}>
      {lag === null || waiting === null ? (
        <NotKnown why={lag === null ? 'No forwarder says it' : 'It could not be counted, or it moves'} />
      ) : (
        compactText(lag + waiting)
      )}
    </Figure>
  )
}

function Lost({ unaccounted }: { unaccounted: number | null }) {
  return (
    <Figure
      name="Lost"
      isBad={unaccounted !== null && unaccounted > 0}
      note={unaccounted ? toAudit('unaccounted: an audit names which') : 'within the last hour'}
    >
      {unaccounted === null ? <NotKnown why="It is being counted" /> : countText(unaccounted)}
    </Figure>
  )
}
