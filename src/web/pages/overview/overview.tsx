import { useLive } from '../../api/live.ts'
import type { AuditAnswer, OverviewAnswer, TotalStatsAnswer } from '../../api/routes.ts'
import { PageTitle } from '../../app/shell.tsx'
import { countOf } from '../../components/figures.ts'
import { Icon } from '../../components/icon.tsx'
import { CopyAsCurl } from '../../components/text.tsx'
import { now, Ago } from '../../components/time.tsx'
import { Loaded } from '../../components/views.tsx'
import { LastHour } from './last-hour.tsx'
import { ProblemList } from './problem-list.tsx'
import { headlineOf, problemsOf } from './problems.ts'

const asked = { query: { window: '1h' } }
const hour = { query: { window: '1h', step: '1m' } }
const unfinished = { query: { state: 'interrupted' } }
/** Of the last hour's minutes, those that say how fast forwarders are now. */
const paceMinutes = 5

/** What needs somebody, and how the last hour went. */
export function Overview() {
  const live = useLive('GET /overview', asked)
  const stats = useLive('GET /stats', hour, 15_000)
  const audit = useLive('GET /audit', {}, 30_000)
  const deletions = useLive('GET /deletions', unfinished, 60_000)
  const isAnyGone = (live.data?.processes.gone ?? 0) > 0
  const system = useLive('GET /system', {}, 10_000, isAnyGone)
  const reload = () => {
    for (const each of [live, deletions, system]) each.reload()
  }
  return (
    <>
      <PageTitle title="Overview">
        <CopyAsCurl route="GET /overview" asked={asked} />
      </PageTitle>
      <Loaded live={live} what="the overview">
        {(overview) => {
          const problems = problemsOf({
            overview,
            audit: audit.data,
            deletions: deletions.data?.data ?? [],
            processes: isAnyGone ? (system.data?.processes ?? []) : [],
            pace: paceOf(stats.data),
            now: now.value,
          })
          return (
            <>
              <Headline
                text={headlineOf(problems)}
                isWell={problems.length === 0}
                overview={overview}
                audit={audit.data}
              />
              {problems.length > 0 && <ProblemList problems={problems} reload={reload} />}
              <LastHour overview={overview} stats={stats} />
            </>
          )
        }}
      </Loaded>
    </>
  )
}

function Headline({
  text,
  isWell,
  overview: { asOf, processes },
  audit,
}: {
  text: string
  isWell: boolean
  overview: OverviewAnswer
  audit: AuditAnswer | null
}) {
  return (
    <div class={`headline card ${isWell ? 'is-well' : 'is-troubled'}`}>
      <span class="headline-mark">
        <Icon name={isWell ? 'check' : 'warning'} />
      </span>
      <div>
        <p class="headline-text" role="status">
          {text}
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
          {' · '}
          <AuditText audit={audit} />
        </p>
      </div>
    </div>
  )
}

function AuditText({ audit }: { audit: AuditAnswer | null }) {
  if (!audit) return <>the last audit is not known</>
  if (audit.isRunning) return <>an audit is running</>
  if (!audit.last) return <>no audit was run yet</>
  return (
    <>
      {audit.last.ok ? 'every call accounted for' : 'calls not accounted for'}, audited{' '}
      <Ago at={audit.last.at} />
    </>
  )
}

function paceOf(stats: TotalStatsAnswer | null): number {
  if (!stats) return 0
  // The minute that is not over yet is left out.
  const recent = stats.points.slice(-paceMinutes - 1, -1)
  return recent.reduce((sum, { planned }) => sum + planned, 0) / (paceMinutes * 60)
}
