import type { Claim } from './claim.ts'
import type { EncodedRecord, RecordSink } from './ports.ts'

/**
 * A record on its way into a topic, and what is to be done when it has come to something. Thousands wait for a quarter
 * of a second beside an endpoint that is down, and outlive the young objects: each is one object, with no closures.
 */
export interface Outgoing extends EncodedRecord, Claim {
  /** The broker has it. */
  done(): void
  /** The topic takes no record as large as this one. */
  tooLarge(): void
}

interface Queue {
  /** Was unsure when its turn came; before all that waits. */
  unsure: Outgoing[]
  waiting: Outgoing[]
  /** How many of `waiting` are gone. */
  gone: number
  /** Of both. */
  bytes: number
  sending: boolean
  /** When the last lot began, by `performance.now()`. */
  sentAt: number
  timer: NodeJS.Timeout | null
}

/** A lot stays below the broker's limit on a partition's batch whichever partition its records fall to. */
const lotBytes = 512 * 1024
const lotRecords = 500
/** What a record costs beside its own bytes, at most: its head, and that of a batch, which counts too (KIP-98). */
const recordOverheadBytes = 128

/**
 * A lot follows another of its topic no sooner, in ms. Each lot is a request, which costs as much as some fifty records
 * in it, and what is handed over is not waited for by anybody but its own offset. Beside a bad endpoint with a tenth of
 * a full load, 250 ms took 7 % off what the process does for all the others; with 600 ms it was more again, since
 * what waits for so long outlives the young objects.
 */
const defaultLingerMs = 250

/**
 * Appends retry records, dead letters and the ledger's events in lots, acks=all, one lot a topic at a time: what comes
 * meanwhile makes the next one. `done` of each record is called once the broker has it.
 *
 * A record's claim is looked at once more before it is written. Who was frozen for longer than the session would else
 * hand over what the next owner of the partition delivers, and it would be delivered twice.
 */
export class HandOver {
  readonly #sink: RecordSink
  readonly #maxRecordBytes: number
  readonly #topics = new Map<string, Queue>()
  readonly #onFailure: (error: unknown) => void
  readonly #lingerMs: number
  #open = 0
  #idle: (() => void)[] = []

  /**
   * @param maxRecordBytes what the topics take (max.message.bytes)
   * @param onFailure a record can be kept nowhere: the process must not go on as if it were
   */
  constructor(
    sink: RecordSink,
    maxRecordBytes: number,
    onFailure: (error: unknown) => void,
    lingerMs = defaultLingerMs,
  ) {
    this.#sink = sink
    this.#maxRecordBytes = maxRecordBytes
    this.#onFailure = onFailure
    this.#lingerMs = lingerMs
  }

  /** Records appended whose `done` is still to come. */
  get open(): number {
    return this.#open
  }

  append(topic: string, record: Outgoing): void {
    const bytes = sizeOf(record)
    if (bytes > this.#maxRecordBytes) {
      record.tooLarge()
      return
    }
    this.#open++
    let queue = this.#topics.get(topic)
    if (!queue) {
      queue = { unsure: [], waiting: [], gone: 0, bytes: 0, sending: false, sentAt: -Infinity, timer: null }
      this.#topics.set(topic, queue)
    }
    queue.waiting.push(record)
    queue.bytes += bytes
    this.#schedule(topic, queue)
  }

  /** What waits of this topic goes out as soon as it can. */
  flush(topic: string): void {
    const queue = this.#topics.get(topic)
    if (!queue) return
    queue.sentAt = -Infinity
    clearTimeout(queue.timer ?? undefined)
    queue.timer = null
    if (countOf(queue) > 0) this.#schedule(topic, queue)
  }

  /** Looks again at records whose partitions it was not sure of. To be called now and then. */
  lookAgain(): void {
    for (const [topic, queue] of this.#topics) if (countOf(queue) > 0) this.#schedule(topic, queue)
  }

  /** Resolves once all that was appended is with the broker. */
  async settled(): Promise<void> {
    if (this.#open === 0) return
    for (const topic of this.#topics.keys()) this.flush(topic)
    await new Promise<void>((resolve) => this.#idle.push(resolve))
  }

  #schedule(topic: string, queue: Queue): void {
    if (queue.sending) return
    const waitMs = this.#waitMs(queue)
    if (queue.timer !== null && waitMs > 0) return
    clearTimeout(queue.timer ?? undefined)
    queue.timer = null
    if (waitMs > 0) {
      queue.timer = setTimeout(() => {
        queue.timer = null
        this.#begin(topic, queue)
      }, waitMs)
    } else this.#begin(topic, queue)
  }

  #waitMs(queue: Queue): number {
    const isFull = countOf(queue) >= lotRecords || queue.bytes >= lotBytes
    return isFull ? 0 : Math.max(0, queue.sentAt + this.#lingerMs - performance.now())
  }

  #begin(topic: string, queue: Queue): void {
    queue.sending = true
    // In the same turn of the event loop more may come.
    setImmediate(() => {
      this.#drain(topic, queue).catch(this.#onFailure)
    })
  }

  async #drain(topic: string, queue: Queue): Promise<void> {
    for (let waits = false; !waits; waits = this.#waitMs(queue) > 0) {
      const lot = this.#takeLot(queue)
      if (lot.length === 0) {
        queue.sending = false
        return
      }
      queue.sentAt = performance.now()
      await this.#send(topic, lot)
    }
    queue.sending = false
    if (countOf(queue) > 0) this.#schedule(topic, queue)
  }

  /** The first of what may be written now. What is lost by the time of its turn is dropped. */
  #takeLot(queue: Queue): Outgoing[] {
    const again = queue.unsure
    queue.unsure = []
    const lot: Outgoing[] = []
    let bytes = 0
    /** Looks at `one`; false: there is no room for it in this lot. */
    const take = (one: Outgoing): boolean => {
      const { standing } = one
      if (standing === 'unsure') queue.unsure.push(one)
      else if (standing === 'lost') this.#drop(queue, one)
      else {
        const size = sizeOf(one)
        if (lot.length === lotRecords || (lot.length > 0 && bytes + size > lotBytes)) return false
        lot.push(one)
        bytes += size
      }
      return true
    }
    let next = 0
    while (next < again.length && take(again[next]!)) next++
    if (next < again.length) queue.unsure = queue.unsure.concat(again.slice(next))
    else while (queue.gone < queue.waiting.length && take(queue.waiting[queue.gone]!)) queue.gone++
    queue.bytes -= bytes
    if (queue.gone === queue.waiting.length || queue.gone >= lotRecords) {
      queue.waiting = queue.waiting.slice(queue.gone)
      queue.gone = 0
    }
    this.#tellIfIdle()
    return lot
  }

  #drop(queue: Queue, one: Outgoing): void {
    queue.bytes -= sizeOf(one)
    this.#open--
    one.dropped()
  }

  async #send(topic: string, lot: Outgoing[]): Promise<void> {
    const refused = await this.#sink.append(topic, lot)
    this.#open -= lot.length
    for (const one of lot) {
      if (refused.length > 0 && refused.includes(one)) one.tooLarge()
      else one.done()
    }
    this.#tellIfIdle()
  }

  #tellIfIdle(): void {
    if (this.#open === 0) for (const resolve of this.#idle.splice(0)) resolve()
  }
}

const countOf = ({ unsure, waiting, gone }: Queue): number => unsure.length + waiting.length - gone

const sizeOf = ({ start, end }: EncodedRecord): number => end - start + recordOverheadBytes
