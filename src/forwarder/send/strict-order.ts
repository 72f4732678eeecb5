import { BlockedLines, lineOf } from '../../core/ordering/blocked-lines.ts'
import { isInRuns, decodeFinished, type FinishedOffsets } from '../../core/offsets/offset-runs.ts'
import type { RetryDelivery } from '../../core/delivery/delivery.ts'
import { messageOf } from '../../errors.ts'
import { retryForever } from '../../retry-forever.ts'
import type { AssignedPartition } from '../consume/assigned-partition.ts'
import type { PartitionRange } from '../consume/lag.ts'
import type { CommittedPartition, TopicPartition } from '../consume/record-source.ts'
import type { Log } from '../log.ts'
import { steadyClock } from '../steady-clock.ts'
import type { ActiveDelivery } from './active-delivery.ts'

/** How often it is looked whether parked calls have ended, in ms, while there are any. */
const lookMs = 250

/** A parked call, as far as it says whom it blocks. */
export interface ParkedPlace {
  partition: number
  offset: number
  /** One character a byte. */
  key: string | null
  delivery: Pick<RetryDelivery, 'destinationId' | 'origin'>
}

export interface StrictOrderParts {
  /** The topic of parked calls. */
  topic: string
  /** What the group that sends parked calls has committed. */
  committed(partitions: readonly TopicPartition[]): Promise<CommittedPartition[]>
  endOffsets(topics: readonly string[]): Promise<PartitionRange[]>
  /** Reads parked calls; what cannot be read is left out. */
  readParked(
    ranges: readonly { partition: number; low: number; high: number }[],
    take: (found: ParkedPlace) => void,
    signal: AbortSignal,
  ): Promise<void>
  /** What was held is to go on: it is sent, or parked. */
  resume(active: ActiveDelivery): void
  log: Pick<Log, 'warn'>
}

interface PartitionState {
  lines: BlockedLines
  /** By line, the delivery whose turn it is, where that waits for the line to be free. */
  held: Map<string, ActiveDelivery>
  /** What lay parked before this process had the partition is known. */
  isKnown: boolean
}

/** One call on its way to the topic of parked calls: it becomes known where it lies there, or that it will not. */
export class Parking {
  readonly #lines: BlockedLines
  readonly #line: string

  constructor(lines: BlockedLines, line: string) {
    this.#lines = lines
    this.#line = line
    lines.opened(line)
  }

  placed(partition: number, offset: number | null): void {
    this.#lines.placed(this.#line, partition, offset)
  }

  /** It ended otherwise. */
  closed(): void {
    this.#lines.closed(this.#line)
  }
}

/**
 * Where calls are sent for the first time: whose calls wait, at destinations with strict order. A user is blocked from the
 * moment that a call of theirs is to be tried again, and it is parked; so is each later one without an attempt, until all
 * of them have ended.
 */
export class StrictOrder {
  readonly #parts: StrictOrderParts
  readonly #signal: AbortSignal
  readonly #partitions = new Map<AssignedPartition, PartitionState>()
  /** Partitions that wait for the next reading of what lies parked. */
  #asking: { partitions: Set<AssignedPartition>; known: Promise<void> } | null = null
  #reading: Promise<void> = Promise.resolve()
  #timer: NodeJS.Timeout | null = null

  constructor(parts: StrictOrderParts, signal: AbortSignal) {
    this.#parts = parts
    this.#signal = signal
  }

  /** Null where it is known whose calls lie parked of the partition; otherwise what to wait for. */
  pending(partition: AssignedPartition): Promise<void> | null {
    if (this.#partitions.get(partition)?.isKnown) return null
    if (!this.#asking) {
      const partitions = new Set<AssignedPartition>()
      const known = this.#reading.then(() => {
        // Whoever asks from now on may have had another owner until now.
        this.#asking = null
        return this.#read(partitions)
      })
      this.#asking = { partitions, known }
      this.#reading = known
    }
    this.#asking.partitions.add(partition)
    return this.#asking.known
  }

  isBlocked({ work, destination, key }: ActiveDelivery): boolean {
    const lines = this.#partitions.get(work.partition)?.lines
    return lines !== undefined && lines.size > 0 && lines.has(lineOf(destination.id, key!))
  }

  /**
   * Holds a blocked delivery for a moment rather than have it parked, where its user will soon be free: one with many calls
   * would be blocked for ever otherwise. True: it is resumed.
   */
  hold(active: ActiveDelivery): boolean {
    const { work, destination, key } = active
    const { lines, held } = this.#stateOf(work.partition)
    const line = lineOf(destination.id, key!)
    if (!lines.isDraining(line, steadyClock.now())) return false
    held.set(line, active)
    return true
  }

  /** The user's calls are parked from now on. */
  block({ work, destination, key }: ActiveDelivery): void {
    this.#stateOf(work.partition).lines.block(lineOf(destination.id, key!))
    this.#lookLater()
  }

  /** A call is about to be parked, or parked again. */
  park({ work, destination, key }: ActiveDelivery): Parking {
    this.#lookLater()
    return new Parking(this.#stateOf(work.partition).lines, lineOf(destination.id, key!))
  }

  dropLost(): void {
    for (const [partition, { held }] of this.#partitions) {
      if (partition.alive) continue
      this.#partitions.delete(partition)
      for (const active of held.values()) this.#parts.resume(active)
    }
  }

  #stateOf(partition: AssignedPartition): PartitionState {
    let state = this.#partitions.get(partition)
    if (!state) {
      state = { lines: new BlockedLines(), held: new Map(), isKnown: false }
      this.#partitions.set(partition, state)
    }
    return state
  }

  #lookLater(): void {
    if (this.#timer !== null || this.#signal.aborted) return
    this.#timer = setTimeout(() => void this.#look(), lookMs)
    this.#timer.unref()
  }

  /** Frees the users whose parked calls have ended. Never rejects. */
  async #look(): Promise<void> {
    try {
      const all = [...this.#partitions.values()].map(({ lines }) => lines)
      const unknown = all.filter((lines) => lines.hasUnknown)
      if (unknown.length > 0) {
        const ends = await this.#parts.endOffsets([this.#parts.topic])
        for (const lines of unknown)
          lines.endsAre(new Map(ends.map(({ partition, end }) => [partition, end])))
      }
      const asked = new Set(all.flatMap((lines) => [...lines.partitions()]))
      const hasEnded = asked.size === 0 ? () => false : await this.#committed([...asked])
      const now = steadyClock.now()
      for (const lines of all) lines.free(hasEnded, now)
    } catch (error) {
      this.#parts.log.warn({}, `it cannot be seen whether parked calls have ended: ${messageOf(error)}`)
    }
    this.#timer = null
    this.#resumeHeld()
    if ([...this.#partitions.values()].some(({ lines }) => lines.size > 0)) this.#lookLater()
  }

  /** Those whose line is free, or makes no progress any more. */
  #resumeHeld(): void {
    const now = steadyClock.now()
    for (const { lines, held } of this.#partitions.values())
      for (const [line, active] of held) {
        if (lines.isDraining(line, now)) continue
        held.delete(line)
        this.#parts.resume(active)
      }
  }

  async #committed(partitions: readonly number[]): Promise<(partition: number, offset: number) => boolean> {
    const { topic } = this.#parts
    const found = await this.#parts.committed(partitions.map((partition) => ({ topic, partition })))
    const finished = new Map(found.map((each) => [each.partition, finishedOf(each)]))
    return (partition, offset) => {
      // A call can have been parked meanwhile, in a partition that nobody asked for.
      const known = finished.get(partition)
      if (known === undefined) return false
      const { position, runs } = known
      return offset < position || isInRuns(runs, offset)
    }
  }

  /** Whose calls lie parked of these partitions. Tries for ever. */
  async #read(partitions: ReadonlySet<AssignedPartition>): Promise<void> {
    await retryForever(() => this.#readOnce(partitions), {
      signal: this.#signal,
      onError: (error, retryInMs) =>
        this.#parts.log.warn({ retryInMs }, `parked calls cannot be read: ${messageOf(error)}`),
    })
  }

  async #readOnce(partitions: ReadonlySet<AssignedPartition>): Promise<void> {
    const { topic } = this.#parts
    // The ends first: what is committed later is finished all the same.
    const ends = await this.#parts.endOffsets([topic])
    const committed = await this.#parts.committed(ends.map(({ partition }) => ({ topic, partition })))
    const finished = new Map(committed.map((each) => [each.partition, finishedOf(each)]))
    const ranges = ends.map(({ partition, start, end }) => ({
      partition,
      low: Math.max(start, finished.get(partition)!.position),
      high: end,
    }))
    const of = new Map([...partitions].map((each) => [each.partition, each]))
    const take = ({ partition, offset, key, delivery: { destinationId, origin } }: ParkedPlace) => {
      const calls = of.get(origin.partition)
      if (!calls?.alive || origin.topic !== calls.topic || key === null) return
      if (isInRuns(finished.get(partition)!.runs, offset)) return
      this.#stateOf(calls).lines.found(lineOf(destinationId, key), partition, offset)
    }
    await this.#parts.readParked(ranges, take, this.#signal)
    for (const partition of partitions) {
      if (partition.alive) this.#stateOf(partition).isKnown = true
    }
    this.#lookLater()
  }
}

const finishedOf = ({ position, metadata, logStart }: CommittedPartition): FinishedOffsets =>
  position === null
    ? { position: logStart, runs: [] }
    : { position, runs: decodeFinished(position, metadata) }
