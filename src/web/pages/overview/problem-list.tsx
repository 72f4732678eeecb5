import { useState } from 'preact/hooks'
import { durationText } from '../../../core/duration.ts'
import { pathTo } from '../../../console/page-paths.ts'
import { may } from '../../app/session.ts'
import { Badge } from '../../components/badge.tsx'
import { PauseDialog } from '../../components/destination-actions/pause-dialog.tsx'
import { ResumeDialog } from '../../components/destination-actions/resume-dialog.tsx'
import { TryAgainDialog } from '../../components/destination-actions/try-again-dialog.tsx'
import { countOf } from '../../components/figures.ts'
import { Ago } from '../../components/time.tsx'
import { DestinationRow } from './destination-row.tsx'
import { DeadLettersRow } from './dead-letters-row.tsx'
import { FinishDialog } from './finish-dialog.tsx'
import { LagRow } from './lag-row.tsx'
import { Row } from './problem-row.tsx'
import type { Act, Problem } from './problems.ts'
import { SlowRow } from './slow-row.tsx'

interface Acting {
  what: Act
  problem: Problem
}

export function ProblemList({ problems, reload }: { problems: readonly Problem[]; reload: () => void }) {
  const [acting, setActing] = useState<Acting | null>(null)
  const close = () => {
    setActing(null)
    reload()
  }
  return (
    <section class="section" aria-labelledby="problems">
      <h2 id="problems" class="hidden">
        What needs you
      </h2>
      <ul class="problems card">
        {problems.map((problem) => (
          <li key={keyOf(problem)} class="problem">
            <ProblemRow problem={problem} act={(what) => setActing({ what, problem })} />
          </li>
        ))}
      </ul>
      {acting && <Acting acting={acting} close={close} />}
    </section>
  )
}

function keyOf(problem: Problem): string {
  if (problem.kind === 'dead_letters') return `letters ${problem.destination.id}`
  if (problem.kind === 'slow') return `slow ${problem.destination.id}`
  if (problem.kind === 'destination') return `destination ${problem.destination.id}`
  if (problem.kind === 'deletion') return `deletion ${problem.deletion.id}`
  if (problem.kind === 'process_gone') return `process ${problem.process.instance}`
  return problem.kind
}

function Acting({ acting: { what, problem }, close }: { acting: Acting; close: () => void }) {
  if (problem.kind === 'deletion') return <FinishDialog deletion={problem.deletion} close={close} />
  if (!('destination' in problem)) return null
  const { id } = problem.destination
  if (what === 'pause') return <PauseDialog id={id} close={close} />
  if (what === 'resume') return <ResumeDialog id={id} close={close} />
  return <TryAgainDialog id={id} close={close} />
}

function ProblemRow({ problem, act }: { problem: Problem; act: (what: Act) => void }) {
  switch (problem.kind) {
    case 'destination':
      return <DestinationRow destination={problem.destination} act={act} />
    case 'slow':
      return <SlowRow destination={problem.destination} />
    case 'dead_letters':
      return <DeadLettersRow destination={problem.destination} count={problem.count} />
    case 'no_forwarder':
      return (
        <Row badge={<Badge tone="bad" text="stopped" />} title="No forwarder is running">
          Calls wait in Kafka; nothing is lost. Start one: <code>npx postrider forwarder</code>
        </Row>
      )
    case 'process_gone': {
      const { roles, host, seenAt, pid } = problem.process
      return (
        <Row
          badge={<Badge tone="warn" text="missing" />}
          title={`The ${roles.join(', ')} on ${host} is gone`}
          text={
            <>
              Process {pid} said <Ago at={seenAt} /> that it lives, and not that it stopped. Others take over
              its work.
            </>
          }
        />
      )
    }
    case 'lag':
      return <LagRow calls={problem.calls} seconds={problem.seconds} />
    case 'overdue':
      return (
        <Row
          badge={<Badge tone="bad" text="past due" />}
          title="Retries are not sent in time"
          text={`The most overdue one has been due for ${durationText(problem.ms)}. Forwarders are too busy or too few, or have stopped.`}
        />
      )
    case 'audit':
      return (
        <Row
          badge={<Badge tone="bad" text="audit" />}
          title="Calls are not accounted for"
          text={
            <>
              The audit of <Ago at={problem.at} /> found {countOf(problem.faults, 'fault')}.
            </>
          }
        >
          <a class="button" href={pathTo('audit')}>
            See which
          </a>
        </Row>
      )
    case 'deletion': {
      const { id, requestedAt, users } = problem.deletion
      return (
        <Row
          badge={<Badge tone="bad" text="interrupted" />}
          title={`Deletion ${id}`}
          text={
            <>
              Of {countOf(users, 'user')}, requested <Ago at={requestedAt} />: destinations were not asked to
              forget all of them.
            </>
          }
        >
          {may('admin') && (
            <button type="button" class="button" onClick={() => act('finish')}>
              Finish it
            </button>
          )}
        </Row>
      )
    }
  }
}
