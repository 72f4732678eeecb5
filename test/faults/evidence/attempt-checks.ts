import { deadLetterReasons } from '../../../src/core/delivery/delivery.ts'
import { parseDuration } from '../../../src/core/duration.ts'
import { answers } from '../load/answers.ts'
import type { Slot } from '../load/destinations.ts'
import { answerOf, isUrl, type Evidence, type Written } from './evidence.ts'
import type { CommitWatch } from '../watch/commit-watch.ts'
import type { Findings } from './findings.ts'
import type { OwnerWatch } from '../watch/owner-watch.ts'
import { sessionTimeoutMs, tierSets, type Rig } from '../rig.ts'
import type { Injected } from '../schedule.ts'

/** The rows of one delivery. */
export interface DeliveryEvidence {
  name: string
  slot: Slot
  calls: readonly Written[]
  arrivals: Int32Array
  retryRecords: Int32Array
  deadLetters: Int32Array
  /** All that is known of it, for a finding. */
  dossier: () => string[]
}

interface Context {
  evidence: Evidence
  watch: CommitWatch
  owners: OwnerWatch
  rig: Rig
  findings: Findings
  injected: readonly Injected[]
  patience: number
}

/** Clocks of this machine are read by several processes, in whole ms. */
const roundingMs = 2
const skewMs = 1_000
/** How long requests of one round may be apart, in ms: queued for 2 s, and some more. */
export const roundMs = 3_000
/**
 * A member that does not hear of the end of a rebalance goes on with what it had, until its last heartbeat is two
 * thirds of a session old; and what it sent then is on its way for a moment.
 */
const staleMs = (sessionTimeoutMs * 2) / 3 + 1_000
/** A delivery ends for these with its window only. */
const atWindowEnd = new Set(
  (['expired', 'not_attempted', 'tls', 'blocked', 'proxy', 'no_token'] as const).map((reason) =>
    deadLetterReasons.indexOf(reason),
  ),
)
const notAttempted = deadLetterReasons.indexOf('not_attempted')
const noToken = deadLetterReasons.indexOf('no_token')
const smallest = tierSets.map((set) => Math.min(...set.split(',').map((tier) => parseDuration(tier)!)))

/** A record can be appended so long after it was made, in ms; more than that is a clock that was off. */
const maxUnwrittenMs = 120_000

/** When a record was made that was appended `at` and says `madeAt`, in epoch ms. */
export const madeBefore = (at: number, madeAt: number): number =>
  Math.min(at, Math.max(madeAt, at - maxUnwrittenMs))

type Known = Pick<Context, 'evidence' | 'owners' | 'rig' | 'watch'>

/** The records of a delivery: its call, and each scheduled retry. Times in epoch ms. */
interface RecordSpan {
  topic: string
  partition: number
  /** When it was appended: long after it was made, where its leader could not be reached. */
  at: number
  madeAt: number
  finishedBy: number
}

export function spansOf({ evidence, rig, watch }: Known, delivery: DeliveryEvidence): RecordSpan[] {
  const { retryRecords, tierTopics } = evidence
  const span = (topic: string, partition: number, offset: number, at: number, madeAt = at): RecordSpan => ({
    ...{ topic, partition, at, madeAt: madeBefore(at, madeAt) },
    finishedBy: watch.finishedBy(topic, partition, offset),
  })
  return [
    ...delivery.calls.map(({ partition, offset, at }) => span(rig.topics.calls, partition, offset, at)),
    ...[...delivery.retryRecords].map((row) =>
      span(
        tierTopics[retryRecords.get('topic', row)]!.topic,
        retryRecords.get('partition', row),
        retryRecords.get('offset', row),
        retryRecords.get('at', row),
        retryRecords.get('scheduledAt', row),
      ),
    ),
  ]
}

/**
 * Whether a record of the delivery got another owner between the two requests (epoch ms), or between the making of the
 * scheduled retry that follows it and its commit: then both of them were open, and each was sent.
 */
export function hasMoved(known: Known, delivery: DeliveryEvidence, first: number, at: number): boolean {
  const moved = ({ topic, partition }: RecordSpan, from: number, to: number) =>
    known.owners.movedBetween(topic, partition, from - staleMs, to)
  const spans = spansOf(known, delivery)
  return spans.some((span) => {
    if (moved(span, first, at)) return true
    // Its next owner did it again, while what the one before had made of it, or what became of that, went on.
    const later = spans.filter((next) => next.at > span.at)
    const made = Math.min(...later.map((next) => next.madeAt))
    const isOpen = (each: RecordSpan) => each.finishedBy >= first
    return isOpen(span) && later.some(isOpen) && moved(span, made, span.finishedBy)
  })
}

/** Checks each attempt and each scheduled retry of a delivery. True when a clock was too far off to judge times. */
export function checkAttempts(context: Context, delivery: DeliveryEvidence): boolean {
  const during = faultsDuring(context, delivery)
  const clocksFarOff = hadClockFarOff(during)
  const tolerance = during.some(({ kind }) => kind === 'clock-skewed') ? 2 * skewMs : roundingMs
  checkPlaces(context, delivery, clocksFarOff ? null : tolerance)
  checkBytes(context, delivery)
  if (clocksFarOff) return true
  checkRounds(context, delivery, tolerance)
  checkWindows(context, delivery, tolerance)
  return false
}

type Injecting = Pick<Context, 'evidence' | 'injected' | 'rig'>

/** What was injected in the life of a delivery, or shortly before. */
export function faultsDuring(context: Injecting, delivery: DeliveryEvidence): readonly Injected[] {
  const { from, to } = lifeOf(context, delivery)
  return context.injected.filter((fault) => fault.from <= to && fault.to + context.rig.windowMs >= from)
}

export const hadClockFarOff = (during: readonly Injected[]): boolean =>
  during.some(({ kind }) => kind === 'clock-jumped')

function lifeOf(
  { evidence }: Pick<Context, 'evidence'>,
  { calls, arrivals, deadLetters, retryRecords }: DeliveryEvidence,
) {
  const from = calls[0]!.at
  let to = from
  for (const row of arrivals) to = Math.max(to, evidence.arrivals.get('at', row))
  for (const row of retryRecords) to = Math.max(to, evidence.retryRecords.get('at', row))
  for (const row of deadLetters) to = Math.max(to, evidence.deadLetters.get('at', row))
  return { from, to }
}

/** Whoever sends has a record for it, of the calls or of a tier, whose time has come and that no commit holds as finished yet. */
function checkPlaces(context: Context, delivery: DeliveryEvidence, tolerance: number | null): void {
  const { evidence, watch, rig, findings } = context
  const { arrivals, retryRecords, tierTopics } = evidence
  const isOpen = (at: number): boolean =>
    delivery.calls.some(
      (call) =>
        call.at <= at + roundingMs && watch.finishedBy(rig.topics.calls, call.partition, call.offset) >= at,
    ) ||
    delivery.retryRecords.some((record) => {
      const { topic } = tierTopics[retryRecords.get('topic', record)]!
      const partition = retryRecords.get('partition', record)
      const finishedBy = watch.finishedBy(topic, partition, retryRecords.get('offset', record))
      const from = tolerance === null ? retryRecords.get('at', record) : dueAt(context, record) - tolerance
      return from <= at + roundingMs && finishedBy >= at
    })
  const { destination, url: only } = delivery.slot
  const together = only === null && destination.urls.length > 1
  const longestMs = roundMs * context.patience
  for (const [index, row] of delivery.arrivals.entries()) {
    const at = arrivals.get('at', row)
    if (
      isOpen(at) ||
      (together && wasQueuedWithAnother(arrivals, delivery.arrivals, { index, isOpen, longestMs }))
    )
      continue
    if (!wasJustWritten(context, row))
      findings.add('sent without an open record', `${delivery.name} at ${at}`, delivery.dossier)
  }
}

/**
 * Once one URL of a delivery took it, the others' requests that were queued with it still go out: when, is up to how fast
 * each URL takes what is before them. Such a request comes from the process that sent to another URL while the record
 * was open, and is its first since then, or its next after some that were without an answer; within `longestMs` it may be another.
 */
export function wasQueuedWithAnother(
  arrivals: Evidence['arrivals'],
  rows: ArrayLike<number>,
  { index, isOpen, longestMs }: { index: number; isOpen: (at: number) => boolean; longestMs: number },
): boolean {
  const row = rows[index]!
  const isSame = (name: 'url' | 'sender', other: number) =>
    arrivals.get(name, other) === arrivals.get(name, row)
  let isFirst = true
  for (let before = index - 1; before >= 0; before--) {
    const other = rows[before]!
    if (isSame('url', other)) {
      isFirst &&= !isSame('sender', other) || mayBeSentAgain(arrivals, other)
      continue
    }
    const at = arrivals.get('at', other)
    const isSoon = arrivals.get('at', row) - at <= longestMs
    if (isOpen(at) && (isSoon || (isFirst && isSame('sender', other)))) return true
  }
  return false
}

/**
 * A connection that was kept and is closed without an answer, or brings what is no HTTP, costs no attempt: the same one is
 * sent once more (docs/http-client.md, Restarts).
 */
const mayBeSentAgain = (arrivals: Evidence['arrivals'], row: number): boolean =>
  ['reset', 'close', 'garbage', 'unknowable', 'cutRequest'].includes(answerOf(arrivals.get('answer', row)))

/**
 * A process that is frozen after its last look at who owns a record, and before the write that follows at once, writes that
 * one request when it goes on: the first that comes from it after it was silent for a session.
 */
export function wasJustWritten(
  { evidence: { arrivals }, injected }: Pick<Context, 'evidence' | 'injected'>,
  row: number,
): boolean {
  const at = arrivals.get('at', row)
  const sender = arrivals.get('sender', row)
  const from = at - sessionTimeoutMs
  const isFreeze = (fault: Injected) =>
    fault.kind === 'forwarder-frozen' && fault.from <= from && at <= fault.to
  if (!injected.some(isFreeze)) return false
  for (let other = 0; other < arrivals.length; other++) {
    const before = arrivals.get('at', other)
    if (other !== row && arrivals.get('sender', other) === sender && from <= before && before <= at)
      if (before < at || other < row) return false
  }
  return true
}

function checkBytes({ evidence, findings }: Context, delivery: DeliveryEvidence): void {
  const bodies = new Set([...delivery.arrivals].map((row) => evidence.arrivals.get('body', row)))
  if (bodies.size > 1) findings.add('other bytes at a later attempt', delivery.name, delivery.dossier)
}

/** Until it is taken: what comes after that is a repeat, which the verdict asks the cause of. */
function untilTaken(arrivals: Evidence['arrivals'], rows: readonly number[]): readonly number[] {
  const taken = rows.findIndex((row) => answers[answerOf(arrivals.get('answer', row))] === 'success')
  return taken < 0 ? rows : rows.slice(0, taken + 1)
}

/**
 * The same attempt may go out once more after such an answer: on another connection, with another token, or as one half of
 * a batch that was refused.
 */
function mayBeSentAgainInRound(arrivals: Evidence['arrivals'], row: number, { destination }: Slot): boolean {
  const answer = answerOf(arrivals.get('answer', row))
  return (
    mayBeSentAgain(arrivals, row) ||
    answer === 'status401' ||
    (answer === 'status400' && destination.batch !== null)
  )
}

/**
 * Whether a record of the delivery that was open at the first request (epoch ms), or came later, got another owner before a
 * commit held it. Then the one before may have begun a round of which no record knows, or have scheduled what the next one
 * sends as well.
 */
const mayHaveUnknownRounds = (known: Known, delivery: DeliveryEvidence, first: number): boolean =>
  spansOf(known, delivery).some(
    ({ topic, partition, at, finishedBy }) =>
      finishedBy >= first && known.owners.movedBetween(topic, partition, at - staleMs, finishedBy),
  )

/**
 * A URL gets one request in each round that reaches it, and each round but the first has its retry record. Where nothing
 * was repeated, requests and rounds are the same ones, and none of them is early. Where something was, or an owner was
 * lost before it could record its round, `checkPlaces` still checks requests against retry records.
 */
function checkRounds(context: Context, delivery: DeliveryEvidence, tolerance: number): void {
  const { evidence, findings } = context
  const { arrivals, retryRecords, deadLetters } = evidence
  const chain = [...delivery.retryRecords].sort(
    (a, b) => retryRecords.get('timesScheduled', a) - retryRecords.get('timesScheduled', b),
  )
  if (delivery.calls.length > 1 || delivery.deadLetters.length > 1) return
  if (chain.some((row, index) => retryRecords.get('timesScheduled', row) !== index + 1)) return
  const attempts = chain.map((row) => retryRecords.get('attempts', row))
  const [deadLetter] = delivery.deadLetters
  // Without a dead letter the last round was the one that delivered.
  attempts.push(
    deadLetter === undefined ? (attempts.at(-1) ?? 0) + 1 : deadLetters.get('attempts', deadLetter),
  )
  const urls = new Set([...delivery.arrivals].map((row) => arrivals.get('url', row)))
  for (const url of urls) {
    const rounds = [null, ...chain].filter(
      (row, round) =>
        attempts[round]! > (attempts[round - 1] ?? 0) &&
        (row === null || isUrl(retryRecords.get('urls', row), url)),
    )
    const its = [...delivery.arrivals].filter((row) => arrivals.get('url', row) === url)
    const came = its.map((row) => arrivals.get('at', row)).sort((a, b) => a - b)
    const sent = untilTaken(arrivals, its)
    const again = sent.filter((row) => mayBeSentAgainInRound(arrivals, row, delivery.slot)).length
    // What is parked has a round for each of these, and no record of it.
    const parked = evidence.ledger.failuresOf(arrivals.get('delivery', its[0]!))
    if (sent.length > rounds.length + parked + again && !mayHaveUnknownRounds(context, delivery, came[0]!))
      findings.add(
        'more requests than rounds',
        `${delivery.name}: ${sent.length} at URL ${url + 1} in ${rounds.length + parked} rounds`,
        delivery.dossier,
      )
    // A batch that is refused goes out again in halves, as the same attempt.
    const wasHalved =
      delivery.slot.destination.batch !== null &&
      its.some((row) => answerOf(arrivals.get('answer', row)) === 'status400')
    if (came.length !== rounds.length || its.some((row) => mayBeSentAgain(arrivals, row)) || wasHalved)
      continue
    for (const [index, row] of rounds.entries()) {
      const at = came[index]!
      if (row === null || at < retryRecords.get('scheduledAt', row) - tolerance) continue
      const early = dueAt(context, row) - at
      if (early > tolerance && !hasMoved(context, delivery, came[0]!, at))
        findings.add('too early', `${delivery.name} by ${early} ms at ${at}`, delivery.dossier)
    }
  }
}

/** When the retry may be tried: not before its tier is over, nor before the time that the receiver asked for. */
function dueAt({ evidence: { retryRecords, tierTopics }, rig }: Known, row: number): number {
  const base = retryRecords.get('scheduledAt', row) + tierTopics[retryRecords.get('topic', row)]!.delayMs
  const notBefore = retryRecords.get('notBefore', row)
  // Where no tier fits into what is left of the window, the last attempt is made at once.
  const fits = base + Math.max(...smallest) <= windowStart(historyOf(retryRecords, row)) + rig.windowMs
  return notBefore > base && fits ? notBefore : base
}

/** What retry records and dead letters have in common. */
interface Rows {
  get(name: 'attempts' | 'timesScheduled' | 'firstAttemptAt' | 'firstScheduledAt', row: number): number
}

const historyOf = (rows: Rows, row: number) => ({
  attempts: rows.get('attempts', row),
  timesScheduled: rows.get('timesScheduled', row),
  firstAttemptAt: rows.get('firstAttemptAt', row),
  firstScheduledAt: rows.get('firstScheduledAt', row),
})
type History = ReturnType<typeof historyOf>

function windowStart({ firstAttemptAt, firstScheduledAt }: History): number {
  if (firstAttemptAt < 0) return firstScheduledAt
  if (firstScheduledAt < 0) return firstAttemptAt
  return Math.min(firstAttemptAt, firstScheduledAt)
}

/** A record of a call that keeps the order of its user: it lies in no tier. */
export const isParked = ({ retryRecords, tierTopics }: Evidence, row: number): boolean =>
  tierTopics[retryRecords.get('topic', row)]!.isStrict

/** Counts go up by one from retry to retry, times of the beginning stay, and nothing leads beyond the window. */
function checkWindows(context: Context, delivery: DeliveryEvidence, tolerance: number): void {
  const { evidence: all, findings } = context
  const { retryRecords, deadLetters } = all
  const rows = [...delivery.retryRecords]
  const follows = (before: number, next: History, scheduled: number) => {
    const times = next.timesScheduled - retryRecords.get('timesScheduled', before)
    const attempts = next.attempts - retryRecords.get('attempts', before)
    // What is parked is tried from round to round without a record of each.
    const isNext = isParked(all, before)
      ? times >= scheduled && attempts <= times + 1 - scheduled
      : times === scheduled && attempts <= 1
    return isNext && attempts >= 0 && hasBegunAs(before, next)
  }
  const hasBegunAs = (before: number, next: History) =>
    [-1, next.firstAttemptAt].includes(retryRecords.get('firstAttemptAt', before)) &&
    retryRecords.get('firstScheduledAt', before) === next.firstScheduledAt
  for (const row of rows) {
    const next = historyOf(retryRecords, row)
    const isFirst = next.timesScheduled === 1
    if (!isFirst && !rows.some((before) => before !== row && follows(before, next, 1)))
      findings.add(
        'counts that do not follow',
        `${delivery.name}, retry ${next.timesScheduled}`,
        delivery.dossier,
      )
    const due = retryRecords.get('scheduledAt', row) + all.tierTopics[retryRecords.get('topic', row)]!.delayMs
    if (due > windowStart(next) + context.rig.windowMs + tolerance)
      findings.add('beyond the window', `${delivery.name}, retry ${next.timesScheduled}`, delivery.dossier)
  }
  for (const row of delivery.deadLetters) {
    const next = historyOf(deadLetters, row)
    if (next.timesScheduled > 0 && !rows.some((before) => follows(before, next, 0)))
      findings.add('counts that do not follow', `${delivery.name}, dead letter`, delivery.dossier)
    const reason = deadLetters.get('reason', row)
    const isGivenUp = atWindowEnd.has(reason)
    if (isGivenUp && reason !== noToken && (reason === notAttempted) !== (next.attempts === 0))
      findings.add('wrong reasons', `${delivery.name}: ${next.attempts} attempts`, delivery.dossier)
    const left = windowStart(next) + context.rig.windowMs - deadLetters.get('failedAt', row)
    if (isGivenUp && left - tolerance > Math.max(...smallest))
      findings.add('given up too early', `${delivery.name} with ${left} ms left`, delivery.dossier)
  }
}
