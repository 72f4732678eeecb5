import { answers } from './answers.ts'
import type { Groups } from './columns.ts'
import type { CommitWatch } from './commit-watch.ts'
import { expectation, slots, type Slot } from './destinations.ts'
import { checkAttempts, type DeliveryEvidence } from './attempt-checks.ts'
import { dossierOf } from './dossier.ts'
import { answerOf, reasonOf, type Evidence } from './evidence.ts'
import { disturbing } from './fault-kinds.ts'
import type { Rig } from './rig.ts'
import type { Injected } from './schedule.ts'
import type { Findings } from './findings.ts'
import { kindOf, sourceOf } from './load.ts'

/** What a run came to, in numbers. */
export interface Tally {
  calls: number
  /** Records that the runner's own producer wrote twice. */
  callsWrittenTwice: number
  deliveries: number
  delivered: number
  deadLetters: Record<string, number>
  skipped: number
  /** The receiver answered with what may or may not have counted. */
  deliveredOrNot: number
  attempts: number
  handOvers: number
  /** Came again after it had been taken: the process that would have noted it was gone, or the broker was. */
  repeatedByFaults: number
  /** By the fault that was going on, or the last one before. */
  repeatedBy: Record<string, number>
  /** Came again because the answer did not come in time: the sender knew of no success. */
  repeatedUnheard: number
  /** Came again, or was read again, while the receivers were too busy to tell when it was sent. */
  repeatedWhileBusy: number
  receiversBusyMs: number
  /** Delivered to one and dead as another copy. */
  deliveredAndDead: number
  /** Given up where the receiver would have had the last word: faults and a busy machine took up the window. */
  givenUpAfterTimeouts: number
  /** Not checked for time, for a clock was far off. */
  uncheckedForClocks: number
}

export interface VerdictInput {
  evidence: Evidence
  watch: CommitWatch
  rig: Rig
  seed: number
  /** Calls below this number were acknowledged. */
  acknowledged: number
  injected: readonly Injected[]
}

/** How long before a fault a delivery may have been taken without its commit being acknowledged. */
const commitLagMs = 2_000
/** How long after one partitions may still move. */
const settleMs = 20_000
/** The share of deliveries that may be given up although their receiver would have said yes or no. */
const mostGivenUp = 0.05

/** Holds what happened against what may happen. */
export function judge(input: VerdictInput, findings: Findings): Tally {
  const { evidence, seed, acknowledged } = input
  const count = Math.max(evidence.calls.length, acknowledged)
  const groups = {
    arrivals: evidence.arrivals.groupBy('delivery', count * slots.length),
    handOvers: evidence.handOvers.groupBy('delivery', count * slots.length),
    deadLetters: evidence.deadLetters.groupBy('delivery', count * slots.length),
  }
  const tally: Tally = {
    ...{ calls: 0, callsWrittenTwice: 0, deliveries: 0, delivered: 0, deadLetters: {}, skipped: 0 },
    ...{ deliveredOrNot: 0, attempts: evidence.arrivals.length, handOvers: evidence.handOvers.length },
    ...{ repeatedByFaults: 0, repeatedBy: {}, repeatedUnheard: 0, deliveredAndDead: 0 },
    ...{ repeatedWhileBusy: 0, receiversBusyMs: evidence.lags.totalMs },
    ...{ givenUpAfterTimeouts: 0, uncheckedForClocks: 0 },
  }
  const disturbances = input.injected.filter(({ kind }) => disturbing.has(kind))
  const judging: Judging = { ...input, groups, tally, findings, disturbances }
  for (const [what, times] of evidence.wrongRequests)
    findings.add('wrong requests', `${times} requests: ${what}`)
  for (const stranger of evidence.strangers) findings.add('strangers', stranger)
  for (const rewind of input.watch.rewinds) findings.add('commits that went back', rewind)

  for (let seq = 0; seq < count; seq++) {
    const records = evidence.calls[seq]
    if (!records) {
      if (seq < acknowledged) findings.add('acknowledged and not in Kafka', `call ${seq}`)
      continue
    }
    tally.calls++
    tally.callsWrittenTwice += records.length - 1
    const kind = kindOf(seed, seq)
    if (kind === 'call') judgeCall(judging, seq)
    else judgeDeadRecord(judging, seq, kind === 'poison' ? 'undecodable' : 'unknown_source')
  }
  if (tally.givenUpAfterTimeouts > tally.deliveries * mostGivenUp)
    findings.add('given up after timeouts', `${tally.givenUpAfterTimeouts} of ${tally.deliveries} deliveries`)
  return tally
}

interface Judging extends VerdictInput {
  groups: { arrivals: Groups; handOvers: Groups; deadLetters: Groups }
  tally: Tally
  findings: Findings
  disturbances: readonly Injected[]
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
  const source = sourceOf(judging.seed, seq)
  slots.forEach((slot, index) => {
    if (slot.destination.source === source) judgeDelivery(judging, seq, slot, seq * slots.length + index)
  })
}

function judgeDelivery(judging: Judging, seq: number, slot: Slot, number: number): void {
  const { evidence, tally, findings, groups, injected } = judging
  const { arrivals, deadLetters } = evidence
  const name = `m${seq}${slot.suffix}`
  const delivery: DeliveryEvidence = {
    name,
    slot,
    calls: evidence.calls[seq]!,
    arrivals: groups.arrivals.of(number),
    handOvers: groups.handOvers.of(number),
    deadLetters: groups.deadLetters.of(number),
    dossier: () => dossierOf(judging, delivery),
  }
  tally.deliveries++
  const expected = expectation(slot, seq)
  const said = [...delivery.arrivals].map((row) => answers[answerOf(arrivals.get('answer', row))])
  const taken = said.includes('success')
  const maybe = !taken && said.includes('either')
  const letters = delivery.deadLetters.length

  if (taken && letters > 0) tally.deliveredAndDead++
  if (taken) tally.delivered++
  else if (letters === 0 && maybe) tally.deliveredOrNot++
  else if (letters === 0 && expected.skipped) tally.skipped++
  else if (letters === 0) findings.add('lost', `${name}: neither delivered nor dead`, delivery.dossier)

  const timesUnclear = checkAttempts(judging, delivery)
  if (timesUnclear) tally.uncheckedForClocks++
  for (const row of delivery.deadLetters) {
    const reason = reasonOf(deadLetters.get('reason', row))
    tally.deadLetters[reason] = (tally.deadLetters[reason] ?? 0) + 1
    if (expected.reasons.includes(reason)) continue
    const gaveUp = reason === 'expired' || reason === 'not_attempted'
    const failedAt = deadLetters.get('at', row)
    // With a window of half a minute a few faults in a row can take up all of it; and so can a clock.
    const disturbed = injected.some(
      ({ from, to }) => from < failedAt && to + settleMs > delivery.calls[0]!.at,
    )
    const mayComeRight = / (timeout|network|deferred) /.test(evidence.unexpectedLetters.get(row) ?? '')
    if (gaveUp && (timesUnclear || (disturbed && mayComeRight))) tally.givenUpAfterTimeouts++
    else findings.add('wrong reasons', `${name}: ${reason}`, delivery.dossier)
  }
  countRepeats(judging, delivery)
}

/** Requests that came although one before had been taken: each must be known of, or explained by a fault. */
function countRepeats(judging: Judging, delivery: DeliveryEvidence): void {
  const { evidence, tally, findings, disturbances } = judging
  const { arrivals, handOvers } = evidence
  const seen = new Map<number, number>()
  for (const row of delivery.arrivals) {
    const url = delivery.slot.url === null ? 0 : arrivals.get('url', row)
    const at = arrivals.get('at', row)
    const first = seen.get(url)
    if (first === undefined) {
      if (answers[answerOf(arrivals.get('answer', row))] === 'success') seen.set(url, at)
      continue
    }
    // All URLs of a delivery are tried at once: what another one of the same round got is no repeat.
    if (delivery.slot.url === null && delivery.slot.destination.urls.length > 1 && at - first < 2_500)
      continue
    const unheard = [...delivery.handOvers].some((handOver) => handOvers.get('at', handOver) >= first)
    if (unheard) {
      tally.repeatedUnheard++
      continue
    }
    if (delivery.calls.length > 1) continue
    const { lags } = evidence
    if (lags.sentSince(at) < at || lags.sentSince(first) < first) {
      tally.repeatedWhileBusy++
      continue
    }
    const cause = disturbances.findLast(
      ({ from, to }) => first >= from - commitLagMs && at >= from - commitLagMs && first <= to + settleMs,
    )
    if (cause) {
      tally.repeatedByFaults++
      tally.repeatedBy[cause.kind] = (tally.repeatedBy[cause.kind] ?? 0) + 1
    } else findings.add('repeats without a cause', `${delivery.name} at ${first} and ${at}`, delivery.dossier)
  }
}
