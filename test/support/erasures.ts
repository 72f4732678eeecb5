import type { Erasure } from '../../src/core/erasure/erasures.ts'
import { erasureKey } from '../../src/core/erasure/erasures.ts'
import type { Deployment } from './deployment/deployment.ts'

export const someErasure = (given: Partial<Erasure> = {}): Erasure => ({
  sourceId: 'shop',
  userId: 'u-1',
  requestId: 'request-1',
  at: Date.now(),
  number: 1,
  total: 1,
  destinationIds: [],
  finished: false,
  ...given,
})

/** Appends erasures as a deletion request does, without its delete calls. */
export async function appendErasures(deployment: Deployment, ...given: Partial<Erasure>[]): Promise<void> {
  const { codecs, producer, topics } = deployment
  await codecs.erasures.ready()
  await producer.send({
    topic: topics.erasures,
    acks: -1,
    messages: given.map(someErasure).map((erasure) => ({
      key: erasureKey(erasure.sourceId, erasure.userId),
      value: codecs.erasures.encode(erasure),
    })),
  })
}
