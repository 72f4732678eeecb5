// What an audit is asked, and its verdict: whether every call is accounted for.
import { addCounts, type PartitionFacts } from './audit-partition.ts'
import type { Chain, ChainFault } from './ledger-chain.ts'
import { noCounts } from './result-codes.ts'
import { type DestinationCounts, totalOf } from './tally.ts'
import type { Place } from './trace.ts'

export interface PartitionId {
  topic: string
  partition: number
}

/** A partition as its group had committed it when the audit began; offsets and times by the broker. */
export interface AuditedPartition extends PartitionId {
  group: string
  position: number | null
  metadata: string | null
  /** The first offset that the log still holds. */
  low: number
}

export interface AuditTerms {
  partitions: readonly AuditedPartition[]
  /** Which of their topics are retry tiers. */
  isTier(topic: string): boolean
  /** Epoch ms: tallies written then or later are left out. */
  until: number
  /** Epoch ms: retries and dead letters published before then may have been removed by retention. */
  retriesKeptSince: number
  deadLettersKeptSince: number
}

/** What is wrong: where, and with which offsets (`last` included; null: to the end of what was audited). */
export interface AuditFault extends PartitionId {
  kind: 'gap' | 'overlap' | 'unreadable' | 'records' | 'retries' | 'dead_letters'
  destinationId: string | null
  first: number | null
  last: number | null
  why: string
}

/** A record that a crash, a rebalance or a producer's repetition made once more. */
export interface Copy extends Place {
  deliveryId: string | null
  /** The record that it was made from. */
  from: Place | null
  owner: string
}

export interface PartitionLine extends PartitionId {
  group: string
  /** Where the chain begins, and how far it reaches. */
  from: number
  to: number
  /** When its first tally was written, epoch ms; null where there is none. */
  since: number | null
  records: number
  lost: number
  tallies: number
}

export interface AuditReport {
  ok: boolean
  partitions: PartitionLine[]
  destinations: DestinationLine[]
  faults: AuditFault[]
  copies: Copy[]
  /** Copies in all; of very many only the first are named. */
  copyCount: number
  /** Records found, by what they are. */
  read: { calls: number; retries: number; deadLetters: number; tallies: number }
}

/** All that was read. */
export interface AuditFindings {
  watched: Iterable<{ of: AuditedPartition; chain: Chain<PartitionFacts> }>
  tiers: ReadonlyMap<string | null, TierSums>
  copies: Copy[]
  copyCount: number
  read: AuditReport['read']
}

export function reportOf(
  terms: AuditTerms,
  { watched, tiers: sums, copies, copyCount, read }: AuditFindings,
): AuditReport {
  const faults: AuditFault[] = []
  const partitions: PartitionLine[] = []
  const calls = new Map<string | null, DestinationCounts>()
  const tiers: typeof calls = new Map()
  for (const { of, chain } of watched) {
    const { sink, start, faults: chainFaults } = chain
    const { topic, partition, group } = of
    faults.push(...chainFaults.flatMap((fault) => namedFaults(of, fault)))
    const counted = terms.isTier(topic) ? tiers : calls
    for (const counts of sink.counts.values()) addCounts(counted, counts)
    const { since, records, lost, tallies } = sink
    const to = sink.finished?.position ?? start.position
    partitions.push({ group, topic, partition, from: start.position, to, since, records, lost, tallies })
    faults.push(...segmentFaults(terms, of, sink))
  }
  const destinations = equationOf(calls, tiers, sums)
  const ok = faults.length === 0 && destinations.every(({ balance }) => balance === 0)
  partitions.sort((a, b) => (a.topic < b.topic ? -1 : a.topic > b.topic ? 1 : a.partition - b.partition))
  return { ok, partitions, destinations, faults, copies, copyCount, read }
}

function namedFaults({ topic, partition }: PartitionId, { kind, runs, why }: ChainFault): AuditFault[] {
  const fault = { kind, topic, partition, destinationId: null, why }
  if (runs.length === 0) return [{ ...fault, first: null, last: null }]
  return runs.map(({ start, end }) => ({
    ...fault,
    first: start,
    last: Number.isFinite(end) ? end - 1 : null,
  }))
}

/** Differences between what the tallies count and what the topics hold. */
function segmentFaults(
  { retriesKeptSince, deadLettersKeptSince }: AuditTerms,
  { topic, partition, low }: AuditedPartition,
  { segments }: PartitionFacts,
): AuditFault[] {
  const faults: AuditFault[] = []
  for (const segment of segments) {
    const { start: first, firstAt, talliedRecords: tallied, foundRecords: found } = segment
    const last = Number.isFinite(segment.end) ? segment.end - 1 : null
    const name = (kind: AuditFault['kind'], destinationId: string | null, why: string) =>
      faults.push({ kind, topic, partition, destinationId, first, last, why })
    // Records that retention has removed since cannot be counted any more.
    if (first >= low && tallied !== found)
      name('records', null, `tallies count ${tallied} records, the topic holds ${found}`)
    for (const [destinationId, published] of segment.published) {
      const { talliedRetries, foundRetries, talliedDeadLetters, foundDeadLetters } = published
      if (firstAt >= retriesKeptSince && talliedRetries !== foundRetries)
        name(
          'retries',
          destinationId,
          `tallies count ${talliedRetries} deliveries scheduled for a retry, the tiers hold ${foundRetries}`,
        )
      if (firstAt >= deadLettersKeptSince && talliedDeadLetters !== foundDeadLetters)
        name(
          'dead_letters',
          destinationId,
          `tallies count ${talliedDeadLetters} dead letters, their topic holds ${foundDeadLetters}`,
        )
    }
  }
  return faults
}

/**
 * planned + carried + replayed + copies + ahead = delivered + waiting + dead + skipped + erased + held. Of the destination
 * null, the deliveries are records that were for no destination, or were no call.
 */
export interface DestinationLine {
  destinationId: string | null
  /** Deliveries of the calls audited. */
  planned: number
  /** In tiers: scheduled before what is audited. */
  carried: number
  /** In tiers: dead letters that were sent again. */
  replayed: number
  /** In tiers: made once more by a crash, a rebalance or a producer's repetition. */
  copies: number
  /** In tiers: settled there before the commit of the record that they came from was read. */
  ahead: number
  delivered: number
  waiting: number
  dead: number
  skipped: number
  erased: number
  /** Not attempted, because the destination was paused. What a replay sends of it comes in again. */
  held: number
  /** What comes in less what is accounted for: 0 where all is. */
  balance: number
}

/** Sums over the tiers, by destination. */
export interface TierSums {
  carried: number
  replayed: number
  copies: number
  ahead: number
  waiting: number
  /** Scheduled within what is audited, and settled before it: where the tier's chain begins later. */
  settledBefore: number
}

export const noTierSums = (): TierSums => ({
  carried: 0,
  replayed: 0,
  copies: 0,
  ahead: 0,
  waiting: 0,
  settledBefore: 0,
})

/** By destination, the equation over calls and tiers. */
export function equationOf(
  calls: ReadonlyMap<string | null, DestinationCounts>,
  tiers: ReadonlyMap<string | null, DestinationCounts>,
  sums: ReadonlyMap<string | null, TierSums>,
): DestinationLine[] {
  const ids = new Set([...calls.keys(), ...tiers.keys(), ...sums.keys()])
  const lines = [...ids].map((id) =>
    lineOf(calls.get(id) ?? noCounts(id), tiers.get(id) ?? noCounts(id), sums.get(id) ?? noTierSums()),
  )
  settleUnread(lines)
  return lines.sort((a, b) => ((a.destinationId ?? '') < (b.destinationId ?? '') ? -1 : 1))
}

function lineOf(calls: DestinationCounts, tiers: DestinationCounts, sums: TierSums): DestinationLine {
  const planned = totalOf(calls)
  const { carried, replayed, copies, ahead, waiting, settledBefore } = sums
  const delivered = calls.delivered + tiers.delivered
  const dead = calls.deadLettered + tiers.deadLettered
  const skipped = calls.skipped + tiers.skipped
  const erased = calls.erased + tiers.erased
  const held = calls.held + tiers.held
  const incoming = planned + carried + replayed + copies + ahead
  const accounted = delivered + waiting + dead + skipped + erased + held + settledBefore
  return {
    destinationId: calls.destinationId,
    planned,
    carried,
    replayed,
    copies,
    ahead,
    delivered,
    waiting,
    dead,
    skipped,
    erased,
    held,
    balance: incoming - accounted,
  }
}

/**
 * A tier's record that could not be delivered for what it is became a dead letter without a destination, although the
 * record may name one: what is too much there is what is missing here.
 */
function settleUnread(lines: DestinationLine[]): void {
  const none = lines.find(({ destinationId }) => destinationId === null)
  if (!none || none.balance >= 0) return
  for (const line of lines) {
    if (line === none || line.balance <= 0 || none.balance >= 0) continue
    const moved = Math.min(line.balance, -none.balance)
    line.balance -= moved
    line.dead += moved
    none.balance += moved
    none.dead -= moved
  }
}
