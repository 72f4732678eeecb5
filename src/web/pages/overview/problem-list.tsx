import type { ComponentChildren } from 'preact'
import { useState, useRef } from 'preact/hooks'
import { pathTo, linkTo } from '../../../console/page-paths.ts'
import { durationText } from '../../../core/duration.ts'
import { healthSentence, isWell } from '../../../core/statistics/health.ts'
import { requestWithProgress } from '../../api/request.ts'
import type { DestinationSummary, DeletionAnswer } from '../../api/routes.ts'
import { may } from '../../app/session.ts'
import { PauseDialog, ResumeDialog, TryAgainDialog } from '../../components/destination-dialogs.tsx'
import { ActionDialog } from '../../components/dialog.tsx'
import { countOf, countText, wordsOf } from '../../components/figures.ts'
import { say, sentence } from '../../components/notices.tsx'
import { Badge, type Tone, HealthBadge } from '../../components/text.tsx'
import { Ago, now, Since } from '../../components/time.tsx'
import type { Act, Problem } from './problems.ts'

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

/** One thing that needs somebody: its state, what it is, and the buttons that act. */
export function Row({
  badge,
  title,
  text,
  children,
}: {
  badge: ComponentChildren
  title: ComponentChildren
  text?: ComponentChildren
  children?: ComponentChildren
}) {
  return (
    <>
      <div class="problem-state">{badge}</div>
      <div class="problem-text">
        <p class="problem-title foreign">{title}</p>
        {text && <div class="faint">{text}</div>}
        {text === undefined && <div class="faint">{children}</div>}
      </div>
      {text !== undefined && <div class="problem-actions">{children}</div>}
    </>
  )
}

/** How long a look back for the trend is, in ms. */
const trendMs = 45_000

/** Calls that wait, and whether they become more. */
export function LagRow({ calls, seconds }: { calls: number; seconds: number | null }) {
  const seen = useRef<{ at: number; calls: number }[]>([])
  const at = Date.now()
  if (seen.current.at(-1)?.calls !== calls)
    seen.current = [...seen.current.filter((each) => at - each.at < 4 * trendMs), { at, calls }]
  const before = seen.current.find((each) => at - each.at >= trendMs)
  const trend =
    !before || before.calls === calls
      ? ''
      : calls > before.calls
        ? ', and more than before'
        : ', and fewer than before'
  const tone: Tone = trend.includes('more') ? 'bad' : 'warn'
  const work =
    seconds === null
      ? 'none was finished in the last minutes'
      : `about ${durationText(seconds * 1_000)} of work`
  return (
    <Row
      badge={<Badge tone={tone} text="lag" />}
      title={`${countOf(calls, 'call')} wait for a forwarder`}
      text={`That is ${work}${trend}. More forwarders, up to one for each partition, take it off faster.`}
    />
  )
}

/** A destination that others would wait for, were its calls not put off. */
export function SlowRow({ destination }: { destination: DestinationSummary }) {
  const { id, queued, deferred } = destination
  return (
    <Row
      badge={<Badge tone="warn" text="slow" />}
      title={<DestinationLink destination={destination} />}
      text={`It answers more slowly than its calls come. ${countOf(queued, 'attempt')} wait in forwarders; within an hour, ${countText(deferred)} were put off so that other destinations need not wait. If it answers faster with less at once, limit its requests.`}
    >
      {may('admin') && (
        <a class="button" href={`${pathTo('destination', { id })}?view=settings`}>
          Limit it
        </a>
      )}
    </Row>
  )
}

/** What of a destination failed finally within the hour, and the way to send all of it again. */
export function DeadLettersRow({ destination, count }: { destination: DestinationSummary; count: number }) {
  const { id, deadLetterReasons } = destination
  const reasons = Object.entries(deadLetterReasons).toSorted(([, a], [, b]) => b - a)
  const why =
    reasons.length === 1
      ? wordsOf(reasons[0]![0])
      : reasons.map(([reason, each]) => `${countText(each)} ${wordsOf(reason)}`).join(', ')
  return (
    <Row
      badge={<Badge tone="bad" text="dead letters" />}
      title={<DestinationLink destination={destination} />}
      text={`${countOf(count, 'dead letter')} within an hour: ${why}.`}
    >
      <a class="button" href={linkTo('deadLetters', { destination: id, since: '1h', select: 'all' })}>
        Look and replay
      </a>
    </Row>
  )
}

/** Resumes a deletion that was interrupted. */
export function FinishDialog({ deletion: { id }, close }: { deletion: DeletionAnswer; close: () => void }) {
  const act = async () => {
    const { deleteCalls, missing } = await requestWithProgress(
      'POST /deletions/{id}/resume',
      { id },
      () => {},
    )
    say(
      missing > 0
        ? `${countOf(missing, 'user')} of deletion ${id} were never erased: give them again`
        : `Deletion ${id} is finished: ${countOf(deleteCalls, 'delete call')} written`,
      missing > 0 ? 'bad' : 'good',
    )
  }
  return (
    <ActionDialog title={`Finish deletion ${id}?`} action="Write delete calls" act={act} close={close}>
      <p>
        Destinations get the delete calls that are missing. Those that were written before keep their
        messageId.
      </p>
    </ActionDialog>
  )
}

export const DestinationLink = ({ destination: { id, name } }: { destination: DestinationSummary }) => (
  <a href={pathTo('destination', { id })}>{name}</a>
)

/** A destination whose calls are not sent, or not to all of its URLs. */
export function DestinationRow({
  destination,
  act,
}: {
  destination: DestinationSummary
  act: (what: Act) => void
}) {
  const { health, pause, urls, queued } = destination
  const { word } = health
  const troubled = urls.filter((url) => !isWell(url.health))
  const why = healthSentence(health)
  return (
    <Row
      badge={<HealthBadge health={health} />}
      title={<DestinationLink destination={destination} />}
      text={
        <>
          {word === 'held' && pause && (
            <p>
              Its calls are held, <Since at={pause.since} />
              {pause.until === null ? (
                ' and until somebody resumes it.'
              ) : (
                <>
                  ; it goes on <Ago at={pause.until} />.
                </>
              )}
            </p>
          )}
          {why !== null && <p>{why}</p>}
          {word !== 'held' && troubled.map((url) => <UrlText key={url.urlId} url={url} />)}
          {queued > 0 && <p>{countOf(queued, 'attempt')} wait in forwarders.</p>}
        </>
      }
    >
      {word === 'held' && may('operator') && (
        <button type="button" class="button" onClick={() => act('resume')}>
          Resume
        </button>
      )}
      {word === 'gone' && may('admin') && (
        <button type="button" class="button" onClick={() => act('try_again')}>
          Try again
        </button>
      )}
      {['down', 'failing', 'degraded', 'asked_to_wait'].includes(word) && may('operator') && (
        <button type="button" class="button" onClick={() => act('pause')}>
          Pause
        </button>
      )}
    </Row>
  )
}

type UrlState = DestinationSummary['urls'][number]

/** Since when a URL is in trouble, and how it answered last. */
function UrlText({ url: state }: { url: UrlState }) {
  const { url, gone, goneAt, downSince, lastFailure, pausedUntil } = state
  return (
    <p>
      <span class="id">{url}</span>
      {gone && goneAt !== null && (
        <>
          {' '}
          answered 410 <Ago at={goneAt} />.
        </>
      )}
      {!gone && downSince !== null && (
        <>
          {' '}
          down <Since at={downSince} />.
        </>
      )}
      {!gone && lastFailure && (
        <>
          {' '}
          {sentence(lastFailure.detail ?? wordsOf(lastFailure.outcome)).slice(0, -1)}{' '}
          <Ago at={lastFailure.at} />.
        </>
      )}
      {pausedUntil !== null && Date.parse(pausedUntil) > now.value && (
        <>
          {' '}
          The next attempt comes <Ago at={pausedUntil} />.
        </>
      )}
    </p>
  )
}
