import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Admin, Kafka } from 'kafkajs'
import { withAdmin } from '../../../../src/adapters/kafka/admin/with-admin.ts'

test('what is asked while kafkajs has lost its metadata is asked again', async () => {
  let asked = 0
  /** As kafkajs has it, in `admin.listTopics`. */
  const listTopics = async (): Promise<string[]> => {
    const metadata = (asked++ === 0 ? null : { topicMetadata: [{ topic: 'calls' }] }) as {
      topicMetadata: { topic: string }[]
    }
    const { topicMetadata } = metadata
    return topicMetadata.map(({ topic }) => topic)
  }
  const admin = { connect: async () => {}, disconnect: async () => {}, listTopics } as unknown as Admin
  const kafka = { admin: () => admin } as unknown as Kafka
  assert.deepEqual(await withAdmin(kafka, (connected) => connected.listTopics()), ['calls'])
  assert.equal(asked, 2)
})
