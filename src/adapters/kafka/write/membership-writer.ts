import type { Kafka } from 'kafkajs'
import type { MembershipSink } from '../../../console/computations/memberships.ts'
import type { AnalyticsCall } from '../../../core/call/analytics-call.ts'
import { membershipKey, type Membership, type PlacedMembership } from '../../../core/audience/membership.ts'
import { PostriderError, messageOf } from '../../../errors.ts'
import type { EncodedRecord } from '../../../forwarder/settle/record-sink.ts'
import { CallWriter } from './call-writer.ts'
import { KafkaProducer, type ProducerLog } from '../producer/kafka-producer.ts'
import { encodeRecord } from '../producer/plain-record.ts'
import { ProduceFailure } from '../producer/produce-errors.ts'
import { publishAll, type PublishedBatch } from '../producer/publish.ts'

/** Longer than leaders take to move. */
const acknowledgeWithinMs = 30_000

type Unplaced = Omit<PlacedMembership, 'partition' | 'offset' | 'timestamp'>

export interface MembershipWriterOptions {
  kafka: Kafka
  topics: { memberships: string; calls: string }
  codecs: {
    memberships: { encode(record: Membership): Buffer }
    calls: { encode(call: AnalyticsCall): Buffer }
  }
  log: ProducerLog
  /** Called with memberships once they are acknowledged, if the broker says where they are. */
  onWritten: (records: PlacedMembership[]) => void
}

/** Writes memberships and calls, acks=all. Memberships are acknowledged when their write resolves. */
export class MembershipWriter implements MembershipSink {
  readonly #options: MembershipWriterOptions
  readonly #producer: KafkaProducer
  readonly #calls: CallWriter

  constructor(options: MembershipWriterOptions) {
    const { kafka, topics, codecs, log } = options
    this.#options = options
    this.#producer = new KafkaProducer(kafka, log)
    this.#calls = new CallWriter(kafka, topics.calls, codecs.calls, log)
  }

  async connect(): Promise<void> {
    const deadline = performance.now() + acknowledgeWithinMs
    const { memberships } = this.#options.topics
    await orUnavailable(Promise.all([this.#producer.ready(memberships, { deadline }), this.#calls.connect()]))
  }

  async writeMemberships(records: readonly Unplaced[]): Promise<void> {
    const { codecs, topics, onWritten } = this.#options
    const encoded = records.map(({ audienceId, userId, membership }) =>
      encodeRecord({
        key: membershipKey(audienceId, userId),
        value: membership && codecs.memberships.encode(membership),
      }),
    )
    const withinMs = acknowledgeWithinMs
    const written = await orUnavailable(publishAll(this.#producer, topics.memberships, encoded, { withinMs }))
    const placed = placedBy(written, encoded, records)
    if (placed !== null) onWritten(placed)
  }

  async writeCalls(calls: readonly AnalyticsCall[]): Promise<void> {
    for (const call of calls)
      if ((await orUnavailable(this.#calls.add(call))) === 'too_large')
        throw new Error(`the call for a membership of ${call.messageId} is too large for Kafka`)
  }

  flushCalls(): Promise<void> {
    return orUnavailable(this.#calls.flush())
  }

  close(): void {
    this.#producer.close()
    this.#calls.close()
  }
}

/** Null when a broker does not say where records are. */
function placedBy(
  written: readonly PublishedBatch[],
  encoded: readonly EncodedRecord[],
  records: readonly Unplaced[],
): PlacedMembership[] | null {
  const indexOf = new Map(encoded.map((record, index) => [record, index]))
  const placed = new Array<PlacedMembership>(records.length)
  for (const { partition, baseOffset, appendTime, records: appended } of written) {
    // Without times of the broker the view could not tell one topic from another of its name.
    if (baseOffset < 0 || appendTime < 0) return null
    for (const [behind, record] of appended.entries()) {
      const index = indexOf.get(record)!
      placed[index] = { ...records[index]!, partition, offset: baseOffset + behind, timestamp: appendTime }
    }
  }
  return placed
}

async function orUnavailable<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (!(error instanceof ProduceFailure)) throw error
    throw new PostriderError(
      'kafka_unavailable',
      `Kafka did not take all of it: ${messageOf(error)}. The next sync goes on where this one stopped`,
      { cause: error },
    )
  }
}
