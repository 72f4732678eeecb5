import type { Api, Throttling } from '../kafkajs-internals.ts'
import type { BrokerConnection } from '../link/broker-connection.ts'
import { kafkaErrors, ProduceFailure } from './partition-write.ts'

/** What the brokers know a producer by. */
export interface ProducerIdentity {
  id: bigint
  epoch: number
}

/** Where brokers give no identity, a batch that is sent again may be appended again. */
export const anonymous: ProducerIdentity = { id: -1n, epoch: 0 }

/** By which a broker recognises a batch that it has appended already (KIP-98). */
export interface BatchSequence {
  identity: ProducerIdentity
  /** Number of the batch's first record among those of its partition under this identity. */
  first: number
}

interface PartitionSequence {
  identity: ProducerIdentity
  next: number
}

/**
 * Numbers the records of each partition. A number belongs to one batch for ever: a broker takes another batch with the
 * same number for a copy, acknowledges it and drops it. So a partition of which a batch was given up goes on under a
 * new identity.
 */
export class Sequences {
  /** By topic and partition. */
  readonly #partitions = new Map<string, PartitionSequence>()
  #identity: ProducerIdentity | null = null

  /** Null until `begin` has been called with an identity that this partition may use. */
  assign(partition: string): BatchSequence | null {
    let state = this.#partitions.get(partition)
    if (state === undefined) {
      if (this.#identity === null) return null
      state = { identity: this.#identity, next: 0 }
      this.#partitions.set(partition, state)
    }
    return { identity: state.identity, first: state.next }
  }

  /** An identity that was never used: for partitions that have none yet. */
  begin(identity: ProducerIdentity): void {
    this.#identity = identity
  }

  /** The batch with this sequence is in the topic: the next one follows it. */
  advance(partition: string, { identity, first }: BatchSequence, count: number): void {
    const state = this.#partitions.get(partition)
    if (state?.identity === identity) state.next = following(first, count)
  }

  /** Whether the batch with this sequence is in the topic is not known, or the broker knows of no such sequence. */
  abandon(partition: string, { identity }: BatchSequence): void {
    if (this.#partitions.get(partition)?.identity !== identity) return
    this.#partitions.delete(partition)
    // Brokers remember its numbers for this partition.
    if (this.#identity === identity && identity !== anonymous) this.#identity = null
  }
}

const maxSequence = 2 ** 31 - 1

/** After the largest 32-bit number comes 0 (as Kafka's DefaultRecordBatch.incrementSequence). */
export function following(first: number, count: number): number {
  return first > maxSequence - count ? count - (maxSequence - first) - 1 : first + count
}

const initProducerId: Api = {
  apiKey: 22,
  apiName: 'InitProducerId',
  versions: [0, 1],
  since: 'Kafka 0.11',
}
const answerWithinMs = 3_000

/**
 * A new identity. `anonymous` where the broker knows no such thing (before Kafka 0.11), or does not give one to this
 * user (before Kafka 2.8 that takes a permission of its own). Rejects with a ProduceFailure when it cannot be had now.
 */
export async function newIdentity(connection: BrokerConnection): Promise<ProducerIdentity> {
  if (connection.versionOf(initProducerId) === null) return anonymous
  const body = encodeInitProducerId()
  const answer = await connection.ask(initProducerId, body, decodeInitProducerId, answerWithinMs)
  const { errorCode, identity } = answer
  if (errorCode === 0) return identity
  if (errorCode === kafkaErrors.clusterAuthorizationFailed) return anonymous
  throw ProduceFailure.ofCode(errorCode)
}

/** Of a producer without transactions. */
function encodeInitProducerId(): Buffer {
  const body = Buffer.alloc(6)
  body.writeInt16BE(-1, 0) // no transactional id
  body.writeInt32BE(0, 2) // which would have this timeout
  return body
}

interface InitProducerIdAnswer extends Throttling {
  errorCode: number
  identity: ProducerIdentity
}

function decodeInitProducerId(payload: Buffer): InitProducerIdAnswer {
  return {
    throttleMs: payload.readInt32BE(0),
    errorCode: payload.readInt16BE(4),
    identity: { id: payload.readBigInt64BE(6), epoch: payload.readInt16BE(14) },
  }
}
