import type { Kafka, Message, Producer, RecordMetadata } from 'kafkajs'
import type { MembershipSink } from '../../console/computations/ports.ts'
import type { AnalyticsCall } from '../../core/analytics-call.ts'
import { membershipKey, type Membership, type PlacedMembership } from '../../core/membership.ts'
import { PostriderError, messageOf } from '../../errors.ts'
import { CallWriter } from './call-writer.ts'
import { murmur2Partitioner } from './murmur2.ts'

/** Of one send: below the 1 MB that brokers take unless set otherwise. */
const mostLotBytes = 900_000

type Unplaced = Omit<PlacedMembership, 'partition' | 'offset' | 'timestamp'>

export interface MembershipWriterOptions {
  kafka: Kafka
  topics: { memberships: string; calls: string }
  codecs: {
    memberships: { encode(record: Membership): Buffer }
    calls: { encode(call: AnalyticsCall): Buffer }
  }
  /** Told of memberships once they are acknowledged, if the broker says where they are. */
  onWritten: (records: PlacedMembership[]) => void
}

/** Writes memberships and calls, acks=all. Memberships are acknowledged when their write resolves. */
export class MembershipWriter implements MembershipSink {
  readonly #options: MembershipWriterOptions
  readonly #producer: Producer
  readonly #calls: CallWriter

  constructor(options: MembershipWriterOptions) {
    const { kafka, topics, codecs } = options
    this.#options = options
    this.#producer = kafka.producer({
      allowAutoTopicCreation: false,
      createPartitioner: notingPartitioner,
    })
    this.#calls = new CallWriter(kafka, topics.calls, codecs.calls)
  }

  async connect(): Promise<void> {
    await orUnavailable(Promise.all([this.#producer.connect(), this.#calls.connect()]))
  }

  async writeMemberships(records: readonly Unplaced[]): Promise<void> {
    const codec = this.#options.codecs.memberships
    let lot: Message[] = []
    let from = 0
    let bytes = 0
    const send = async (to: number) => {
      await this.#send(records.slice(from, to), lot)
      lot = []
      from = to
      bytes = 0
    }
    for (const [index, { audienceId, userId, membership }] of records.entries()) {
      const key = membershipKey(audienceId, userId)
      const value = membership && codec.encode(membership)
      lot.push({ key, value })
      bytes += key.length * 3 + (value?.length ?? 0) + 64
      if (bytes > mostLotBytes) await send(index + 1)
    }
    if (lot.length > 0) await send(records.length)
  }

  async writeCalls(calls: readonly AnalyticsCall[]): Promise<void> {
    for (const call of calls)
      if ((await orUnavailable(this.#calls.add(call))) === 'too_large')
        throw new Error(`the call for a membership of ${call.messageId} is too large for Kafka`)
  }

  flushCalls(): Promise<void> {
    return orUnavailable(this.#calls.flush())
  }

  async close(): Promise<void> {
    await Promise.allSettled([this.#producer.disconnect(), this.#calls.close()])
  }

  async #send(records: readonly Unplaced[], messages: Message[]): Promise<void> {
    const { topics, onWritten } = this.#options
    const acknowledged = await orUnavailable(
      this.#producer.send({ topic: topics.memberships, acks: -1, messages }),
    )
    const placed = placedBy(acknowledged, messages, records)
    if (placed !== null) onWritten(placed)
  }
}

/** As everybody's, and keeps in the message where it went. */
const notingPartitioner: typeof murmur2Partitioner = () => {
  const partitionOf = murmur2Partitioner()
  return (args) => (args.message.partition = partitionOf(args))
}

/** Records of one send lie behind one another in each partition. Null when a broker does not say where. */
function placedBy(
  acknowledged: readonly RecordMetadata[],
  messages: readonly Message[],
  records: readonly Unplaced[],
): PlacedMembership[] | null {
  const next = new Map<number, { offset: number; timestamp: number }>()
  for (const { partition, baseOffset, logAppendTime } of acknowledged) {
    const [offset, timestamp] = [Number(baseOffset ?? -1), Number(logAppendTime ?? -1)]
    // Without times of the broker the view could not tell one topic from another of its name.
    if (offset < 0 || timestamp < 0) return null
    next.set(partition, { offset, timestamp })
  }
  const placed: PlacedMembership[] = []
  for (const [index, record] of records.entries()) {
    const partition = messages[index]!.partition!
    const at = next.get(partition)
    if (at === undefined) return null
    placed.push({ ...record, partition, offset: at.offset++, timestamp: at.timestamp })
  }
  return placed
}

async function orUnavailable<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (!(error instanceof Error && error.name.startsWith('KafkaJS'))) throw error
    throw new PostriderError(
      'kafka_unavailable',
      `Kafka did not take all of it: ${messageOf(error)}. The next sync goes on where this one stopped`,
      { cause: error },
    )
  }
}
