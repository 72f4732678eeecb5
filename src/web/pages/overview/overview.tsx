import { pathTo } from '../../../console/page-paths.ts'
import { useLive } from '../../api/live.ts'
import type { AuditAnswer, OverviewAnswer, ProblemsAnswer } from '../../api/routes.ts'
import { isLimited, may } from '../../app/session.ts'
import { PageTitle } from '../../app/shell.tsx'
import { countOf } from '../../components/figures.ts'
import { Icon } from '../../components/icon.tsx'
import { Note } from '../../components/notices.tsx'
import { CopyAsCurl } from '../../components/text.tsx'
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
  const audit = useLive('GET /audit', {}, 30_000, !isLimited())
  const reload = () => {
    for (const each of [live, problems]) each.reload()
  }
  return (
    <>
      <PageTitle title="Overview">
        <CopyAsCurl route="GET /problems" />
      </PageTitle>
      <Loaded live={problems} what="what needs you">
        {(found) => (
          <Loaded live={live} what="the overview">
            {(overview) => (
              <>
                {overview.destinations.length === 0 && may('admin') && <BeginHere />}
                <Headline {...found} overview={overview} audit={audit.data} />
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
  overview: { asOf, processes },
  audit,
}: Pick<ProblemsAnswer, 'headline' | 'isWell'> & {
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
          {headline}
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
  if (isLimited()) return <>as far as you are shown it</>
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
