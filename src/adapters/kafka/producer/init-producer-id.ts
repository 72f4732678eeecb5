// The request by which a producer gets an identity, versions 0 and 1 of the Kafka protocol, whose bytes are the same.
import type { ProducerIdentity } from './sequences.ts'

export const maxInitProducerIdVersion = 1

/** Of a producer without transactions. */
export function encodeInitProducerId(): Buffer {
  const body = Buffer.alloc(6)
  body.writeInt16BE(-1, 0) // no transactional id
  body.writeInt32BE(0, 2) // which would have this timeout
  return body
}

export function decodeInitProducerId(payload: Buffer): { errorCode: number; identity: ProducerIdentity } {
  return {
    errorCode: payload.readInt16BE(4),
    identity: { id: payload.readBigInt64BE(6), epoch: payload.readInt16BE(14) },
  }
}
