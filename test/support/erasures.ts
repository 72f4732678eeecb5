import type { Erasure } from '../../src/core/erasure/erasures.ts'
import { erasureKey } from '../../src/core/erasure/erasures.ts'
import { suppressionKey } from '../../src/core/suppression/suppressions.ts'
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
  actor: null,
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

/** Begins or ends suppressions, as the console's writer does. Without a source: at every one. */
export async function appendSuppressions(
  { codecs, producer, topics }: Deployment,
  ...given: { userId: string; sourceId?: string; ends?: boolean }[]
): Promise<void> {
  await codecs.suppressions.ready()
  await producer.send({
    topic: topics.suppressions,
    acks: -1,
    messages: given.map(({ userId, sourceId = '', ends = false }) => ({
      key: suppressionKey(sourceId, userId),
      value: ends ? null : codecs.suppressions.encode({ sourceId, userId, at: Date.now() }),
    })),
  })
}

/** The keys of what the topic holds: of what begins, and with a `-` of what ends. */
export async function suppressionsIn({ read, topics }: Deployment): Promise<string[]> {
  const records = await read(topics.suppressions)
  return records.map(({ key, value }) => `${value === null ? '-' : ''}${key!.toString()}`)
}
