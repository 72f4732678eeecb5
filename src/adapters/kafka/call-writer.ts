import type { Kafka, Message, Producer } from 'kafkajs'
import { partitionKey } from '../../core/analytics-call.ts'
import type { AnalyticsCall } from '../../core/analytics-call.ts'
import { murmur2Partitioner } from './murmur2.ts'

/** acks=all: every in-sync replica has it. */
const allReplicas = -1
/** kafkajs sorts a lot by partition in quadratic time. */
const mostInLot = 1_000
/** The topic's max.message.bytes holds for all of one partition's records in a lot together, hence for the lot. */
const mostLotBytes = 1_048_576 - 4_096
/** What a record takes beside its key and value, at the most. */
const recordOverheadBytes = 64
/** How long a lot that is not full waits for more, in ms. */
const lingerMs = 50

interface Lot {
  messages: Message[]
  bytes: number
  /** Of its first call. */
  position: number
}

/**
 * Writes calls to `analytics.calls` under their user's key, acks=all, in lots, one after another so that each
 * user's calls keep their order. While one lot is on its way the next one fills.
 */
export class CallWriter {
  /** Calls that Kafka has acknowledged. */
  written = 0
  readonly #producer: Producer
  readonly #topic: string
  readonly #codec: { encode(call: AnalyticsCall): Buffer }
  #lot: Lot | null = null
  /** On its way, or what failed. */
  #sending: Lot | null = null
  #sent: Promise<void> = Promise.resolve()
  #timer: NodeJS.Timeout | undefined
  #failure: { error: unknown } | null = null

  constructor(kafka: Kafka, topic: string, codec: { encode(call: AnalyticsCall): Buffer }) {
    this.#topic = topic
    this.#codec = codec
    this.#producer = kafka.producer({
      allowAutoTopicCreation: false,
      // murmur2, as Java's producers and librdkafka's murmur2_random: one user's calls share a partition.
      createPartitioner: murmur2Partitioner,
    })
  }

  async connect(): Promise<void> {
    await this.#producer.connect()
  }

  /**
   * Resolves when there is room for the next call, to 'too_large' when the topic cannot take this one. Rejects
   * with kafkajs's error once a lot has failed. `position` is the caller's own, for `firstUnwritten`.
   */
  async add(call: AnalyticsCall, position = 0): Promise<'ok' | 'too_large'> {
    const key = partitionKey(call)
    const value = this.#codec.encode(call)
    const bytes = value.length + (key === null ? 0 : Buffer.byteLength(key)) + recordOverheadBytes
    if (bytes > mostLotBytes) return 'too_large'
    if (
      this.#lot !== null &&
      (this.#lot.messages.length === mostInLot || this.#lot.bytes + bytes > mostLotBytes)
    )
      await this.#send()
    this.#throwFailure()
    if (this.#lot === null) {
      this.#lot = { messages: [], bytes: 0, position }
      this.#timer = setTimeout(() => void this.#send(), lingerMs)
    }
    this.#lot.messages.push({ key, value })
    this.#lot.bytes += bytes
    return 'ok'
  }

  /** Resolves once everything that was added is acknowledged. */
  async flush(): Promise<void> {
    while ((this.#lot !== null || this.#sending !== null) && this.#failure === null) {
      await this.#send()
      await this.#sent
    }
    this.#throwFailure()
  }

  /** The position of the first call that was not acknowledged; it and later ones may be in Kafka all the same. */
  get firstUnwritten(): number | null {
    return this.#sending?.position ?? this.#lot?.position ?? null
  }

  /** Does not flush. */
  async close(): Promise<void> {
    clearTimeout(this.#timer)
    await this.#producer.disconnect()
  }

  /** Waits for the lot before, then sends the present one without waiting for it. Never rejects. */
  async #send(): Promise<void> {
    const lot = this.#lot
    while (this.#sending !== null && this.#failure === null) await this.#sent
    // Somebody else who waited may have sent it.
    if (lot === null || this.#lot !== lot || this.#failure !== null) return
    clearTimeout(this.#timer)
    this.#lot = null
    this.#sending = lot
    this.#sent = this.#producer.send({ topic: this.#topic, acks: allReplicas, messages: lot.messages }).then(
      () => {
        this.written += lot.messages.length
        this.#sending = null
      },
      (error: unknown) => {
        this.#failure = { error }
      },
    )
  }

  #throwFailure(): void {
    if (this.#failure !== null) throw this.#failure.error
  }
}
