import type { Kafka } from 'kafkajs'
import { messageOf } from '../../../errors.ts'
import type { FetchedRecord, FetchedRecords } from '../../../forwarder/consume/record-source.ts'
import { pause, retryForever } from '../../../retry-forever.ts'
import type { Logger } from '../../log.ts'
import { answerError } from '../kafkajs-internals.ts'
import { Brokers } from '../link/brokers.ts'
import { readBatches, UnpackAllowance } from '../wire/read-batches.ts'
import { fetchFrom, offsetsFrom, outOfRange, theBeginning } from './read-requests.ts'

/** Of one stretch: what a record costs to find is shared by some hundred others. */
const fetchBytes = 256 * 1_024
/** Of all stretches together, and for how long: once an outage is over, nobody asks for them any more. */
const kept = { bytes: 32 * 1_024 * 1_024, ms: 60_000 }
/** What is asked for lies there: the leader need not wait for it. */
const maxWaitMs = 100
/** What the leader does not know yet, a new one for instance. */
const lookAgainMs = 100
/**
 * An offset for which its leader has nothing is none, once that was so for so long with all replicas in sync, and each of
 * them answers; in ms. A new leader hands nothing out that it does not know to be at the others: while one of them is away
 * or frozen that may take as long as the brokers keep it among those in sync (`replica.lag.time.max.ms`, 30 s), and while
 * too few are in sync, for ever.
 */
const defaultNothingThereMs = 180_000
/** The same where no other replica can hold it back, and for a partition that there is not; in ms. */
const nothingAloneMs = 10_000

/** Records of one partition that lie next to each other. */
interface Stretch {
  partition: number
  /** Offsets that it covers, be there records or not: from the first up to, not including, the last. */
  from: number
  to: number
  records: FetchedRecords | null
  /** By `performance.now()`. */
  readAt: number
}

/** Somebody waits until these offsets are covered. */
interface Wanted {
  partition: number
  /** Ascending. */
  offsets: readonly number[]
  /** How many are covered. */
  done: number
  found: FetchedRecord[]
  resolve: (found: FetchedRecord[]) => void
}

/** A partition's leader has nothing at an offset, nor behind it, with all replicas in sync. */
interface Nothing {
  from: number
  /** Null: there is no such partition. */
  leader: number | null
  /** Since when, and when it was so last, by `performance.now()`. */
  since: number
  seenAt: number
}

/**
 * Reads records of one topic by where they lie, from the partitions' leaders. Whoever asks for one soon asks for those
 * next to it, and several ask for the same: so a whole stretch is read, and the newest stretches are kept for a while.
 */
export class StretchReader {
  readonly #topic: string
  readonly #brokers: Brokers
  readonly #log: Pick<Logger, 'warn'>
  readonly #nothingThereMs: number
  readonly #sweep: NodeJS.Timeout
  readonly #stop = new AbortController()
  /** The oldest first. */
  #stretches: Stretch[] = []
  #bytes = 0
  /** By partition, in the order in which they were asked for. */
  readonly #waiting = new Map<number, Wanted[]>()
  /** By partition. What was put off before a log was cut off may be thousands of runs, and is waited for once. */
  readonly #nothing = new Map<number, Nothing>()

  constructor(
    kafka: Kafka,
    topic: string,
    log: Pick<Logger, 'warn'>,
    { nothingThereMs = defaultNothingThereMs, keptMs = kept.ms } = {},
  ) {
    this.#nothingThereMs = nothingThereMs
    this.#sweep = setInterval(() => this.#letGo(keptMs), keptMs / 4).unref()
    this.#topic = topic
    this.#brokers = new Brokers(kafka)
    this.#brokers.follow(topic)
    this.#log = log
  }

  /**
   * Those at these offsets (ascending), as far as they are there: retention, compaction or an aborted transaction may have
   * taken some. Waits for brokers that are away, and for ever once it is closed.
   */
  read(partition: number, offsets: readonly number[]): Promise<readonly FetchedRecord[]> {
    const { promise, resolve } = Promise.withResolvers<FetchedRecord[]>()
    const wanted: Wanted = { partition, offsets, done: 0, found: [], resolve }
    if (this.#take(wanted)) return promise
    const waiting = this.#waiting.get(partition)
    if (waiting) waiting.push(wanted)
    else {
      this.#waiting.set(partition, [wanted])
      void this.#serve(partition)
    }
    return promise
  }

  close(): void {
    this.#stop.abort()
    clearInterval(this.#sweep)
    this.#brokers.close()
    this.#stretches = []
    this.#waiting.clear()
  }

  /** Takes what the stretches have of it; true where that is all. */
  #take(wanted: Wanted): boolean {
    const { partition, offsets } = wanted
    while (wanted.done < offsets.length) {
      const offset = offsets[wanted.done]!
      const stretch = this.#stretches.find(
        (each) => each.partition === partition && each.from <= offset && offset < each.to,
      )
      if (!stretch) return false
      for (; wanted.done < offsets.length && offsets[wanted.done]! < stretch.to; wanted.done++) {
        const record = stretch.records && recordAt(stretch.records, offsets[wanted.done]!)
        if (record) wanted.found.push(record)
      }
    }
    wanted.resolve(wanted.found)
    return true
  }

  /** Reads for as long as somebody waits. */
  async #serve(partition: number): Promise<void> {
    const { signal } = this.#stop
    const work = async (succeeding: () => void): Promise<void> => {
      for (;;) {
        const waiting = (this.#waiting.get(partition) ?? []).filter((wanted) => !this.#take(wanted))
        if (waiting.length === 0 || signal.aborted) {
          this.#waiting.delete(partition)
          return
        }
        this.#waiting.set(partition, waiting)
        const [first] = waiting as [Wanted]
        await this.#readFor(first)
        succeeding()
      }
    }
    await retryForever(work, {
      signal,
      initialMs: lookAgainMs,
      onError: async (error, retryInMs) => {
        this.#log.warn(
          { topic: this.#topic, partition, retryInMs, error: messageOf(error) },
          'calls that were put off cannot be read again; trying on',
        )
        await this.#brokers.refresh().catch(() => {})
      },
    })
  }

  async #readFor(wanted: Wanted): Promise<void> {
    const { partition, offsets, done } = wanted
    if (await this.#readFrom(partition, offsets[done]!)) return
    if (this.#brokers.isStale) await this.#brokers.refresh()
    const isNone = partition >= (this.#brokers.partitions(this.#topic) ?? Infinity)
    const since = await this.#nothingSince(partition, offsets[done]!, isNone)
    const isAlone = isNone || this.#brokers.replicas(this.#topic, partition).length === 1
    const enoughMs = isAlone ? Math.min(nothingAloneMs, this.#nothingThereMs) : this.#nothingThereMs
    if (since !== null && performance.now() - since > enoughMs) {
      await this.#brokers.askReplicas(this.#topic, partition)
      // Nobody has written such offsets, or the log was cut off: the record that names them is wrong.
      wanted.resolve(wanted.found)
      wanted.done = offsets.length
      return
    }
    await pause(lookAgainMs, this.#stop.signal)
  }

  /**
   * Since when there is nothing from this offset on, where there is nothing now; null while replicas are not in sync. An
   * earlier offset is asked for as well: while one leader has nothing from there on, nothing comes behind it either.
   */
  async #nothingSince(partition: number, offset: number, isNone: boolean): Promise<number | null> {
    if (!isNone && !this.#brokers.isInSync(this.#topic, partition)) {
      this.#nothing.delete(partition)
      return null
    }
    const leader = this.#brokers.leader(this.#topic, partition)
    const known = this.#nothing.get(partition)
    const now = performance.now()
    const isSame = known?.leader === leader && now - known.seenAt < kept.ms && known.from <= offset
    if (isSame && (known.from === offset || !(await this.#readFrom(partition, known.from)))) {
      known.seenAt = now
      return known.since
    }
    this.#nothing.set(partition, { from: offset, leader, since: now, seenAt: now })
    return now
  }

  /**
   * Adds the stretch that begins there; false where there is nothing. Throws as a broker that does not lead the partition,
   * or cannot be reached.
   */
  async #readFrom(partition: number, offset: number): Promise<boolean> {
    if (this.#brokers.leader(this.#topic, partition) === null) await this.#brokers.refresh()
    const leader = this.#brokers.leader(this.#topic, partition)
    if (leader === null) {
      if (partition >= (this.#brokers.partitions(this.#topic) ?? Infinity)) return false
      throw new Error(`partition ${partition} of ${this.#topic} has no leader`)
    }
    const connection = await this.#brokers.connection(leader)
    const place = { topic: this.#topic, partition, offset, maxBytes: fetchBytes }
    const { errorCode, parts } = await fetchFrom(connection, [place], { maxWaitMs })
    const [part] = parts
    const code = errorCode !== 0 ? errorCode : (part?.errorCode ?? 0)
    if (code === outOfRange) {
      const [low] = await offsetsFrom(connection, [{ topic: this.#topic, partition, at: theBeginning }])
      if (low!.errorCode !== 0) throw answerError(low!.errorCode, this.#topic)
      // Retention took what lay before; a leader may also not know yet how far the others are.
      if (low!.offset > offset) this.#keep(partition, offset, low!.offset, null)
      return low!.offset > offset
    }
    if (code !== 0 || !part) throw answerError(code, this.#topic)
    const records = await readBatches(part.bytes, offset, part.aborted, new UnpackAllowance())
    if (records === null || records.lastOffset < offset) return false
    this.#keep(partition, offset, records.lastOffset + 1, records)
    return true
  }

  #keep(partition: number, from: number, to: number, records: FetchedRecords | null): void {
    const stretch = { partition, from, to, records, readAt: performance.now() }
    this.#stretches.push(stretch)
    this.#bytes += bytesOf(stretch)
    while (this.#bytes > kept.bytes && this.#stretches.length > 1) this.#dropOldest()
  }

  #letGo(keptMs: number): void {
    const before = performance.now() - keptMs
    while (this.#stretches.length > 0 && this.#stretches[0]!.readAt < before) this.#dropOldest()
  }

  #dropOldest(): void {
    this.#bytes -= bytesOf(this.#stretches.shift()!)
  }
}

/** With what it takes to find it. */
const bytesOf = ({ records }: Stretch): number => (records?.bytes ?? 0) + 1_024

/** Null where there is none at this offset. */
function recordAt(records: FetchedRecords, offset: number): FetchedRecord | null {
  let [low, high] = [0, records.length - 1]
  while (low <= high) {
    const middle = (low + high) >> 1
    const at = records.offsetAt(middle)
    if (at === offset) return records.at(middle)
    if (at < offset) low = middle + 1
    else high = middle - 1
  }
  return null
}
