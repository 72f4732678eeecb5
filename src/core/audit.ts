// Proves or disproves that every call is accounted for: what the tallies tell against what lies in the topics. A fold:
// first all tallies, then the records of calls, tiers and dead letters, in any order, each once.
import { PartitionFacts, addCounts, entryOf, handedOnOf } from './audit-partition.ts'
import { equationOf, type DestinationLine } from './audit-equation.ts'
import type { Origin } from './delivery.ts'
import { LedgerChain, type Chain } from './ledger-chain.ts'
import { isInRuns, joinRuns, type Cover } from './offset-cover.ts'
import { decodeFinished, tallyIdOf, type OffsetRun } from './offset-runs.ts'
import type { Tally } from './tally.ts'

export interface Place {
  topic: string
  partition: number
}

/** A partition as its group had committed it when the audit began; offsets and times by the broker. */
export interface CommittedPartition extends Place {
  group: string
  position: number | null
  metadata: string | null
  /** The first offset that the log still holds. */
  low: number
}

export interface AuditTerms {
  partitions: readonly CommittedPartition[]
  /** Which of their topics are retry tiers. */
  isTier(topic: string): boolean
  /** Epoch ms: tallies written then or later are left out. */
  until: number
  /** Epoch ms: what was handed to a tier, or became a dead letter, before then may have been removed by retention. */
  retriesKeptSince: number
  lettersKeptSince: number
}

/** What is wrong: where, and with which offsets (`last` included; null: to the end of what was audited). */
export interface AuditFault extends Place {
  kind: 'gap' | 'overlap' | 'unreadable' | 'records' | 'retries' | 'dead_letters'
  destinationId: string | null
  first: number | null
  last: number | null
  why: string
}

/** A record that a crash, a rebalance or a producer's repetition made once more. */
export interface Copy {
  /** Where the copy lies. */
  topic: string
  partition: number
  offset: number
  deliveryId: string | null
  /** The record that it was made from. */
  from: Origin | null
  owner: string
}

export interface PartitionLine extends Place {
  group: string
  /** Where the chain begins, and how far it tells. */
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

const mostCopiesNamed = 1_000

interface Watched {
  of: CommittedPartition
  chain: LedgerChain<PartitionFacts>
  /** Known once all tallies were read, and with it what was finished before its chain. */
  result: Chain<PartitionFacts> | null
  before: readonly OffsetRun[]
}

/** What is known of a record in a tier or among the dead letters. */
export interface HandedOnRecord extends Place {
  offset: number
  from: Pick<Origin, 'topic' | 'partition' | 'offset'> | null
  owner: string
  /** Null where there is none, or it cannot be read. */
  destinationId: string | null
  deliveryId: string | null
  /** The same hand-over lies in its topics a second time. */
  repeated: boolean
}

/** What a record's origin makes of it: see `#classOf`. */
type RecordClass = 'fact' | 'copy' | 'earlier' | 'ahead'

/** Sums over the tiers, by destination. */
export interface TierSums {
  carried: number
  replayed: number
  copies: number
  ahead: number
  waiting: number
  /** Handed over within what is audited, and settled before it: where the tier's chain begins later. */
  settledBefore: number
}

const noTierSums = (): TierSums => ({
  carried: 0,
  replayed: 0,
  copies: 0,
  ahead: 0,
  waiting: 0,
  settledBefore: 0,
})

const keyOf = ({ topic, partition }: Place): string => `${topic}/${partition}`

export class Audit {
  readonly #terms: AuditTerms
  readonly #watched = new Map<string, Watched>()
  readonly #tiers = new Map<string | null, TierSums>()
  readonly #copies: Copy[] = []
  readonly #read = { calls: 0, retries: 0, deadLetters: 0, tallies: 0 }
  #copyCount = 0

  constructor(terms: AuditTerms) {
    this.#terms = terms
    for (const of of terms.partitions) {
      const { position, metadata } = of
      const committed: Cover | null =
        position === null ? null : { position, runs: decodeFinished(position, metadata) }
      const chain = new LedgerChain(committed, tallyIdOf(of.metadata), () => new PartitionFacts(terms.until))
      this.#watched.set(keyOf(of), { of, chain, result: null, before: [] })
    }
  }

  /** Of one partition in the order in which they were written. @param at epoch ms */
  addTally(place: Place, tally: Tally, at: number): void {
    const watched = this.#watched.get(keyOf(place))
    if (!watched || watched.of.group !== tally.group) return
    this.#read.tallies++
    watched.chain.add(tally, at)
  }

  /** All tallies were added: what was told is known from here on. */
  endTallies(): void {
    for (const watched of this.#watched.values()) {
      watched.result = watched.chain.end()
      watched.result.sink.end()
      const { position, runs } = watched.result.start
      watched.before = joinRuns([{ start: 0, end: position }], runs)
    }
  }

  /** What must be read of a topic's partition: nothing outside of it matters. Null: none of it. */
  rangeOf(place: Place): { low: number; high: number } | null {
    const result = this.#watched.get(keyOf(place))?.result
    const cover = result?.sink.cover
    if (!result || !cover) return null
    const high = cover.runs[cover.runs.length - 1]?.end ?? cover.position
    return { low: result.start.position, high }
  }

  /** Of each partition, where its chain begins. */
  starts(): (Place & { from: number })[] {
    return [...this.#watched.values()].map(({ of: { topic, partition }, result }) => ({
      topic,
      partition,
      from: result!.start.position,
    }))
  }

  addCall(place: Place, offset: number): void {
    this.#read.calls++
    this.#countRecord(place, offset)
  }

  addRetry(record: HandedOnRecord): void {
    this.#read.retries++
    this.#countRecord(record, record.offset)
    const sums = this.#tierSums(record.destinationId)
    const kind = record.from ? this.#classOf(record, record.from) : 'replay'
    if (kind === 'fact') this.#found(record, 'foundRetries')
    const tier = this.#watched.get(keyOf(record))
    if (!tier?.result) return
    const { sink } = tier.result
    if (isInRuns(tier.before, record.offset)) {
      if (kind === 'fact') sums.settledBefore++
      return
    }
    const waits = !sink.isTold(record.offset)
    if (kind === 'ahead') {
      if (!waits) sums.ahead++
      return
    }
    if (kind === 'copy') {
      sums.copies++
      this.#nameCopy(record)
    } else if (kind === 'earlier') sums.carried++
    else if (kind === 'replay') sums.replayed++
    if (waits) sums.waiting++
  }

  addLetter(record: HandedOnRecord): void {
    this.#read.deadLetters++
    if (!record.from) return
    const kind = this.#classOf(record, record.from)
    if (kind === 'fact') this.#found(record, 'foundLetters')
    else if (kind === 'copy') this.#nameCopy(record)
  }

  report(): AuditReport {
    const faults: AuditFault[] = []
    const partitions: PartitionLine[] = []
    const calls = new Map<string | null, ReturnType<typeof entryOf>>()
    const tiers: typeof calls = new Map()
    for (const { of, result } of this.#watched.values()) {
      const { sink, start, faults: chainFaults } = result!
      const { topic, partition, group } = of
      for (const { kind, runs, why } of chainFaults) {
        if (runs.length === 0)
          faults.push({ kind, topic, partition, destinationId: null, first: null, last: null, why })
        for (const run of runs) {
          const last = Number.isFinite(run.end) ? run.end - 1 : null
          faults.push({ kind, topic, partition, destinationId: null, first: run.start, last, why })
        }
      }
      const sums = this.#terms.isTier(topic) ? tiers : calls
      for (const counts of sink.counts.values()) addCounts(entryOf(sums, counts.destinationId), counts)
      const { since, records, lost, tallies } = sink
      const to = sink.cover?.position ?? start.position
      partitions.push({ group, topic, partition, from: start.position, to, since, records, lost, tallies })
      faults.push(...this.#segmentFaults(of, sink))
    }
    const destinations = equationOf(calls, tiers, this.#tiers)
    const ok = faults.length === 0 && destinations.every(({ balance }) => balance === 0)
    partitions.sort((a, b) => (a.topic < b.topic ? -1 : a.topic > b.topic ? 1 : a.partition - b.partition))
    const [copies, copyCount, read] = [this.#copies, this.#copyCount, this.#read]
    return { ok, partitions, destinations, faults, copies, copyCount, read }
  }

  #tierSums(destinationId: string | null): TierSums {
    let sums = this.#tiers.get(destinationId)
    if (!sums) this.#tiers.set(destinationId, (sums = noTierSums()))
    return sums
  }

  /**
   * `fact`: a tally tells of the hand-over. `copy`: a tally tells of the record that it came from, but another owner
   * finished it, or it is there twice. `earlier`: it came about before what is audited. `ahead`: after it.
   */
  #classOf(record: HandedOnRecord, from: NonNullable<HandedOnRecord['from']>): RecordClass {
    const watched = this.#watched.get(keyOf(from))
    if (!watched?.result || isInRuns(watched.before, from.offset)) return 'earlier'
    const { result } = watched
    if (!result.sink.isTold(from.offset)) return 'ahead'
    return result.sink.isBy(record.owner, from.offset) && !record.repeated ? 'fact' : 'copy'
  }

  #found({ from, destinationId }: HandedOnRecord, what: 'foundRetries' | 'foundLetters'): void {
    const segment = this.#watched.get(keyOf(from!))!.result!.sink.segmentOf(from!.offset)
    if (segment) handedOnOf(segment, destinationId)[what]++
  }

  #countRecord(place: Place, offset: number): void {
    const sink = this.#watched.get(keyOf(place))?.result?.sink
    if (!sink?.isTold(offset)) return
    const segment = sink.segmentOf(offset)
    if (segment) segment.foundRecords++
  }

  #nameCopy({ topic, partition, offset, deliveryId, from, owner }: HandedOnRecord): void {
    this.#copyCount++
    if (this.#copies.length >= mostCopiesNamed) return
    this.#copies.push({ topic, partition, offset, deliveryId, from: from as Origin | null, owner })
  }

  #segmentFaults({ topic, partition, low }: CommittedPartition, { segments }: PartitionFacts): AuditFault[] {
    const { retriesKeptSince, lettersKeptSince } = this.#terms
    const faults: AuditFault[] = []
    for (const segment of segments) {
      const { start: first, firstAt, toldRecords: told, foundRecords: found } = segment
      const last = Number.isFinite(segment.end) ? segment.end - 1 : null
      const name = (kind: AuditFault['kind'], destinationId: string | null, why: string) =>
        faults.push({ kind, topic, partition, destinationId, first, last, why })
      // Records that retention has removed since cannot be counted any more.
      if (first >= low && told !== found)
        name('records', null, `tallies tell of ${told} records, the topic holds ${found}`)
      for (const [destinationId, handedOn] of segment.handedOn) {
        const { toldRetries, foundRetries, toldLetters, foundLetters } = handedOn
        if (firstAt >= retriesKeptSince && toldRetries !== foundRetries)
          name(
            'retries',
            destinationId,
            `tallies tell of ${toldRetries} deliveries handed to tiers, the tiers hold ${foundRetries}`,
          )
        if (firstAt >= lettersKeptSince && toldLetters !== foundLetters)
          name(
            'dead_letters',
            destinationId,
            `tallies tell of ${toldLetters} dead letters, their topic holds ${foundLetters}`,
          )
      }
    }
    return faults
  }
}
