// What needs somebody, worst first. Pure: what it is made from is read by `facts.ts`.
import { durationText } from '../../core/duration.ts'
import { isSeen, type Acknowledgement } from '../../core/problems/acknowledgement.ts'
import { healthRank, healthSentence, healthText, isWell, type Health } from '../../core/statistics/health.ts'
import type { OpenDeadLetters } from '../statistics/series.ts'

export const problemKinds = [
  'ledger_unread',
  'no_collector',
  'no_forwarder',
  'nothing_read',
  'partitions_unread',
  'unaccounted',
  'destination',
  'refused',
  'lag',
  'overdue',
  'slow',
  'deletes_failed',
  'dead_letters',
  'audit',
  'deletion',
] as const
export type ProblemKind = (typeof problemKinds)[number]

export interface Problem {
  /** The same as long as it is the same problem, whoever looks. */
  id: string
  kind: ProblemKind
  /** The same for problems that have one cause, as far as that can be seen. */
  cause: string
  /** Nothing of it can wait; or somebody has to know of it. */
  isUrgent: boolean
  title: string
  /** Sentences. */
  text: string
  destinationId: string | null
  sourceId: string | null
  /** Of what it is about, such as a deletion. */
  subject: string | null
  /** Since when it has been as it is, epoch ms; null where that is not known. */
  since: number | null
  /** Since when at the latest, where nobody knows better: what was seen later than that is still the same. */
  sameSince?: number | null
  /** How many it is about, where it counts something. */
  size: number | null
}

/** Without a cause it is one by itself. */
type FoundProblem = Omit<Problem, 'cause'> & { cause?: string }

export interface ShownProblem extends Omit<Problem, 'sameSince'> {
  /** Null where nobody has seen it as it is. */
  seen: Pick<Acknowledgement, 'by' | 'at'> | null
}

/** A part that must run, and when it was seen to run last: epoch ms, null for never within the day. */
export interface LastPart {
  isLive: boolean
  seenAt: number | null
}

/** A destination that is not well, or slow. Times are epoch ms. */
export interface TroubledDestination {
  id: string
  name: string
  health: Health
  /** Since when it is paused; null where it is not. */
  pausedSince: number | null
  /** Of the first of its URLs that is not well. */
  host: string
  urls: readonly { downSince: number | null; goneAt: number | null }[]
  queued: number
  /** Within the last hour. */
  deferred: number
}

export interface ProblemInput {
  destinations: readonly TroubledDestination[]
  /** The name of any destination; its id where there is none of it any more. */
  nameOf(id: string): string
  /** Calls that are not finished; null where that is not known. */
  lag: number | null
  /** For how long the retry that is most overdue has been due; null where that is not known. */
  retriesOverdueMs: number | null
  /** By destination, what waits in the retry tiers; null where it was not counted. */
  waiting: ReadonlyMap<string, number> | null
  /** How old what the ledger says is, in ms; null before it was read once. */
  ageMs: number | null
  collector: LastPart
  forwarder: LastPart
  /** Live forwarders read calls. */
  readsCalls: boolean
  unread: { topic: string; partition: number; reader: string; seenAt: number }[]
  /** Deliveries of the last hour that came in and became nothing. */
  unaccounted: readonly { destinationId: string; count: number }[]
  /** By destination: since when its outcomes have been bad; null where that lies before what was looked through. */
  badSince: ReadonlyMap<string, { since: number | null; lookedFrom: number }>
  /** What collectors refused in the last ten minutes, with when that began. */
  refusals: { sourceId: string; name: string | null; reasons: Record<string, number>; since: number }[]
  /** Of the last hour. */
  deadLetters: readonly OpenDeadLetters[]
  failedDeletes: readonly OpenDeadLetters[]
  /** Records of the last hour that became dead letters and were for no destination. */
  lostRecords: number
  /** Null while it is not known. */
  audit: { ok: boolean; at: number; faults: number } | null
  /** Those that are not finished. */
  deletions: readonly { requestId: string; at: number; users: number }[]
  /** Calls a second that forwarders finish, of late. */
  pace: number
  acknowledgements: ReadonlyMap<string, Acknowledgement>
  /** Epoch ms. */
  now: number
}

/** What the ledger says is too old to be shown as the present, in ms. */
const staleMs = 60_000
/** A backlog that the forwarders work off within that is none to act on, in seconds. */
const harmlessSeconds = 30
/** A deletion that is being written looks like one that was interrupted, in ms. */
const writingMs = 300_000

export function problemsOf(input: ProblemInput): ShownProblem[] {
  const { acknowledgements, now } = input
  return [...found(input)].map(({ sameSince, cause, ...rest }) => {
    const problem = { ...rest, cause: cause ?? rest.id }
    const acknowledged = acknowledgements.get(problem.id)
    const { since, size } = problem
    const seen = isSeen({ changedAt: since ?? sameSince ?? null, size }, acknowledged, now)
    return { ...problem, seen: seen ? { by: acknowledged!.by, at: acknowledged!.at } : null }
  })
}

const nothingMore = { destinationId: null, sourceId: null, subject: null, since: null, size: null }

function* found(input: ProblemInput): Generator<FoundProblem> {
  const { ageMs, nameOf, now } = input
  // Before the ledger was read once nothing can be said, not even that all is well.
  if (ageMs === null) return
  if (ageMs > staleMs)
    yield {
      ...{ id: 'ledger_unread', kind: 'ledger_unread', isUrgent: true, ...nothingMore, since: now - ageMs },
      title: 'The ledger cannot be read',
      text:
        `What is shown is ${durationText(ageMs)} old: Kafka or the schema registry does not answer. While Kafka is away, ` +
        'collectors refuse calls and nothing is delivered; nothing that was accepted is lost.',
    }
  // What is old says nothing of the parts that run now.
  else yield* partsMissing(input)
  for (const { destinationId, count } of input.unaccounted)
    yield {
      ...{ id: `unaccounted:${destinationId}`, kind: 'unaccounted', isUrgent: true, ...nothingMore },
      ...{ cause: 'unaccounted', destinationId, size: count },
      title: `${nameOf(destinationId)}: ${count} unaccounted for`,
      text: `Within the hour ${countOf(count, 'call')} came in and became nothing: an audit names the offsets.`,
    }
  yield* destinationsInTrouble(input)
  yield* deletesFailed(input)
  yield* deadLetters(input)
  yield* refused(input)
  yield* waiting(input)
  yield* slow(input)
  const { audit } = input
  if (audit && !audit.ok)
    yield {
      ...{ id: 'audit', kind: 'audit', isUrgent: true, ...nothingMore, since: audit.at, size: audit.faults },
      title: 'Calls are not accounted for',
      text: `An audit found ${countOf(audit.faults, 'fault')}, and none that looked there has passed since.`,
    }
  for (const { requestId, at, users } of input.deletions)
    if (now - at > writingMs)
      yield {
        ...{ id: `deletion:${requestId}`, kind: 'deletion', isUrgent: true, ...nothingMore },
        ...{ cause: 'deletion', subject: requestId, since: at, size: null },
        title: `Deletion ${requestId} was interrupted`,
        text: `Of ${countOf(users, 'user')}: destinations were not asked to forget all of them.`,
      }
}

function* partsMissing({ collector, forwarder, readsCalls, unread }: ProblemInput): Generator<FoundProblem> {
  if (!collector.isLive)
    yield {
      ...{
        id: 'no_collector',
        kind: 'no_collector',
        isUrgent: true,
        ...nothingMore,
        since: collector.seenAt,
      },
      // For days, or never: calls may come to Kafka on another way.
      sameSince: 0,
      title: 'No collector is running',
      text: 'Nobody takes calls: senders keep them for a while, browsers lose them. Start one: `npx postrider collector`.',
    }
  if (!forwarder.isLive)
    yield {
      ...{
        id: 'no_forwarder',
        kind: 'no_forwarder',
        isUrgent: true,
        ...nothingMore,
        since: forwarder.seenAt,
      },
      title: 'No forwarder is running',
      text: 'Calls wait in Kafka; nothing is lost. Start one: `npx postrider forwarder`.',
    }
  else if (!readsCalls)
    yield {
      ...{ id: 'nothing_read', kind: 'nothing_read', isUrgent: true, ...nothingMore },
      title: 'No forwarder reads calls yet',
      text: 'Forwarders are running, and share out the partitions. That takes less than a minute; nothing is lost.',
    }
  else if (unread.length > 0) {
    const topics = Map.groupBy(unread, ({ topic }) => topic)
    const parts = [...topics].map(([topic, all]) => `${all.length} of ${topic}`)
    const readers = [...new Set(unread.map(({ reader }) => reader))]
    yield {
      ...{ id: 'partitions_unread', kind: 'partitions_unread', isUrgent: true, ...nothingMore },
      ...{ since: Math.max(...unread.map(({ seenAt }) => seenAt)), size: unread.length },
      title: `${countOf(unread.length, 'partition')} ${unread.length === 1 ? 'is' : 'are'} read by nobody`,
      text: `${parts.join(', ')}: what lies there waits. ${readers.slice(0, 3).join(', ')} read them last.`,
    }
  }
}

function* destinationsInTrouble({ destinations, badSince }: ProblemInput): Generator<FoundProblem> {
  const troubled = destinations.filter(
    // What holds for all of them is raised once.
    ({ health: { word, why } }) => !isWell({ word }) && word !== 'not_known' && why !== 'partitions_unread',
  )
  for (const { id, name, health, pausedSince, host, urls } of troubled.toSorted(
    (a, b) => healthRank(a.health) - healthRank(b.health),
  )) {
    const { word, why } = health
    const downSince = urls.flatMap((url) => url.downSince ?? url.goneAt ?? [])
    const since =
      word === 'held'
        ? pausedSince
        : word === 'gone'
          ? latest(urls.flatMap(({ goneAt }) => goneAt ?? []))
          : word === 'down' || why === 'some_urls'
            ? latest(downSince)
            : (badSince.get(id)?.since ?? null)
    // Tenants often have their endpoints at one host: what is wrong with it is one cause.
    const cause = word === 'held' ? [word] : [word, why === 'no_token' ? why : '', host]
    yield {
      ...{ id: `destination:${id}:${word}`, kind: 'destination', ...nothingMore, destinationId: id, since },
      cause: `destination:${cause.join(':')}`,
      sameSince: badSince.get(id)?.lookedFrom ?? null,
      isUrgent: word === 'gone' || word === 'down' || word === 'failing',
      title: `${name} is ${healthText(health)}`,
      text: healthSentence(health) ?? '',
    }
  }
}

const latest = (all: readonly number[]): number | null => (all.length === 0 ? null : Math.max(...all))

/** Codes of answers that are no trouble: what was asked for. */
const wanted = new Set(['suppressed', 'bot', 'source_disabled'])
/** These are our own fault, and not the sender's. */
const ours = new Set(['unavailable', 'overloaded'])

function* refused({ refusals }: ProblemInput): Generator<FoundProblem> {
  for (const { sourceId, name, reasons, since } of refusals) {
    const counted = Object.entries(reasons).filter(([code, count]) => count > 0 && !wanted.has(code))
    if (counted.length === 0) continue
    const codes = counted.map(([code]) => code).toSorted()
    const list = counted
      .toSorted(([, a], [, b]) => b - a)
      .map(([code, count]) => `${count} ${code.replaceAll('_', ' ')}`)
    yield {
      ...{ id: `refused:${sourceId}:${codes.join('+')}`, kind: 'refused', ...nothingMore, sourceId, since },
      cause: `refused:${codes.join('+')}`,
      isUrgent: codes.some((code) => ours.has(code)),
      title: `Collectors refuse calls of ${name ?? 'senders without a known write key'}`,
      text: `Within ten minutes: ${list.join(', ')}.`,
    }
  }
}

function* waiting({ lag, retriesOverdueMs, pace, now }: ProblemInput): Generator<FoundProblem> {
  const seconds = lag === null || pace === 0 ? null : lag / pace
  if (lag !== null && lag > 0 && (seconds === null || seconds > harmlessSeconds))
    yield {
      ...{ id: 'lag', kind: 'lag', isUrgent: seconds === null, ...nothingMore },
      title: `${countOf(lag, 'call')} ${lag === 1 ? 'waits' : 'wait'} for a forwarder`,
      text:
        seconds === null
          ? 'None was finished within five minutes.'
          : `At the pace of the last five minutes that is ${durationText(seconds * 1_000)} of work.`,
    }
  if (retriesOverdueMs !== null && retriesOverdueMs > harmlessSeconds * 1_000)
    yield {
      ...{ id: 'overdue', kind: 'overdue', isUrgent: true, ...nothingMore, since: now - retriesOverdueMs },
      title: 'Retries are not sent in time',
      text: `The most overdue one has been due for ${durationText(retriesOverdueMs)}. Forwarders are too busy or too few, or have stopped.`,
    }
}

/** Their URLs answer, but not as fast as calls come: those were put off so that others go on, and more wait still. */
function* slow({ destinations }: ProblemInput): Generator<FoundProblem> {
  for (const { id, name, health, queued, deferred } of destinations)
    if (isWell(health) && queued > 0 && deferred > 0)
      yield {
        ...{ id: `slow:${id}`, kind: 'slow', isUrgent: false, ...nothingMore, destinationId: id },
        cause: 'slow',
        title: `${name} is slow`,
        text:
          `It answers more slowly than its calls come. ${countOf(queued, 'attempt')} wait in forwarders; within an hour, ` +
          `${deferred} were put off so that other destinations need not wait. If it answers faster with less at once, limit its requests.`,
      }
}

function* deletesFailed({ nameOf, failedDeletes }: ProblemInput): Generator<FoundProblem> {
  for (const { id, all, count, lastAt } of byDestination(failedDeletes))
    yield {
      ...{ id: `deletes_failed:${id}`, kind: 'deletes_failed', isUrgent: true, ...nothingMore },
      ...{ cause: 'deletes_failed', destinationId: id, since: lastAt, size: count },
      title: `${nameOf(id)} was not told to forget ${countOf(count, 'user')}`,
      text: `Delete calls that failed finally: ${reasonsOf(all)}. They can be replayed.`,
    }
}

function* deadLetters({ nameOf, deadLetters: open, lostRecords }: ProblemInput): Generator<FoundProblem> {
  for (const { id, all, count, lastAt } of byDestination(open).toSorted((a, b) => b.count - a.count))
    yield {
      ...{ id: `dead_letters:${id}`, kind: 'dead_letters', isUrgent: true, ...nothingMore },
      ...{ cause: `dead_letters:${usualReason(all)}`, destinationId: id, since: lastAt, size: count },
      title: `${nameOf(id)}: ${countOf(count, 'dead letter')}`,
      text: `${countOf(count, 'dead letter')} within an hour: ${reasonsOf(all)}.`,
    }
  if (lostRecords > 0)
    yield {
      ...{ id: 'dead_letters', kind: 'dead_letters', isUrgent: true, ...nothingMore, size: lostRecords },
      title: `${countOf(lostRecords, 'record')} could not be worked on`,
      text: 'Within an hour. They are dead letters without a destination: their source is unknown, or they cannot be read.',
    }
}

/** Of most of them. */
const usualReason = (all: readonly OpenDeadLetters[]): string =>
  all.reduce((most, each) => (each.count > most.count ? each : most)).reason

const reasonsOf = (all: readonly OpenDeadLetters[]): string =>
  all.length === 1
    ? all[0]!.reason.replaceAll('_', ' ')
    : all
        .toSorted((a, b) => b.count - a.count)
        .map(({ reason, count }) => `${count} ${reason.replaceAll('_', ' ')}`)
        .join(', ')

const byDestination = (open: readonly OpenDeadLetters[]) =>
  [...Map.groupBy(open, ({ destinationId }) => destinationId)].map(([id, all]) => ({
    id,
    all,
    count: all.reduce((sum, each) => sum + each.count, 0),
    lastAt: Math.max(...all.map(({ lastAt }) => lastAt)),
  }))

/** Problems that have one cause. */
export interface Cause {
  /** As its problems name it. */
  id: string
  title: string
  /** Sentences; empty where its problems have none in common, as where each has numbers of its own. */
  text: string
  isUrgent: boolean
  /** Destinations that it is about. */
  destinations: number
  /** How many are counted in its problems together; null where none counts anything. */
  size: number | null
  /** Calls for its destinations that wait in retry tiers; null where they were not counted, or are not what it is about. */
  waits: number | null
  /** Of the first of its problems, but of what has happened and does not go on the newest: epoch ms; null where that is not known. */
  since: number | null
  /** In their order, those first that nobody has seen. */
  problems: readonly ShownProblem[]
}

/**
 * The problems by their causes. What nobody has seen comes first; then in the order of the problems, but of destinations that
 * are in the same trouble the cause first that most of them have.
 */
export function causesOf(problems: readonly ShownProblem[], waiting: ProblemInput['waiting']): Cause[] {
  const classes = new Map<string, number>()
  const causes = [...Map.groupBy(problems, ({ cause }) => cause)].map(([id, members], index) => {
    const cause = causeOf(id, members, waiting)
    const [kind, word] = id.split(':')
    const like = kind === 'destination' ? `${kind}:${word}` : id
    if (!classes.has(like)) classes.set(like, index)
    return { cause, ranks: [isSeenWhole(cause) ? 1 : 0, classes.get(like)!, -members.length] }
  })
  return causes
    .toSorted((a, b) => a.ranks.reduce((found, rank, index) => found || rank - b.ranks[index]!, 0))
    .map(({ cause }) => cause)
}

export const isSeenWhole = ({ problems }: Pick<Cause, 'problems'>): boolean => problems[0]!.seen !== null

function causeOf(id: string, members: readonly ShownProblem[], waiting: ProblemInput['waiting']): Cause {
  const problems = members.toSorted((a, b) => Number(a.seen !== null) - Number(b.seen !== null))
  const first = problems[0]!
  const sizes = members.flatMap(({ size }) => size ?? [])
  const size = sizes.length === 0 ? null : sizes.reduce((sum, each) => sum + each, 0)
  const ids = new Set(members.flatMap(({ destinationId }) => destinationId ?? []))
  const times = members.flatMap(({ since }) => since ?? [])
  const isWaitedFor = first.kind === 'destination' || first.kind === 'slow'
  const isOfThePast = first.kind === 'dead_letters' || first.kind === 'deletes_failed'
  const texts = new Set(members.map(({ text }) => text))
  const isOfAll = members.length === 1 || (first.kind === 'destination' && texts.size === 1)
  return {
    id,
    title: members.length === 1 ? first.title : titleOf(first, members.length, size ?? 0),
    text: isOfAll ? first.text : '',
    isUrgent: members.some(({ isUrgent }) => isUrgent),
    destinations: ids.size,
    size,
    waits: isWaitedFor && waiting ? [...ids].reduce((sum, each) => sum + (waiting.get(each) ?? 0), 0) : null,
    since:
      times.length === 0 ? null : times.reduce((a, b) => (isOfThePast ? Math.max(a, b) : Math.min(a, b))),
    problems,
  }
}

/** Of several. */
function titleOf({ kind, cause, title }: ShownProblem, count: number, size: number): string {
  const [, word = '', , ...host] = cause.split(':')
  const destinations = countOf(count, 'destination')
  switch (kind) {
    case 'destination': {
      const at = host.length === 0 ? '' : ` at ${host.join(':')}`
      return `${destinations}${at} are ${word.replaceAll('_', ' ')}`
    }
    case 'unaccounted':
      return `${destinations}: ${size} unaccounted for`
    case 'deletes_failed':
      return `${destinations} were not told to forget ${countOf(size, 'user')}`
    case 'dead_letters':
      return `${destinations}: ${countOf(size, 'dead letter')}, most of them ${word.replaceAll('_', ' ')}`
    case 'slow':
      return `${destinations} are slow`
    case 'refused':
      return `Collectors refuse calls of ${countOf(count, 'source')}`
    case 'deletion':
      return `${countOf(count, 'deletion')} were interrupted`
    default:
      return title
  }
}

const countOf = (count: number, one: string): string => `${count} ${one}${count === 1 ? '' : 's'}`

/**
 * The first sentence about all of it. "All well" is said only where the ledger was read, every part that must run is
 * seen to, and nobody has to know of anything.
 */
export function headlineOf(problems: readonly ShownProblem[], isKnown: boolean): string {
  if (!isKnown) return 'The ledger is being read for the first time'
  const open = problems.filter(({ seen }) => seen === null)
  if (problems.length === 0) return 'All well'
  if (open.length === 0)
    return problems.length === 1
      ? 'Nothing new: one thing was seen'
      : `Nothing new: ${problems.length} things were seen`
  const destinations = new Set(open.flatMap(({ destinationId }) => destinationId ?? [])).size
  const others = open.filter(({ destinationId }) => destinationId === null).length
  const parts = [
    destinations > 0 && `${destinations} ${destinations === 1 ? 'destination' : 'destinations'}`,
    others > 0 && `${others}${destinations > 0 ? ' other' : ''} ${others === 1 ? 'thing' : 'things'}`,
  ].filter(Boolean)
  return `${parts.join(' and ')} ${destinations + others === 1 ? 'needs' : 'need'} you`
}
