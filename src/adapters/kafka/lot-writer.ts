import { setTimeout as delay } from 'node:timers/promises'
import type { ICustomPartitioner, Kafka, Message, Producer } from 'kafkajs'
import type { CallSink, Lot } from '../../collector/ports.ts'
import type { AnalyticsCall } from '../../core/analytics-call.ts'
import { PostriderError, messageOf } from '../../errors.ts'
import type { Logger } from '../log.ts'
import { CallLot } from './call-lot.ts'
import type { ValueWriter } from './record-bytes.ts'
import { backOff, within } from './waiting.ts'

/** acks=all: every in-sync replica has it. */
const allReplicas = -1
const connectWithinMs = 3_000

export interface LotWriterOptions {
  kafka: Kafka
  topic: string
  codec: ValueWriter<AnalyticsCall>
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
  #lots: CallLot[] = []
  #state: State = 'connecting'
  #reason = 'it is connecting to Kafka'
  #producer: Producer | null = null
  /** Of the topic, as the brokers had it last. */
  #partitions = 1
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
    const { codec } = this.#options
    let lot = this.#lots.at(-1)
    if (lot === undefined || !lot.add(call, codec)) {
      lot = new CallLot(this.#partitions)
      lot.add(call, codec)
      this.#lots.push(lot)
    }
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
  async #produce(lot: CallLot): Promise<void> {
    const { topic, deadlineMs, produced, log } = this.#options
    const producer = this.#producer!
    this.#sentAt = performance.now()
    // kafkajs sorts messages by partition in quadratic time: it gets one for each.
    const messages: Message[] = lot.bundles
    const sending = producer.send({ topic, acks: allReplicas, messages })
    try {
      await within(deadlineMs, sending)
      produced((performance.now() - this.#sentAt) / 1_000)
      lot.settle(true)
    } catch (error) {
      this.#reason = `Kafka does not take calls: ${messageOf(error)}`
      log.warn({ topic, calls: lot.calls, err: error }, 'a lot of calls was not acknowledged')
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
        createPartitioner: this.#partitioner,
        retry: { retries: 3, initialRetryTime: 100, maxRetryTime: 1_000 },
      })
      const [connecting, counting] = [producer.connect(), partitionsOf(kafka, topic)]
      try {
        const [, partitions] = await within(connectWithinMs, Promise.all([connecting, counting]))
        this.#partitions = partitions
        this.#producer = producer
        if (this.#state === 'connecting') this.#state = 'writing'
        return
      } catch (error) {
        this.#reason = `Kafka cannot be reached: ${messageOf(error)}`
        log.warn({ topic, error: messageOf(error) }, 'the collector cannot reach Kafka; trying again')
        void Promise.allSettled([connecting, counting]).then(() => producer.disconnect().catch(() => {}))
        await delay(Math.min(backOff(failures), 1_000), undefined, { signal }).catch(() => {})
      }
    }
  }

  /** The calls of a lot were sorted when they came in; partitions that were added since serve the next one. */
  readonly #partitioner: ICustomPartitioner =
    () =>
    ({ topic, message: { partition }, partitionMetadata: { length } }) => {
      this.#partitions = length
      // kafkajs would leave out, and call written, what goes to a partition that there is not.
      if (partition! >= length) throw new PostriderError('setup', `${topic} has fewer partitions than before`)
      return partition!
    }
}

async function partitionsOf(kafka: Kafka, topic: string): Promise<number> {
  const admin = kafka.admin()
  try {
    await admin.connect()
    const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
    return topics[0]!.partitions.length
  } finally {
    await admin.disconnect().catch(() => {})
  }
}
