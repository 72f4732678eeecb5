import { query, setQuery } from '../../app/address.ts'
import { PageTitle } from '../../app/page-title.tsx'
import { may } from '../../app/session.ts'
import { useLive } from '../../api/live.ts'
import type { VerdictAnswer } from '../../api/routes.ts'
import { CopyAsCurl } from '../../components/copy.tsx'
import { countOf } from '../../components/figures.ts'
import { Choice } from '../../components/forms/choice.tsx'
import { Failure, Empty, Note } from '../../components/notices.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Progress } from '../../components/progress.tsx'
import { Ago, At } from '../../components/time.tsx'
import { Equation } from './equation.tsx'
import { Copies, Faults, Partitions } from './findings.tsx'
import { useAuditRun } from './run.ts'
import { verdictText } from './verdict-text.ts'

const periods = [
  ['', 'Everything'],
  ['1d', 'Last 24 hours'],
  ['1h', 'Last hour'],
] as const
type Period = (typeof periods)[number][0]

/** The last verdict on whether every call is accounted for, and a new one on request. */
export function Audit() {
  const live = useLive('GET /audit', {}, 10_000)
  const given = query.value.get('since') ?? ''
  const since: Period = periods.find(([period]) => period === given)?.[0] ?? ''
  const run = useAuditRun(live.reload)
  const isElsewhere = run.progress === null && live.data?.isRunning === true
  return (
    <>
      <PageTitle title="Audit">
        <CopyAsCurl route="GET /audit" />
      </PageTitle>
      <p class="lead">
        An audit reads Kafka and proves, or disproves, that every call is accounted for: delivered, waiting
        for a retry, a dead letter, skipped, erased or held.
      </p>
      {may('operator') && (
        <div class="filters">
          <Choice
            label="What is audited"
            value={since}
            choices={periods}
            choose={(period) => setQuery({ since: period })}
          />
          {run.progress === null ? (
            <button
              type="button"
              class="button button-primary"
              disabled={isElsewhere}
              onClick={() => run.start(since)}
            >
              Run now
            </button>
          ) : (
            <button type="button" class="button" onClick={run.stop}>
              Stop
            </button>
          )}
        </div>
      )}
      {isElsewhere && (
        <Note>An audit is running that was started elsewhere. Its verdict will be shown here.</Note>
      )}
      {run.progress !== null && (
        <div class="card running" role="status">
          <Progress
            label={`Reading ${run.progress.phase}`}
            done={run.progress.done}
            total={run.progress.total || null}
          />
          <p class="hint">The audit ends when you leave this page.</p>
        </div>
      )}
      {run.failure && <Failure failure={run.failure} />}
      <Loaded live={live} what="the last verdict">
        {({ last }) =>
          last === null ? (
            <Empty title="No audit has been run on this console yet.">
              <p>{may('operator') ? 'Run one now.' : 'Somebody with the role operator can run one.'}</p>
            </Empty>
          ) : (
            <Verdict verdict={last} />
          )
        }
      </Loaded>
    </>
  )
}

function Verdict({ verdict }: { verdict: VerdictAnswer }) {
  const { ok, at, since, until, read } = verdict
  return (
    <>
      <section class={`card verdict ${ok ? 'is-sound' : 'is-broken'}`} aria-label="Last verdict">
        <h2>{verdictText(verdict)}</h2>
        <p>
          Verdict of <At at={at} />, <Ago at={at} />. Audited:{' '}
          {since === null ? (
            'everything that the ledger holds'
          ) : (
            <>
              since <At at={since} />
            </>
          )}
          {until !== null && (
            <>
              {' '}
              until <At at={until} />
            </>
          )}
          .
        </p>
        <p class="faint numbers">
          Read:{' '}
          {[
            countOf(read.calls, 'call'),
            countOf(read.retries, 'record of tiers', 'records of tiers'),
            countOf(read.deadLetters, 'dead letter'),
            countOf(read.tallies, 'tally', 'tallies'),
          ].join(', ')}
        </p>
      </section>
      <Faults faults={verdict.faults} />
      <Equation lines={verdict.destinations} />
      <Copies copies={verdict.copies} count={verdict.copyCount} />
      <Partitions partitions={verdict.partitions} />
    </>
  )
}
