import type { Admin } from 'kafkajs'
import { unlessMoving } from '../deployment/deployment.ts'
import { until } from '../until.ts'

/**
 * Takes away the records before these offsets, as retention does; -1 stands for all. kafkajs's admin deletes only from a
 * topic whose leaders it was asked about, and not while one is chosen.
 */
export async function deleteRecords(
  admin: Admin,
  topic: string,
  before: readonly { partition: number; offset: number }[],
): Promise<void> {
  const knowsLeaders = async () => (await unlessMoving(() => admin.fetchTopicOffsets(topic))) !== null
  await until(knowsLeaders, 30_000, `leaders of ${topic}`)
  const partitions = before.map(({ partition, offset }) => ({ partition, offset: String(offset) }))
  await admin.deleteTopicRecords({ topic, partitions })
}
