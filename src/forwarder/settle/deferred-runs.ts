import type { Origin } from '../../core/delivery/delivery.ts'
import { maxRunCalls, type DeferredRun } from '../../core/delivery/deferred-run.ts'
import { runsOf } from '../../core/offsets/offset-runs.ts'
import { lingerMs } from '../../core/pacing/limits.ts'
import type { Tier } from '../../core/topics.ts'
import type { AssignedPartition, Work } from '../consume/assigned-partition.ts'
import type { DestinationRuntime } from '../plan/destination-runtime.ts'
import type { SettlingParts } from './dead-letters.ts'
import type { EncodedRecord, OutgoingRecord } from './record-publisher.ts'

/** What is put off together: calls of one partition for one destination, to one tier. */
export interface PutOff {
  destination: DestinationRuntime
  /** Set where each URL of the destination gets a delivery of its own. */
  urlId: string | null
  endpointIds: readonly string[]
  tier: Tier
  /** Where the calls lie. */
  topic: string
  partition: number
  timesScheduled: number
  /** Epoch ms; null: it is now that they are. */
  firstScheduledAt: number | null
  /** The run's record that they come from; null where each is the call's own. */
  from: Origin | null
}

/** Deliveries with one result to come. */
interface Share {
  work: Work
  count: number
}

interface OpenRun {
  of: PutOff
  firstScheduledAt: number
  /** When the first and the last of them were put off, epoch ms: of these times is its due time made. */
  since: number
  scheduledAt: number
  work: Work
  offsets: number[]
  shares: Share[]
  /** Deliveries that hold a place in the memory budget. */
  reserved: number
}

/**
 * Puts deliveries off by where their calls lie: collects them for as long as records for the broker wait anyhow, and
 * publishes one record for many. What waits here is a number for each; nothing is kept of a delivery.
 */
export class DeferredRuns {
  readonly #parts: SettlingParts
  /** By partition that is worked on, and by what they have in common. */
  readonly #open = new Map<AssignedPartition, Map<string, OpenRun>>()
  #timer: NodeJS.Timeout | null = null

  constructor(parts: SettlingParts) {
    this.#parts = parts
  }

  /** A delivery that holds a place in the budget; its bytes were freed. */
  add(of: PutOff, work: Work, offset: number): void {
    const run = this.#runOf(of, work)
    run.offsets.push(offset)
    run.shares.push({ work, count: 1 })
    run.reserved++
    this.#schedule()
  }

  /** The deliveries of one record that were not begun. */
  addRest(of: PutOff, work: Work, offsets: readonly number[]): void {
    const run = this.#runOf(of, work)
    run.offsets.push(...offsets)
    run.shares.push({ work, count: offsets.length })
    this.#schedule()
  }

  /** Gives all that is collected to the publisher. */
  flush(): void {
    if (this.#timer) clearTimeout(this.#timer)
    this.#timer = null
    const all = [...this.#open.values()].flatMap((runs) => [...runs.values()])
    this.#open.clear()
    for (const run of all) this.#publish(run)
  }

  #runOf(of: PutOff, work: Work): OpenRun {
    const { destination, urlId, tier, endpointIds, from, topic, partition } = of
    let runs = this.#open.get(work.partition)
    if (!runs) this.#open.set(work.partition, (runs = new Map()))
    const key = [destination.id, urlId, tier.name, from?.offset, topic, partition, ...endpointIds].join(' ')
    const now = Date.now()
    let run = runs.get(key)
    // A timer can be late. What is put off together has one due time, which is never too early for one of them.
    if (run && (run.offsets.length >= maxRunCalls || now - run.since > lingerMs)) {
      this.#publish(run)
      run = undefined
    }
    if (!run) {
      const times = { firstScheduledAt: of.firstScheduledAt ?? now, since: now, scheduledAt: now }
      runs.set(key, (run = { of, ...times, work, offsets: [], shares: [], reserved: 0 }))
    }
    run.scheduledAt = now
    return run
  }

  /** A full one goes when the next call comes, or with all others. */
  #schedule(): void {
    this.#timer ??= setTimeout(() => this.flush(), lingerMs)
  }

  #publish(run: OpenRun): void {
    const { encoders, publisher, topics } = this.#parts
    const { of, work, offsets, firstScheduledAt, scheduledAt } = run
    const { destination, urlId, endpointIds, tier, topic, partition, timesScheduled, from } = of
    const record: DeferredRun = {
      destinationId: destination.id,
      urlId,
      endpointIds,
      calls: { topic, partition, runs: runsOf(offsets) },
      timesScheduled,
      firstScheduledAt,
      scheduledAt,
      owner: work.owner,
      from,
    }
    const result = this.#parts.ledger.codes.code(destination.id, 'deferred')
    publisher.append(
      topics.retry(tier.name),
      new WaitingRun(this.#parts, run, encoders.run(tier.name, record), result),
    )
  }
}

/** A run that is being published. */
class WaitingRun implements OutgoingRecord {
  readonly block: Buffer
  readonly start: number
  readonly end: number
  readonly #parts: SettlingParts
  readonly #run: OpenRun
  readonly #result: number

  constructor(parts: SettlingParts, run: OpenRun, { block, start, end }: EncodedRecord, result: number) {
    this.#parts = parts
    this.#run = run
    this.block = block
    this.start = start
    this.end = end
    this.#result = result
  }

  get ownership(): OutgoingRecord['ownership'] {
    return this.#run.work.partition.ownership
  }

  done(): void {
    const { metrics } = this.#parts
    const { of, shares, offsets } = this.#run
    metrics.retryScheduled(of.tier.name, offsets.length)
    of.destination.metrics.disposition('deferred', offsets.length)
    this.#free()
    for (const { work, count } of shares)
      for (let left = count; left > 0; left--) work.finishOne(this.#result)
  }

  dropped(): void {
    this.#free()
  }

  tooLarge(): void {
    throw new Error(
      `${this.#parts.topics.retry(this.#run.of.tier.name)} refuses a record of a few KB: check its max.message.bytes`,
    )
  }

  #free(): void {
    for (let left = this.#run.reserved; left > 0; left--) this.#parts.budget.free(0)
  }
}
