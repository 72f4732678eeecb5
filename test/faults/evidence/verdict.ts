import { answers } from '../load/answers.ts'
import type { Groups } from '../columns.ts'
import type { CommitWatch } from '../watch/commit-watch.ts'
import { expectation, slots, type Slot } from '../load/destinations.ts'
import {
  checkAttempts,
  faultsDuring,
  hadClockFarOff,
  hasMoved,
  roundMs,
  spansOf,
  type DeliveryEvidence,
} from './attempt-checks.ts'
import type { OwnerWatch } from '../watch/owner-watch.ts'
import { dossierOf } from './dossier.ts'
import { followMs } from '../load/moving-host.ts'
import { judgeNames, type NameTally } from './name-verdict.ts'
import { maxCounted } from './ledger-evidence.ts'
import { answerOf, reasonOf, type Evidence } from './evidence.ts'
import { judgeOrder, type OrderTally } from './order-verdict.ts'
import { destinationBehind } from '../load/outages.ts'
import { disturbing, ofOneReceiver } from '../kinds/fault-kinds.ts'
import type { Rig } from '../rig.ts'
import type { Injected } from '../schedule.ts'
import type { Findings } from './findings.ts'
import type { LeaderWatch } from '../watch/leader-watch.ts'
import { countCallCopies, countDeliveryCopies, noCopies, type CopyCounts } from '../watch/copies.ts'
import { blockSize, type Traffic } from '../load/traffic.ts'

/** What a run came to, in numbers. */
export interface Tally {
  calls: number
  /** By HTTP, through a collector. */
  callsByHttp: number
  copies: CopyCounts
  deliveries: number
  delivered: number
  deadLetters: Record<string, number>
  skipped: number
  /** The ledger says that it was delivered, and no receiver took it. */
  wronglyDelivered: number
  /** The receiver answered with what may or may not have counted. */
  deliveredOrNot: number
  attempts: number
  retryRecords: number
  /** Came again after it had been taken: its record got another owner before a commit held it. */
  repeatedByMoves: number
  /** By the last fault before the move. */
  repeatedBy: Record<string, number>
  /** Came again because the answer did not come in time: the sender knew of no success. */
  repeatedUnheard: number
  /** Came again because its call lies in Kafka twice. */
  repeatedByCallCopies: number
  /** Came again because its retry was published twice: the writer did not hear that it was written. */
  repeatedByCopies: number
  /** Delivered to one and dead as another copy. */
  deliveredAndDead: number
  /** Given up although the receiver would have said yes or no: faults and a busy machine took up the window. */
  givenUpAfterTimeouts: number
  /** By destination, and by what the last attempts came to. */
  givenUpBy: Record<string, number>
  /** The same, by a clock that was far off. */
  givenUpByClocks: number
  /** The same, by a name that had moved. */
  givenUpByNames: number
  /** The same, for want of a token or of the proxy, and of another fault beside it. */
  givenUpByWays: number
  names: NameTally
  order: OrderTally
  /** Not checked for time, for a clock was far off. */
  uncheckedForClocks: number
}

export interface VerdictInput {
  evidence: Evidence
  watch: CommitWatch
  owners: OwnerWatch
  rig: Rig
  leaders: LeaderWatch
  traffic: Traffic
  injected: readonly Injected[]
  /** When the name of a receiver led to another address. */
  moves: readonly number[]
  patience: number
}

/** How long after a fault its consequences are counted as its own. */
const settleMs = 20_000
/**
 * The share of deliveries that may be given up although their receiver would have said yes or no. It says nothing where
 * the machine has too much else to do for answers within 2 s.
 */
const maxGivenUp = 0.005

/** Holds what happened against what may happen. */
export function judge(input: VerdictInput, findings: Findings): Tally {
  const { evidence, traffic } = input
  const count = Math.max(evidence.calls.length, traffic.end)
  const groups = {
    arrivals: evidence.arrivals.groupBy('delivery', count * slots.length),
    retryRecords: evidence.retryRecords.groupBy('delivery', count * slots.length),
    deadLetters: evidence.deadLetters.groupBy('delivery', count * slots.length),
  }
  const order = judgeOrder(evidence, groups, traffic, {
    findings,
    dossierOf: (seq, slot) => deliveryOf({ ...input, groups }, seq, slot).dossier(),
    hadClockFarOff: (seq, slot) =>
      hadClockFarOff(faultsDuring(input, deliveryOf({ ...input, groups }, seq, slot))),
  })
  const tally: Tally = {
    ...{ calls: 0, callsByHttp: 0, copies: noCopies() },
    ...{ repeatedByCallCopies: 0, deliveries: 0, delivered: 0, deadLetters: {}, skipped: 0 },
    ...{ deliveredOrNot: 0, attempts: evidence.arrivals.length, retryRecords: evidence.retryRecords.length },
    ...{ repeatedByMoves: 0, repeatedBy: {}, repeatedUnheard: 0, repeatedByCopies: 0 },
    ...{ deliveredAndDead: 0, givenUpByClocks: 0, uncheckedForClocks: 0 },
    ...{ givenUpAfterTimeouts: 0, givenUpBy: {}, wronglyDelivered: 0, givenUpByNames: 0, givenUpByWays: 0 },
    names: judgeNames(input, findings),
    order,
  }
  const disturbances = input.injected.filter(({ kind }) => disturbing.has(kind))
  const judging: Judging = { ...input, groups, tally, findings, disturbances }
  for (const [what, times] of evidence.wrongRequests)
    findings.add('wrong requests', `${times} requests: ${what}`)
  for (const stranger of evidence.strangers) findings.add('strangers', stranger)
  for (const rewind of input.watch.rewinds) findings.add('commits that went back', rewind)
  judgePlaces(judging, count)

  for (let seq = 0; seq < count; seq++) {
    const way = traffic.wayOf(Math.floor(seq / blockSize))
    const records = evidence.calls[seq]
    if (!records) {
      if (traffic.isAcknowledged(seq)) findings.add('acknowledged and not in Kafka', `call ${seq}, by ${way}`)
      continue
    }
    tally.calls++
    if (way === 'http') tally.callsByHttp++
    countCallCopies(judging, tally.copies, seq)
    const kind = traffic.kindOf(seq)
    if (kind === 'call') judgeCall(judging, seq)
    else judgeDeadRecord(judging, seq, kind === 'poison' ? 'undecodable' : 'unknown_source')
  }
  if (input.patience === 1 && tally.givenUpAfterTimeouts > tally.deliveries * maxGivenUp)
    findings.add('given up after timeouts', `${tally.givenUpAfterTimeouts} of ${tally.deliveries} deliveries`)
  return tally
}

interface Judging extends VerdictInput {
  groups: { arrivals: Groups; retryRecords: Groups; deadLetters: Groups }
  tally: Tally
  findings: Findings
  disturbances: readonly Injected[]
}

/** Whatever came, was scheduled or is dead is of a call that lies in Kafka, at a destination of that call's source. */
function judgePlaces(judging: Judging, count: number): void {
  const { evidence, traffic, findings } = judging
  const { arrivals, retryRecords, deadLetters } = evidence
  const sources = Array.from({ length: count }, (_, seq) =>
    evidence.calls[seq] && traffic.kindOf(seq) === 'call' ? traffic.sourceOf(seq) : null,
  )
  const all = { 'a request': arrivals, 'a retry': retryRecords, 'a dead letter': deadLetters }
  for (const [what, rows] of Object.entries(all))
    for (let row = 0; row < rows.length; row++) {
      const number = rows.get('delivery', row)
      const [seq, index] = [Math.floor(number / slots.length), number % slots.length]
      const { suffix, destination } = slots[index]!
      const source = sources[seq] ?? null
      if (source === destination.source) continue
      const whose = source === null ? 'of no call that lies in Kafka' : `of a call of ${source}`
      findings.add(
        'wrong destinations',
        `${what} ${whose}: m${seq}${suffix} at ${rows.get('at', row)}`,
        () => (evidence.calls[seq] ? deliveryOf(judging, seq, index).dossier() : []),
      )
    }
}

function judgeDeadRecord({ evidence, tally, findings }: Judging, seq: number, expected: string): void {
  for (const { partition, offset } of evidence.calls[seq]!) {
    const reasons = evidence.deadRecords.get(`${partition}/${offset}`) ?? []
    tally.deliveries++
    if (reasons.length === 0) findings.add('lost', `record ${partition}/${offset} has no dead letter`)
    else tally.deadLetters[expected] = (tally.deadLetters[expected] ?? 0) + 1
    for (const reason of reasons)
      if (reason !== expected) findings.add('wrong reasons', `record ${partition}/${offset}: ${reason}`)
  }
}

function judgeCall(judging: Judging, seq: number): void {
  const source = judging.traffic.sourceOf(seq)
  slots.forEach((slot, index) => {
    if (slot.destination.source === source) judgeDelivery(judging, seq, slot, seq * slots.length + index)
  })
}

function deliveryOf(
  known: Pick<Judging, 'evidence' | 'watch' | 'rig' | 'groups'>,
  seq: number,
  index: number,
): DeliveryEvidence {
  const { evidence, groups } = known
  const { arrivals } = evidence
  const number = seq * slots.length + index
  const delivery: DeliveryEvidence = {
    name: `m${seq}${slots[index]!.suffix}`,
    slot: slots[index]!,
    calls: evidence.calls[seq]!,
    arrivals: groups.arrivals.of(number).toSorted((a, b) => arrivals.get('at', a) - arrivals.get('at', b)),
    retryRecords: groups.retryRecords.of(number),
    deadLetters: groups.deadLetters.of(number),
    dossier: () => dossierOf(known, delivery),
  }
  return delivery
}

function judgeDelivery(judging: Judging, seq: number, slot: Slot, number: number): void {
  const { evidence, tally, findings } = judging
  const { arrivals, deadLetters } = evidence
  const delivery = deliveryOf(judging, seq, number % slots.length)
  const { name } = delivery
  tally.deliveries++
  const expected = expectation(slot, seq)
  const said = [...delivery.arrivals].map((row) => answers[answerOf(arrivals.get('answer', row))])
  const taken = said.includes('success')
  const maybe = !taken && said.includes('either')
  const dead = delivery.deadLetters.length
  const maySkip = expected.skipped && !taken && wasDisabled(judging, delivery)
  const countsAsDelivered = !taken && !maybe && isDelivered(judging, delivery, number, maySkip)

  if (countsAsDelivered) {
    tally.wronglyDelivered++
    findings.add('wrongly delivered', `${name}: ${dead} dead letters`, delivery.dossier)
  }
  if (taken && dead > 0) tally.deliveredAndDead++
  if (taken) tally.delivered++
  else if (dead === 0 && maybe) tally.deliveredOrNot++
  else if (dead === 0 && maySkip) tally.skipped++
  else if (dead === 0 && !countsAsDelivered)
    findings.add('lost', `${name}: neither delivered nor dead`, delivery.dossier)

  const timesUnclear = checkAttempts(judging, delivery)
  if (timesUnclear) tally.uncheckedForClocks++
  for (const row of delivery.deadLetters) {
    const reason = reasonOf(deadLetters.get('reason', row))
    tally.deadLetters[reason] = (tally.deadLetters[reason] ?? 0) + 1
    if (expected.reasons.includes(reason)) continue
    const gaveUp = judgeGivenUp(judging, delivery, row, timesUnclear)
    if (!gaveUp) findings.add(`wrong reasons, ${slot.destination.id}: ${reason}`, name, delivery.dossier)
  }
  judgeLedger(judging, delivery, { number, taken })
  countDeliveryCopies(judging, tally.copies, delivery)
  countRepeats(judging, delivery, { number, timesUnclear })
}

/**
 * Whether its call was to be planned, or a retry of it came due, while its destination was disabled as far as some forwarder
 * knew: that it is enabled again a forwarder may hear late where a broker is away.
 */
function wasDisabled(judging: Judging, delivery: DeliveryEvidence): boolean {
  const { rig, disturbances, patience } = judging
  const spans = spansOf(judging, delivery)
  const ends = delivery.retryRecords.length > 0 ? spans.slice(delivery.calls.length) : spans
  return rig.disablings.some(({ from, to }) => {
    const heardBy = to + settleMs * patience
    const meanwhile = disturbances.filter((fault) => fault.from <= heardBy && fault.to >= to)
    const until = Math.max(to, ...meanwhile.map((fault) => fault.to)) + settleMs * patience
    return ends.some(({ at, finishedBy }) => at <= until && finishedBy >= from)
  })
}

/**
 * Whether a dead letter that this receiver cannot lead to is one of a delivery that was given up, and why that may be: it is
 * counted. With a window of half a minute a few faults in a row can take up all of it; and so can a clock.
 */
function judgeGivenUp(
  { evidence, tally, injected, moves, patience }: Judging,
  { slot, calls }: DeliveryEvidence,
  row: number,
  timesUnclear: boolean,
): boolean {
  const reason = reasonOf(evidence.deadLetters.get('reason', row))
  const { id } = slot.destination
  // A token that was got after a refusal, and ended before anything came of it, is refused for good.
  const isForWay =
    ((reason === 'no_token' || reason === 'rejected') && id === destinationBehind['token endpoint']) ||
    (reason === 'proxy' && id === destinationBehind.proxy)
  if (reason !== 'expired' && reason !== 'not_attempted' && !isForWay) return false
  const failedAt = evidence.deadLetters.get('at', row)
  const { at } = calls[0]!
  const near = injected.filter(({ from, to }) => from < failedAt && to + settleMs * patience > at)
  const isDisturbed = near.some(({ kind }) => !ofOneReceiver.has(kind))
  const outcomes = evidence.unexpectedDeadLetters.get(row) ?? ''
  const hadMoved =
    id === 'moving' && moves.some((moved) => moved < failedAt && at < moved + followMs * patience)
  const wasAway = near.some(
    ({ kind }) => kind === (id === destinationBehind.proxy ? 'proxy-away' : 'tokens-away'),
  )
  if (hadMoved) tally.givenUpByNames++
  else if (timesUnclear) tally.givenUpByClocks++
  else if (!isDisturbed) return false
  // Half of the window is left for what else there is.
  else if (Object.values(destinationBehind).includes(id) && wasAway) tally.givenUpByWays++
  else if (waited(reason, outcomes)) {
    tally.givenUpAfterTimeouts++
    const kinds = new Set([...outcomes.matchAll(/ (\w+) \(/g)].map(([, kind]) => kind))
    const what = `${id} ${reason}: ${[...kinds].join(', ')}`
    tally.givenUpBy[what] = (tally.givenUpBy[what] ?? 0) + 1
  } else return false
  return true
}

/** What faults and a busy machine lead to: of a call that was put off by reference, no outcome is known. */
const waited = (reason: string, outcomes: string): boolean =>
  reason === 'proxy'
    ? outcomes.includes('made no connection within')
    : / (timeout|network|deferred) /.test(outcomes) || (reason === 'not_attempted' && outcomes === '')

/**
 * Whether the ledger has it as delivered. Where all went well at the first attempt it says so in numbers only: then there is
 * neither a retry nor a dead letter of a call that came to its receiver, and whose record is finished.
 */
function isDelivered(
  { evidence: { ledger }, watch, rig }: Judging,
  { calls, arrivals, retryRecords, deadLetters }: DeliveryEvidence,
  number: number,
  maySkip: boolean,
): boolean {
  if (ledger.deliveredOf(number) > 0) return true
  if (maySkip || arrivals.length === 0 || retryRecords.length > 0 || deadLetters.length > 0) return false
  return calls.some(
    ({ partition, offset }) => watch.finishedBy(rig.topics.calls, partition, offset) < Infinity,
  )
}

/**
 * What became of each record of a tier stands in the ledger before the record is committed, or in the run that it led to;
 * so does a delivery that is dead at once, unless another owner delivered it.
 */
function judgeLedger(
  { evidence: { ledger, retryRecords, tierTopics }, findings }: Judging,
  delivery: DeliveryEvidence,
  { number, taken }: { number: number; taken: boolean },
): void {
  const records = delivery.retryRecords.length
  const again = delivery.retryRecords.reduce((sum, row) => sum + retryRecords.get('again', row), 0)
  const needed = Math.min(records - again, maxCounted)
  let events = ledger.fromTiersOf(number)
  // Of a run that ended as a whole there is one event for all: few, so they are looked for last.
  if (events < needed)
    events += delivery.retryRecords.filter((row) =>
      ledger.hasEnded(
        tierTopics[retryRecords.get('topic', row)]!.topic,
        retryRecords.get('partition', row),
        retryRecords.get('offset', row),
      ),
    ).length
  if (events < needed)
    findings.add('ledger events lost', `${delivery.name}: ${events} of ${records}`, delivery.dossier)
  const isDead = records === 0 && delivery.deadLetters.length > 0 && !taken
  if (isDead && ledger.deadLettersOf(number) === 0)
    findings.add('ledger events lost', `${delivery.name}: its dead letter`, delivery.dossier)
}

/**
 * Requests that came although one before had been taken. Each must be known of: its sender heard no answer, or what it
 * was sent for has got another owner since, or lies there twice.
 */
function countRepeats(
  judging: Judging,
  delivery: DeliveryEvidence,
  { number, timesUnclear }: { number: number; timesUnclear: boolean },
): void {
  const { evidence, tally, findings, disturbances } = judging
  const { arrivals, retryRecords } = evidence
  const seen = new Map<number, number>()
  for (const row of delivery.arrivals) {
    const url = delivery.slot.url === null ? 0 : arrivals.get('url', row)
    const at = arrivals.get('at', row)
    const taken = seen.get(url)
    if (taken === undefined) {
      if (answers[answerOf(arrivals.get('answer', row))] === 'success') seen.set(url, row)
      continue
    }
    const first = arrivals.get('at', taken)
    // All URLs of a delivery are tried at once: what another one of the same round got is no repeat.
    const together = delivery.slot.url === null && delivery.slot.destination.urls.length > 1
    if (together && at - first < roundMs * judging.patience) continue
    // Its round goes on for as long as its sender gets no time from the machine.
    const isOf = (name: 'url' | 'sender') => arrivals.get(name, row) === arrivals.get(name, taken)
    if (together && isOf('sender') && !isOf('url') && delivery.retryRecords.length === 0) continue
    if (delivery.calls.length > 1) {
      tally.repeatedByCallCopies++
    } else if (
      [...delivery.retryRecords].some((row) => retryRecords.get('at', row) >= first) ||
      evidence.ledger.failedSince(number, timesUnclear ? 0 : first)
    ) {
      tally.repeatedUnheard++
    } else if (hasMoved(judging, delivery, first, at)) {
      tally.repeatedByMoves++
      const cause = disturbances.findLast(({ from, to }) => from <= at && first <= to + settleMs)
      const kind = cause?.kind ?? 'no fault'
      tally.repeatedBy[kind] = (tally.repeatedBy[kind] ?? 0) + 1
    } else if (hasCopies(evidence, delivery)) {
      tally.repeatedByCopies++
    } else findings.add('repeats without a cause', `${delivery.name} at ${first} and ${at}`, delivery.dossier)
  }
}

function hasCopies({ retryRecords }: Evidence, delivery: DeliveryEvidence): boolean {
  const counts = [...delivery.retryRecords].map((row) => retryRecords.get('timesScheduled', row))
  return new Set(counts).size < counts.length
}
