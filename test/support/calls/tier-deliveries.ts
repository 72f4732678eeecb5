import { deliveryIn, isRun, offsetsOf, type DeferredRun } from '../../../src/core/delivery/deferred-run.ts'
import type { RetryDelivery } from '../../../src/core/delivery/delivery.ts'
import type { Deployment } from '../deployment/deployment.ts'

/** The deliveries that a tier holds, due or past: a run has one for each of its calls, without a body. */
export async function tierDeliveries(
  { topics, codecs, read }: Pick<Deployment, 'topics' | 'codecs' | 'read'>,
  tierName: string,
): Promise<RetryDelivery[]> {
  const codec = codecs.retries(tierName)
  const records = await Promise.all(
    (await read(topics.retry(tierName))).map(({ value }) => codec.decode(value)),
  )
  if (!records.some(isRun)) return records as RetryDelivery[]
  const ids = new Map<string, string>()
  for (const { partition, offset, value } of await read(topics.calls)) {
    const call = await codecs.calls.read(value)
    if (call) ids.set(`${partition}/${offset}`, call.messageId)
  }
  return records.flatMap((record) => (isRun(record) ? membersOf(record, ids) : [record]))
}

function membersOf(run: DeferredRun, ids: ReadonlyMap<string, string>): RetryDelivery[] {
  const { topic, partition } = run.calls
  return [...offsetsOf(run.calls)].map((offset) =>
    deliveryIn(run, offset, run.from ?? { topic, partition, offset, appendedAt: null }, {
      messageId: ids.get(`${partition}/${offset}`) ?? '',
      ...{ sourceId: '', userIds: [], type: 'track', body: Buffer.alloc(0), filled: null, appendedAt: null },
    }),
  )
}
