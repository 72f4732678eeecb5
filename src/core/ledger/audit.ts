// Compares the tallies with the topics; `audit-report.ts` judges the result. A fold: first all tallies,
// then the records of calls, tiers and dead letters, in any order, each once.
import {
  allRuns,
  isInRuns,
  decodeFinished,
  tallyIdOf,
  type FinishedOffsets,
  type OffsetRun,
} from '../offsets/offset-runs.ts'
import { PartitionFacts, publishedOf } from './audit-partition.ts'
import {
  noTierSums,
  type TierSums,
  reportOf,
  type AuditReport,
  type AuditTerms,
  type AuditedPartition,
  type Copy,
  type PartitionId,
} from './audit-report.ts'
import { LedgerChain, type Chain } from './ledger-chain.ts'
import type { Tally } from './tally.ts'
import type { Place } from './trace.ts'

const maxCopiesNamed = 1_000

interface Watched {
  of: AuditedPartition
  chain: LedgerChain<PartitionFacts>
  /** Known once all tallies were read, and with it what was finished before its chain. */
  result: Chain<PartitionFacts> | null
  before: readonly OffsetRun[]
  /** What was finished before the tallies that the equation is of. */
  beforeEquation: readonly OffsetRun[]
}

/** What is known of a delivery in a tier, or of a record among the dead letters. */
export interface PublishedRecord extends Copy {
  /** Null where there is none, or it cannot be read; so is `deliveryId`. */
  destinationId: string | null
  /** The same retry or dead letter was published twice. */
  repeated: boolean
}

/** What a record's origin makes of it: see `#classOf`. */
type RecordClass = 'fact' | 'copy' | 'earlier' | 'ahead'

const keyOf = ({ topic, partition }: PartitionId): string => `${topic}/${partition}`

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
      const committed: FinishedOffsets | null =
        position === null ? null : { position, runs: decodeFinished(position, metadata) }
      const bounds = {
        until: terms.until,
        equatedSince: terms.retriesKeptSince,
        low: terms.isTier(of.topic) ? of.low : 0,
      }
      const chain = new LedgerChain(committed, tallyIdOf(of.metadata), () => new PartitionFacts(bounds))
      this.#watched.set(keyOf(of), { of, chain, result: null, before: [], beforeEquation: [] })
    }
  }

  /** Of one partition in the order in which they were written. @param at epoch ms */
  addTally(place: PartitionId, tally: Tally, at: number): void {
    const watched = this.#watched.get(keyOf(place))
    if (!watched || watched.of.group !== tally.group) return
    this.#read.tallies++
    watched.chain.add(tally, at)
  }

  /** Call it once all tallies were added, before the first record. */
  endTallies(): void {
    for (const watched of this.#watched.values()) {
      watched.result = watched.chain.end()
      watched.result.sink.end()
      const { start, sink } = watched.result
      watched.before = allRuns(start)
      watched.beforeEquation = allRuns(sink.equatedFrom ?? start)
    }
  }

  /** What must be read of a topic's partition: nothing outside of it matters. Null: none of it. */
  rangeOf(place: PartitionId): { low: number; high: number } | null {
    const result = this.#watched.get(keyOf(place))?.result
    const finished = result?.sink.finished
    if (!result || !finished) return null
    const high = finished.runs[finished.runs.length - 1]?.end ?? finished.position
    return { low: result.start.position, high }
  }

  /** Of each partition, where its chain begins. */
  starts(): (PartitionId & { from: number })[] {
    return [...this.#watched.values()].map(({ of: { topic, partition }, result }) => ({
      topic,
      partition,
      from: result!.start.position,
    }))
  }

  addCall(place: PartitionId, offset: number): void {
    this.#read.calls++
    this.#countRecord(place, offset)
  }

  /** A record of a tier, with its delivery, or those of a run. */
  addRetry(place: Place, deliveries: Iterable<PublishedRecord>): void {
    this.#read.retries++
    this.#countRecord(place, place.offset)
    for (const delivery of deliveries) this.#addScheduled(delivery)
  }

  #addScheduled(record: PublishedRecord): void {
    const sums = this.#tierSums(record.destinationId)
    const found = record.from ? this.#classOf(record, record.from) : 'replay'
    if (found === 'fact') this.#found(record, 'foundRetries')
    const kind = found === 'fact' && !this.#isEquated(record.from!) ? 'earlier' : found
    const tier = this.#watched.get(keyOf(record))
    if (!tier?.result) return
    const { sink } = tier.result
    if (isInRuns(tier.beforeEquation, record.offset)) {
      if (kind === 'fact') sums.settledBefore++
      return
    }
    const waits = !sink.isReported(record.offset)
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

  addDeadLetter(record: PublishedRecord): void {
    this.#read.deadLetters++
    if (!record.from) return
    const kind = this.#classOf(record, record.from)
    if (kind === 'fact') this.#found(record, 'foundDeadLetters')
    else if (kind === 'copy') this.#nameCopy(record)
  }

  report(): AuditReport {
    const [copies, copyCount, read] = [this.#copies, this.#copyCount, this.#read]
    const watched = [...this.#watched.values()].map(({ of, result }) => ({ of, chain: result! }))
    return reportOf(this.#terms, { watched, tiers: this.#tiers, copies, copyCount, read })
  }

  #tierSums(destinationId: string | null): TierSums {
    let sums = this.#tiers.get(destinationId)
    if (!sums) this.#tiers.set(destinationId, (sums = noTierSums()))
    return sums
  }

  /**
   * `fact`: a tally covers the record. `copy`: a tally covers the record that it came from, but another owner
   * finished it, or it is there twice. `earlier`: it came about before what is audited. `ahead`: after it.
   */
  #classOf(record: PublishedRecord, from: Place): RecordClass {
    const watched = this.#watched.get(keyOf(from))
    if (!watched?.result || isInRuns(watched.before, from.offset)) return 'earlier'
    const { result } = watched
    if (!result.sink.isReported(from.offset)) return 'ahead'
    return result.sink.isBy(record.owner, from.offset) && !record.repeated ? 'fact' : 'copy'
  }

  /** Whether the equation takes in what became of the record there. */
  #isEquated(from: Place): boolean {
    return !isInRuns(this.#watched.get(keyOf(from))!.beforeEquation, from.offset)
  }

  #found({ from, destinationId }: PublishedRecord, what: 'foundRetries' | 'foundDeadLetters'): void {
    const segment = this.#watched.get(keyOf(from!))!.result!.sink.segmentOf(from!.offset)
    if (segment) publishedOf(segment, destinationId)[what]++
  }

  #countRecord(place: PartitionId, offset: number): void {
    const sink = this.#watched.get(keyOf(place))?.result?.sink
    if (!sink?.isReported(offset)) return
    const segment = sink.segmentOf(offset)
    if (segment) segment.foundRecords++
  }

  #nameCopy({ topic, partition, offset, deliveryId, from, owner }: PublishedRecord): void {
    this.#copyCount++
    if (this.#copies.length >= maxCopiesNamed) return
    this.#copies.push({ topic, partition, offset, deliveryId, from, owner })
  }
}
