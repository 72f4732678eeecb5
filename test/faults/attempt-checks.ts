import { deadLetterReasons } from '../../src/core/delivery.ts'
import { parseDuration } from '../../src/core/duration.ts'
import type { Slot } from './destinations.ts'
import { isUrl, type Evidence, type Written } from './evidence.ts'
import type { CommitWatch } from './commit-watch.ts'
import type { Findings } from './findings.ts'
import { tierSets, windowMs, type Rig } from './rig.ts'
import type { Injected } from './schedule.ts'

/** The rows of one delivery. */
export interface DeliveryEvidence {
  name: string
  slot: Slot
  calls: readonly Written[]
  arrivals: Int32Array
  handOvers: Int32Array
  deadLetters: Int32Array
}

interface Context {
  evidence: Evidence
  watch: CommitWatch
  rig: Rig
  findings: Findings
  injected: readonly Injected[]
}

/** Clocks of this machine are read by several processes, in whole ms. */
const roundingMs = 2
const skewMs = 1_000
const expired = deadLetterReasons.indexOf('expired')
const notAttempted = deadLetterReasons.indexOf('not_attempted')
const smallest = tierSets.map((set) => Math.min(...set.split(',').map((tier) => parseDuration(tier)!)))

/** Checks each attempt and each hand-over of a delivery. True when a clock was too far off to tell of times. */
export function checkAttempts(context: Context, delivery: DeliveryEvidence): boolean {
  const { from, to } = lifeOf(context, delivery)
  const during = context.injected.filter((fault) => fault.from <= to && fault.to + windowMs >= from)
  const clocksFarOff = during.some(({ kind }) => kind === 'clock-jumped')
  const tolerance = during.some(({ kind }) => kind === 'clock-skewed') ? 2 * skewMs : roundingMs
  checkPlaces(context, delivery)
  checkBytes(context, delivery)
  if (clocksFarOff) return true
  checkEarliness(context, delivery, tolerance)
  checkWindows(context, delivery, tolerance)
  return false
}

function lifeOf({ evidence }: Context, { calls, arrivals, deadLetters, handOvers }: DeliveryEvidence) {
  const from = calls[0]!.at
  let to = from
  for (const row of arrivals) to = Math.max(to, evidence.arrivals.get('at', row))
  for (const row of handOvers) to = Math.max(to, evidence.handOvers.get('at', row))
  for (const row of deadLetters) to = Math.max(to, evidence.deadLetters.get('at', row))
  return { from, to }
}

/** Whoever sends has a record for it, of the calls or of a tier, that no commit holds as finished yet. */
function checkPlaces({ evidence, watch, rig, findings }: Context, delivery: DeliveryEvidence): void {
  const { arrivals, handOvers, tierTopics } = evidence
  for (const row of delivery.arrivals) {
    const at = arrivals.get('at', row)
    const isOpen =
      delivery.calls.some(
        (call) =>
          call.at <= at + roundingMs && watch.finishedBy(rig.topics.calls, call.partition, call.offset) >= at,
      ) ||
      delivery.handOvers.some((record) => {
        const { topic } = tierTopics[handOvers.get('topic', record)]!
        const partition = handOvers.get('partition', record)
        const finishedBy = watch.finishedBy(topic, partition, handOvers.get('offset', record))
        return handOvers.get('at', record) <= at + roundingMs && finishedBy >= at
      })
    if (!isOpen) findings.add('sent after its commit', `${delivery.name} at ${at}`)
  }
}

function checkBytes({ evidence, findings }: Context, delivery: DeliveryEvidence): void {
  const bodies = new Set([...delivery.arrivals].map((row) => evidence.arrivals.get('body', row)))
  if (bodies.size > 1) findings.add('other bytes at a later attempt', delivery.name)
}

/**
 * A first attempt needs a call's record, a later one a hand-over whose time has come. With more requests than those
 * at some moment, but not in the end, one of them came too early; what is too many in the end is a repeat.
 */
function checkEarliness(
  { evidence, findings }: Context,
  delivery: DeliveryEvidence,
  tolerance: number,
): void {
  const { arrivals, handOvers } = evidence
  if (delivery.handOvers.length === 0) return
  const urls = new Set([...delivery.arrivals].map((row) => arrivals.get('url', row)))
  for (const url of urls) {
    const came = [...delivery.arrivals]
      .filter((row) => arrivals.get('url', row) === url)
      .map((row) => arrivals.get('at', row))
      .sort((a, b) => a - b)
    const due = [...delivery.handOvers]
      .filter((row) => isUrl(handOvers.get('urls', row), url))
      .map((row) => dueAt(evidence, row))
      .sort((a, b) => a - b)
    const repeats = Math.max(0, came.length - delivery.calls.length - due.length)
    for (const [index, at] of came.entries()) {
      const needed = index - delivery.calls.length - repeats
      if (needed >= 0 && due[needed]! > at + tolerance)
        findings.add('too early', `${delivery.name} by ${due[needed]! - at} ms at ${at}`)
    }
  }
}

/** When the hand-over may be tried: not before its tier is over, nor before the time that the receiver asked for. */
function dueAt({ handOvers, tierTopics }: Evidence, row: number): number {
  const base = handOvers.get('handedOverAt', row) + tierTopics[handOvers.get('topic', row)]!.delayMs
  const notBefore = handOvers.get('notBefore', row)
  // Where no tier fits into what is left of the window, the last attempt is made at once.
  const fits = base + Math.max(...smallest) <= windowStart(historyOf(handOvers, row)) + windowMs
  return notBefore > base && fits ? notBefore : base
}

/** What hand-overs and dead letters both tell. */
interface Rows {
  get(name: 'attempts' | 'handOvers' | 'firstAttemptAt' | 'firstHandOverAt', row: number): number
}

const historyOf = (rows: Rows, row: number) => ({
  attempts: rows.get('attempts', row),
  handOvers: rows.get('handOvers', row),
  firstAttemptAt: rows.get('firstAttemptAt', row),
  firstHandOverAt: rows.get('firstHandOverAt', row),
})
type History = ReturnType<typeof historyOf>

function windowStart({ firstAttemptAt, firstHandOverAt }: History): number {
  if (firstAttemptAt < 0) return firstHandOverAt
  if (firstHandOverAt < 0) return firstAttemptAt
  return Math.min(firstAttemptAt, firstHandOverAt)
}

/** Counts go up by one from hand-over to hand-over, times of the beginning stay, and nothing leads beyond the window. */
function checkWindows(context: Context, delivery: DeliveryEvidence, tolerance: number): void {
  const { evidence: all, findings } = context
  const { handOvers, deadLetters } = all
  const rows = [...delivery.handOvers]
  const follows = (before: number, next: History, handedOver: number) =>
    handOvers.get('handOvers', before) === next.handOvers - handedOver &&
    [0, 1].includes(next.attempts - handOvers.get('attempts', before)) &&
    [-1, next.firstAttemptAt].includes(handOvers.get('firstAttemptAt', before)) &&
    handOvers.get('firstHandOverAt', before) === next.firstHandOverAt
  for (const row of rows) {
    const next = historyOf(handOvers, row)
    const isFirst = next.handOvers === 1
    if (!isFirst && !rows.some((before) => before !== row && follows(before, next, 1)))
      findings.add('counts that do not follow', `${delivery.name}, hand-over ${next.handOvers}`)
    const due = handOvers.get('handedOverAt', row) + all.tierTopics[handOvers.get('topic', row)]!.delayMs
    if (due > windowStart(next) + windowMs + tolerance)
      findings.add('beyond the window', `${delivery.name}, hand-over ${next.handOvers}`)
  }
  for (const row of delivery.deadLetters) {
    const next = historyOf(deadLetters, row)
    if (next.handOvers > 0 && !rows.some((before) => follows(before, next, 0)))
      findings.add('counts that do not follow', `${delivery.name}, dead letter`)
    const reason = deadLetters.get('reason', row)
    const isGivenUp = reason === expired || reason === notAttempted
    if (isGivenUp && (reason === notAttempted) !== (next.attempts === 0))
      findings.add('wrong reasons', `${delivery.name}: ${next.attempts} attempts`)
    const left = windowStart(next) + windowMs - deadLetters.get('failedAt', row)
    if (isGivenUp && left - tolerance > Math.max(...smallest))
      findings.add('given up too early', `${delivery.name} with ${left} ms left`)
  }
}
