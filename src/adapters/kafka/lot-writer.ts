import { setTimeout as delay } from 'node:timers/promises'
import type { Kafka, Message, Producer } from 'kafkajs'
import type { CallSink, Lot } from '../../collector/ports.ts'
import { partitionKey } from '../../core/analytics-call.ts'
import type { AnalyticsCall } from '../../core/analytics-call.ts'
import { messageOf } from '../../errors.ts'
import type { Logger } from '../log.ts'
import { murmur2Partitioner } from './produce-encoding.ts'
import { backOff, within } from './waiting.ts'

/** acks=all: every in-sync replica has it. */
const allReplicas = -1
/** kafkajs sorts a lot by partition in quadratic time. */
const mostInLot = 1_000
/** The topic's max.message.bytes holds for all of one partition's records in a lot together, hence for the lot. */
const mostLotBytes = 1_048_576 - 4_096
/** What a record takes beside its key and value, at the most. */
const recordOverheadBytes = 64
const connectWithinMs = 3_000

export interface LotWriterOptions {
  kafka: Kafka
  topic: string
  codec: { encode(call: AnalyticsCall): Buffer }
  log: Logger
  /** Told how long each lot took, in seconds. */
  produced: (seconds: number) => void
  /** The least time between two lots, in ms. With nothing sent within it a lot goes out at once. */
  lingerMs?: number
  /** A lot that is not acknowledged by then has failed, as far as anybody can know. */
  deadlineMs?: number
}

/**
 * - `connecting`: Kafka is away, or nobody has looked yet. Nothing is taken.
 * - `writing`: lots go out.
 * - `closed`: final.
 *
 * connecting → writing → connecting (a lot failed) → …; either → closed.
 */
type State = 'connecting' | 'writing' | 'closed'

class WaitingLot implements Lot {
  readonly written: Promise<boolean>
  readonly settle: (written: boolean) => void
  readonly messages: Message[] = []
  readonly since = performance.now()
  bytes = 0

  constructor() {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    this.written = promise
    this.settle = resolve
  }
}

/**
 * Writes the calls of many requests in common lots, acks=all, one lot after another so that each user's calls keep
 * their order. While one is on its way the next one fills; a lot waits a few ms for more only when another has just
 * been sent. When one fails, those behind it do too, at once: their requests can be sent again, and until the
 * brokers answer no other is taken.
 */
export class LotWriter implements CallSink {
  readonly #options: Required<LotWriterOptions>
  readonly #stopping = new AbortController()
  /** The one that fills is the last. */
  #lots: WaitingLot[] = []
  #state: State = 'connecting'
  #reason = 'it is connecting to Kafka'
  #producer: Producer | null = null
  #sending: Promise<void> | null = null
  #scheduled: NodeJS.Timeout | NodeJS.Immediate | null = null
  #sentAt = -Infinity
  #loop: Promise<void> = Promise.resolve()

  constructor(options: LotWriterOptions) {
    this.#options = { lingerMs: 5, deadlineMs: 5_000, ...options }
  }

  /** Begins to connect, for ever if need be. */
  start(): void {
    this.#loop = this.#connect()
  }

  problem(): string | null {
    return this.#state === 'writing' ? null : this.#reason
  }

  /** While there is a problem, the lot has failed already. */
  add(call: AnalyticsCall): Lot {
    const value = this.#options.codec.encode(call)
    const key = partitionKey(call)
    const bytes = value.length + (key === null ? 0 : key.length * 3) + recordOverheadBytes
    let lot = this.#lots.at(-1)
    if (lot === undefined || lot.messages.length === mostInLot || lot.bytes + bytes > mostLotBytes) {
      lot = new WaitingLot()
      this.#lots.push(lot)
    }
    lot.messages.push({ key, value })
    lot.bytes += bytes
    if (this.#state === 'writing') this.#schedule()
    else this.#failWaiting()
    return lot
  }

  /** Writes what was added, then disconnects. Idempotent. */
  async close(): Promise<void> {
    while (this.#state === 'writing' && (this.#lots.length > 0 || this.#sending !== null)) {
      await (this.#sending ?? this.#send())
    }
    this.#state = 'closed'
    this.#reason = 'it is closed'
    this.#stopping.abort()
    this.#unschedule()
    this.#failWaiting()
    await this.#loop
    await this.#producer?.disconnect().catch(() => {})
    this.#producer = null
  }

  #schedule(): void {
    if (this.#sending !== null) return
    const full = this.#lots.length > 1
    if (this.#scheduled !== null && !full) return
    this.#unschedule()
    const waitMs = full ? 0 : this.#sentAt + this.#options.lingerMs - performance.now()
    const send = () => void this.#send()
    // Even at once means after all requests that this turn of the event loop has read.
    this.#scheduled = waitMs > 0 ? setTimeout(send, waitMs) : setImmediate(send)
  }

  #unschedule(): void {
    clearTimeout(this.#scheduled as NodeJS.Timeout)
    clearImmediate(this.#scheduled as NodeJS.Immediate)
    this.#scheduled = null
  }

  #send(): Promise<void> {
    this.#unschedule()
    if (this.#sending !== null || this.#state !== 'writing') return Promise.resolve()
    let lot = this.#lots.shift()
    // Brokers that are slower than what comes in: who sent this has waited long enough.
    while (lot !== undefined && performance.now() - lot.since > this.#options.deadlineMs) {
      lot.settle(false)
      lot = this.#lots.shift()
    }
    if (lot === undefined) return Promise.resolve()
    this.#sending = this.#produce(lot).then(() => {
      this.#sending = null
      if (this.#lots.length > 0 && this.#state === 'writing') this.#schedule()
    })
    return this.#sending
  }

  /** Never rejects. */
  async #produce(lot: WaitingLot): Promise<void> {
    const { topic, deadlineMs, produced, log } = this.#options
    const producer = this.#producer!
    this.#sentAt = performance.now()
    const sending = producer.send({ topic, acks: allReplicas, messages: lot.messages })
    try {
      await within(deadlineMs, sending)
      produced((performance.now() - this.#sentAt) / 1_000)
      lot.settle(true)
    } catch (error) {
      this.#reason = `Kafka does not take calls: ${messageOf(error)}`
      log.warn({ topic, calls: lot.messages.length, err: error }, 'a lot of calls was not acknowledged')
      // It may go on trying for a while; once it has given up nothing of it is left.
      void sending.catch(() => {}).then(() => producer.disconnect().catch(() => {}))
      producer.disconnect().catch(() => {})
      this.#producer = null
      lot.settle(false)
      this.#failWaiting()
      if (this.#state !== 'writing') return
      this.#state = 'connecting'
      this.#loop = this.#connect()
    }
  }

  #failWaiting(): void {
    const lots = this.#lots
    this.#lots = []
    for (const lot of lots) lot.settle(false)
  }

  async #connect(): Promise<void> {
    const { kafka, log, topic } = this.#options
    const { signal } = this.#stopping
    for (let failures = 0; !signal.aborted; failures++) {
      const producer = kafka.producer({
        allowAutoTopicCreation: false,
        // murmur2, as Java's producers and librdkafka's murmur2_random: one user's calls share a partition.
        createPartitioner: murmur2Partitioner,
        retry: { retries: 3, initialRetryTime: 100, maxRetryTime: 1_000 },
      })
      const connecting = producer.connect()
      try {
        await within(connectWithinMs, connecting)
        this.#producer = producer
        if (this.#state === 'connecting') this.#state = 'writing'
        return
      } catch (error) {
        this.#reason = `Kafka cannot be reached: ${messageOf(error)}`
        log.warn({ topic, error: messageOf(error) }, 'the collector cannot reach Kafka; trying again')
        void connecting.catch(() => {}).then(() => producer.disconnect().catch(() => {}))
        await delay(Math.min(backOff(failures), 1_000), undefined, { signal }).catch(() => {})
      }
    }
  }
}
