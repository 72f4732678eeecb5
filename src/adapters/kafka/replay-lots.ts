import { setTimeout as sleep } from 'node:timers/promises'
import kafkajs from 'kafkajs'
import type { IHeaders, Kafka, Message, Producer } from 'kafkajs'
import type { Outgoing, ReplaySink, ReplaySinkOptions } from '../../console/dead-letters/ports.ts'
import { notSetUp } from '../../errors.ts'

/** A lot stays below the broker's limit on a partition's batch whichever partition its records fall to. */
const lotBytes = 512 * 1_024
const lotRecords = 500
/** With a rate, so many lots a second, so that the flow is even. */
const lotsPerSecond = 5

/**
 * Appends records with acks=all, in lots, at most so many a second. `taken` and `tooLarge` learn of each record
 * once it is decided.
 */
export class ReplayLots implements ReplaySink {
  readonly #producer: Producer
  readonly #rate: number | null
  readonly #most: number
  readonly #signal: AbortSignal
  readonly #onTaken: (outgoing: Outgoing) => void
  readonly #onTooLarge: (outgoing: Outgoing) => void
  #lot: Outgoing[] = []
  #bytes = 0
  #sent = 0
  #startedAt = 0

  constructor(options: ReplaySinkOptions & { kafka: Kafka }) {
    // murmur2, as all producers here (contracts.md, Topics): one user's records share a partition.
    this.#producer = options.kafka.producer({
      allowAutoTopicCreation: false,
      createPartitioner: kafkajs.Partitioners.DefaultPartitioner,
    })
    this.#rate = options.rate
    this.#most =
      options.rate === null ? lotRecords : Math.min(lotRecords, Math.ceil(options.rate / lotsPerSecond))
    this.#signal = options.signal
    this.#onTaken = options.taken
    this.#onTooLarge = options.tooLarge
  }

  async connect(): Promise<void> {
    await this.#producer.connect()
    this.#startedAt = performance.now()
  }

  async add(outgoing: Outgoing): Promise<void> {
    const bytes = outgoing.value.length + (outgoing.key?.length ?? 0)
    if (this.#lot.length > 0 && this.#bytes + bytes > lotBytes) await this.flush()
    this.#lot.push(outgoing)
    this.#bytes += bytes
    if (this.#lot.length >= this.#most) await this.flush()
  }

  async flush(): Promise<void> {
    const lot = this.#lot
    if (lot.length === 0) return
    this.#lot = []
    this.#bytes = 0
    await this.#send(lot)
    this.#sent += lot.length
    if (this.#rate === null) return
    const dueMs = this.#startedAt + (this.#sent / this.#rate) * 1_000 - performance.now()
    if (dueMs > 0) await sleep(dueMs, undefined, { signal: this.#signal }).catch(() => {})
  }

  async #send(lot: Outgoing[]): Promise<void> {
    const topics = Map.groupBy(lot, ({ topic }) => topic)
    for (const [topic, records] of topics) {
      try {
        await this.#producer.send({ topic, acks: -1, messages: records.map(messageOf) })
        records.forEach(this.#onTaken)
      } catch (error) {
        const { type } = error as { type?: string }
        if (type === 'UNKNOWN_TOPIC_OR_PARTITION')
          throw notSetUp(`topic ${topic} does not exist`, { cause: error })
        if (type !== 'MESSAGE_TOO_LARGE') throw error
        if (records.length === 1) this.#onTooLarge(records[0]!)
        else for (const record of records) await this.#send([record])
      }
    }
  }

  async close(): Promise<void> {
    await this.#producer.disconnect()
  }
}

const messageOf = ({ key, value, headers }: Outgoing): Message => ({
  key: key && asBuffer(key),
  value: asBuffer(value),
  headers: headers as IHeaders,
})

const asBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
