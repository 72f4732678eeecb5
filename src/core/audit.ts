// What the tallies tell, held against what lies in the topics; `audit-report.ts` judges it. A fold: first all tallies,
// then the records of calls, tiers and dead letters, in any order, each once.
import { noTierSums, type TierSums } from './audit-equation.ts'
import { PartitionFacts, handedOnOf } from './audit-partition.ts'
import {
  reportOf,
  type AuditReport,
  type AuditTerms,
  type CommittedPartition,
  type Copy,
  type Place,
} from './audit-report.ts'
import type { Origin } from './delivery.ts'
import { LedgerChain, type Chain } from './ledger-chain.ts'
import { isInRuns, joinRuns, type Cover } from './offset-cover.ts'
import { decodeFinished, tallyIdOf, type OffsetRun } from './offset-runs.ts'
import type { Tally } from './tally.ts'

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
}
