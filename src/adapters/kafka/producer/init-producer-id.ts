// The request by which a producer gets an identity, versions 0 and 1 of the Kafka protocol, whose bytes are the same.
import type { Api, Throttling } from '../kafkajs-internals.ts'
import type { BrokerConnection } from '../link/broker-connection.ts'
import { kafkaErrors, ProduceFailure } from './produce-errors.ts'
import { anonymous, type ProducerIdentity } from './sequences.ts'

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
