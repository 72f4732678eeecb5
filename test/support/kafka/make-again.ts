import { ensureTopics } from '../../../src/adapters/kafka/admin/topics.ts'
import type { Deployment } from '../deployment/deployment.ts'
import { until } from '../until.ts'

/** Deletes the topic, and makes it as `setup` does: its offsets begin at 0 again. */
export async function makeAgain(
  { kafka, admin, config }: Pick<Deployment, 'kafka' | 'admin' | 'config'>,
  topic: string,
): Promise<void> {
  await admin.deleteTopics({ topics: [topic] })
  await until(async () => !(await admin.listTopics()).includes(topic), 20_000, `${topic} to be gone`)
  await ensureTopics(kafka, admin, config)
}
