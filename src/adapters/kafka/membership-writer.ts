import kafkajs from 'kafkajs'
import type { Kafka, Message, Producer } from 'kafkajs'
import type { MembershipSink } from '../../console/computations/ports.ts'
import type { AnalyticsCall } from '../../core/analytics-call.ts'
import { membershipKey, type Membership } from '../../core/membership.ts'
import { PostriderError, messageOf } from '../../errors.ts'
import { CallWriter } from './call-writer.ts'

/** Of one send: below the 1 MB that brokers take unless set otherwise. */
const mostLotBytes = 900_000

/** Writes memberships and calls, acks=all. Memberships are acknowledged when their write resolves. */
export class MembershipWriter implements MembershipSink {
  readonly #topic: string
  readonly #codec: { encode(record: Membership): Buffer }
  readonly #producer: Producer
  readonly #calls: CallWriter

  constructor(
    kafka: Kafka,
    topics: { memberships: string; calls: string },
    codecs: {
      memberships: { encode(record: Membership): Buffer }
      calls: { encode(call: AnalyticsCall): Buffer }
    },
  ) {
    this.#topic = topics.memberships
    this.#codec = codecs.memberships
    this.#producer = kafka.producer({
      allowAutoTopicCreation: false,
      createPartitioner: kafkajs.Partitioners.DefaultPartitioner,
    })
    this.#calls = new CallWriter(kafka, topics.calls, codecs.calls)
  }

  async connect(): Promise<void> {
    await orUnavailable(Promise.all([this.#producer.connect(), this.#calls.connect()]))
  }

  async writeMemberships(
    records: readonly { audienceId: string; userId: string; membership: Membership | null }[],
  ): Promise<void> {
    let messages: Message[] = []
    let bytes = 0
    const send = async () => {
      await orUnavailable(this.#producer.send({ topic: this.#topic, acks: -1, messages }))
      messages = []
      bytes = 0
    }
    for (const { audienceId, userId, membership } of records) {
      const key = membershipKey(audienceId, userId)
      const value = membership && this.#codec.encode(membership)
      messages.push({ key, value })
      bytes += Buffer.byteLength(key) + (value?.length ?? 0) + 64
      if (bytes > mostLotBytes) await send()
    }
    if (messages.length > 0) await send()
  }

  async writeCall(call: AnalyticsCall): Promise<void> {
    if ((await orUnavailable(this.#calls.add(call))) === 'too_large')
      throw new Error(`the call for a membership of ${call.messageId} is too large for Kafka`)
  }

  flushCalls(): Promise<void> {
    return orUnavailable(this.#calls.flush())
  }

  async close(): Promise<void> {
    await Promise.allSettled([this.#producer.disconnect(), this.#calls.close()])
  }
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
