import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { linkTo, pathTo } from '../../../console/page-paths.ts'
import { useLive } from '../../api/live.ts'
import { request, requestWithProgress } from '../../api/request.ts'
import type { CauseAnswer, ProblemAnswer } from '../../api/routes.ts'
import { isLimited, may } from '../../app/session.ts'
import { Lazy } from '../../components/lazy.tsx'
import { ActionDialog } from '../../components/dialog.tsx'
import { countOf, countText, wordsOf } from '../../components/figures.ts'
import { say, sentence } from '../../components/notices.tsx'
import { Badge, HealthBadge } from '../../components/text.tsx'
import { Ago, Since } from '../../components/time.tsx'
import { UrlText } from '../../components/url-text.tsx'
import { Loaded } from '../../components/views.tsx'

const resumeDialog = () =>
  import('../../components/destination-dialogs.tsx').then(({ ResumeDialog }) => ResumeDialog)

const pauseDialog = () =>
  import('../../components/destination-dialogs.tsx').then(({ PauseDialog }) => PauseDialog)
const tryAgainDialog = () =>
  import('../../components/destination-dialogs.tsx').then(({ TryAgainDialog }) => TryAgainDialog)

/** What can be done about one at once. */
type Act = 'pause' | 'resume' | 'try_again' | 'finish'

interface Acting {
  what: Act
  problem: ProblemAnswer
}

interface ProblemListProps {
  causes: readonly CauseAnswer[]
  /** Causes that are not among them. */
  omitted: number
  reload: () => void
}

/** As many causes are read at a glance. */
const shownAtFirst = 8

/** What needs somebody: a row for each cause, of which those with several problems open. */
export function ProblemList({ causes, omitted, reload }: ProblemListProps) {
  const [acting, setActing] = useState<Acting | null>(null)
  const [isWhole, setWhole] = useState(false)
  const close = () => {
    setActing(null)
    reload()
  }
  const shown = isWhole ? causes : causes.slice(0, shownAtFirst)
  const hidden = causes.length - shown.length
  const act = (problem: ProblemAnswer) => (what: Act) => setActing({ what, problem })
  return (
    <section class="section" aria-labelledby="problems">
      <h2 id="problems" class="hidden">
        What needs you
      </h2>
      <ul class="problems card">
        {shown.map((cause) => (
          <li key={cause.id} class={cause.isSeen ? 'is-seen' : ''}>
            {cause.problems === 1 ? (
              <ProblemRow problem={cause.first} act={act(cause.first)} reload={reload} />
            ) : (
              <CauseRow cause={cause} act={act} reload={reload} />
            )}
          </li>
        ))}
      </ul>
      {(hidden > 0 || omitted > 0) && (
        <p class="problems-more faint">
          {hidden > 0 ? (
            <button type="button" class="button" onClick={() => setWhole(true)}>
              {`Show ${countText(hidden)} more`}
            </button>
          ) : (
            `and ${countOf(omitted, 'further cause')}`
          )}
        </p>
      )}
      {acting && <Acting acting={acting} close={close} />}
    </section>
  )
}

/** Several problems of one cause. */
function CauseRow({
  cause,
  act,
  reload,
}: {
  cause: CauseAnswer
  act: (problem: ProblemAnswer) => (what: Act) => void
  reload: () => void
}) {
  const [isOpen, setOpen] = useState(false)
  const { id, title, text, isUrgent, waits, since, problems, first } = cause
  const { kind } = first
  const toggle = isOpen ? 'Hide them' : `Show all ${countText(problems)}`
  const word =
    first.destination && kind === 'destination' ? wordsOf(first.destination.health.word) : words[kind]
  return (
    <>
      <Row
        badge={<Badge tone={isUrgent ? 'bad' : 'warn'} text={word} />}
        title={title}
        text={
          <>
            {text !== '' && <p>{withCode(text)}</p>}
            {kind === 'destination' && word !== 'held' && first.destination?.urls[0] && (
              <UrlText url={first.destination.urls[0]} />
            )}
            {waits !== null && waits > 0 && <p>{`${countOf(waits, 'call')} wait for a retry.`}</p>}
            {since !== null && (
              <p>
                {isOfThePast.has(kind) ? (
                  <>
                    The newest <Ago at={since} />.
                  </>
                ) : (
                  <>
                    The first of them <Since at={since} />.
                  </>
                )}
              </p>
            )}
          </>
        }
      >
        {kind === 'dead_letters' && (
          <a
            class="button"
            href={linkTo('deadLetters', { reason: id.split(':')[1]!, since: '1h', select: 'all' })}
          >
            Look and replay
          </a>
        )}
        <button
          type="button"
          class="button"
          aria-expanded={isOpen}
          aria-label={`${toggle}: ${title}`}
          onClick={() => setOpen(!isOpen)}
        >
          {toggle}
        </button>
      </Row>
      {isOpen && <ProblemsOf cause={cause} act={act} reload={reload} />}
    </>
  )
}

const listed = 50

/** Each problem of a cause, asked for when somebody wants to see them. */
function ProblemsOf({ cause: { id, title }, act, reload }: Parameters<typeof CauseRow>[0]) {
  const live = useLive('GET /problems', { query: { cause: id, limit: listed } })
  const changed = () => {
    live.reload()
    reload()
  }
  return (
    <Loaded live={live} what="each of them">
      {({ problems, omitted }) => (
        <>
          <ul class="problems problems-of-cause" aria-label={title}>
            {problems.map((problem) => (
              <li key={problem.id} class={problem.seen ? 'is-seen' : ''}>
                <ProblemRow problem={problem} act={act(problem)} reload={changed} />
              </li>
            ))}
          </ul>
          {omitted > 0 && (
            <p class="problems-more faint">
              and {countText(omitted)} more:{' '}
              <a href={pathTo('destinations')}>all destinations, the worst first</a>
            </p>
          )}
        </>
      )}
    </Loaded>
  )
}

function Acting({ acting: { what, problem }, close }: { acting: Acting; close: () => void }) {
  if (what === 'finish') return <FinishDialog id={problem.subject!} close={close} />
  const of = { id: problem.destinationId!, name: problem.destinationName!, close }
  if (what === 'pause') return <Lazy load={pauseDialog} what="the dialog" props={of} />
  if (what === 'resume') return <Lazy load={resumeDialog} what="the dialog" props={of} />
  return <Lazy load={tryAgainDialog} what="the dialog" props={of} />
}

interface RowProps {
  problem: ProblemAnswer
  act: (what: Act) => void
  reload: () => void
}

/** The word of its badge. */
const words: Record<ProblemAnswer['kind'], string> = {
  ledger_unread: 'not known',
  no_collector: 'stopped',
  no_forwarder: 'stopped',
  nothing_read: 'starting',
  partitions_unread: 'not read',
  unaccounted: 'unaccounted',
  destination: 'destination',
  refused: 'refused',
  lag: 'lag',
  overdue: 'past due',
  slow: 'slow',
  deletes_failed: 'not deleted',
  dead_letters: 'dead letters',
  audit: 'audit',
  deletion: 'interrupted',
}

/** What has happened, and does not go on. */
const isOfThePast: ReadonlySet<ProblemAnswer['kind']> = new Set(['dead_letters', 'deletes_failed'])

function ProblemRow({ problem, act, reload }: RowProps) {
  const { kind, isUrgent, title, text, since, seen, destination, destinationId, destinationName } = problem
  const isOfDestination = kind === 'destination' && destination !== null
  return (
    <Row
      badge={
        isOfDestination ? (
          <HealthBadge health={destination.health} />
        ) : (
          <Badge tone={isUrgent ? 'bad' : 'warn'} text={words[kind]} />
        )
      }
      title={
        destinationId === null ? (
          title
        ) : (
          <a href={pathTo('destination', { id: destinationId })}>{destinationName}</a>
        )
      }
      text={
        <>
          {text !== '' && <p>{withCode(text)}</p>}
          {isOfDestination && <DestinationText destination={destination} />}
          {since !== null && kind !== 'destination' && (
            <p>
              {isOfThePast.has(kind) ? (
                <>
                  The newest <Ago at={since} />.
                </>
              ) : (
                <>
                  It has been so <Since at={since} />.
                </>
              )}
            </p>
          )}
          {seen && (
            <p>
              Seen by <span class="foreign">{seen.by}</span>, <Ago at={seen.at} />. Shown until it changes.
            </p>
          )}
        </>
      }
    >
      <Actions problem={problem} act={act} />
      {!seen && may('operator') && !isLimited() && <Acknowledge problem={problem} reload={reload} />}
    </Row>
  )
}

/** Commands stand between back ticks. */
const withCode = (text: string): ComponentChildren[] =>
  text.split('`').map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part))

function Acknowledge({ problem: { id, title }, reload }: { problem: ProblemAnswer; reload: () => void }) {
  const acknowledge = async () => {
    try {
      await request('POST /problems/{id}/acknowledge', { id })
      say(`Noted that you have seen it: ${title}`)
    } catch (error) {
      say(sentence(error instanceof Error ? error.message : String(error)), 'bad')
    }
    reload()
  }
  return (
    <button type="button" class="button button-quiet" aria-label={`Seen: ${title}`} onClick={acknowledge}>
      Seen
    </button>
  )
}

function Actions({ problem: { kind, destinationId, destination }, act }: Omit<RowProps, 'reload'>) {
  switch (kind) {
    case 'destination':
      return <DestinationActions word={destination?.health.word} act={act} />
    case 'slow':
      return may('admin') ? (
        <a class="button" href={`${pathTo('destination', { id: destinationId! })}?view=settings`}>
          Limit it
        </a>
      ) : null
    case 'dead_letters':
    case 'deletes_failed': {
      const since = kind === 'dead_letters' ? { since: '1h' } : {}
      const only = destinationId === null ? {} : { destination: destinationId }
      return (
        <a class="button" href={linkTo('deadLetters', { ...only, ...since, select: 'all' })}>
          Look and replay
        </a>
      )
    }
    case 'audit':
    case 'unaccounted':
      return (
        <a class="button" href={pathTo('audit')}>
          See which
        </a>
      )
    case 'deletion':
      return may('admin') ? (
        <button type="button" class="button" onClick={() => act('finish')}>
          Finish it
        </button>
      ) : null
    case 'partitions_unread':
    case 'no_collector':
    case 'no_forwarder':
      return (
        <a class="button" href={pathTo('system')}>
          What runs
        </a>
      )
    default:
      return null
  }
}

/** One thing that needs somebody: its state, what it is, and the buttons that act. */
function Row({
  badge,
  title,
  text,
  children,
}: {
  badge: ComponentChildren
  title: ComponentChildren
  text: ComponentChildren
  children: ComponentChildren
}) {
  return (
    <div class="problem">
      <div class="problem-state">{badge}</div>
      <div class="problem-text">
        <p class="problem-title foreign">{title}</p>
        <div class="faint">{text}</div>
      </div>
      <div class="problem-actions">{children}</div>
    </div>
  )
}

/** Resumes a deletion that was interrupted. */
function FinishDialog({ id, close }: { id: string; close: () => void }) {
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

/** Since when it is held, or its URLs are not well, and what they answered. */
function DestinationText({ destination }: { destination: NonNullable<ProblemAnswer['destination']> }) {
  const { health, pause, urls, urlsOmitted, queued } = destination
  return (
    <>
      {health.word === 'held' && pause && (
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
      {health.word !== 'held' && urls.map((url) => <UrlText key={url.urlId} url={url} />)}
      {health.word !== 'held' && urlsOmitted > 0 && <p>{`and ${countOf(urlsOmitted, 'more URL')}.`}</p>}
      {queued > 0 && <p>{countOf(queued, 'attempt')} wait in forwarders.</p>}
    </>
  )
}

function DestinationActions({ word, act }: { word: string | undefined; act: (what: Act) => void }) {
  if (word === 'held')
    return may('operator') ? (
      <button type="button" class="button" onClick={() => act('resume')}>
        Resume
      </button>
    ) : null
  if (word === 'gone')
    return may('admin') ? (
      <button type="button" class="button" onClick={() => act('try_again')}>
        Try again
      </button>
    ) : null
  return may('operator') ? (
    <button type="button" class="button" onClick={() => act('pause')}>
      Pause
    </button>
  ) : null
}
