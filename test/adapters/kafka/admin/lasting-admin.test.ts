import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Kafka } from 'kafkajs'
import { LastingAdmin } from '../../../../src/adapters/kafka/admin/with-admin.ts'
import { deploy } from '../../../support/deployment/deployment.ts'

test('an admin client that is closed while it is asked something leaves no connection behind', async (t) => {
  const { kafka, topics } = await deploy(t)
  let disconnects = 0
  const watched = Object.create(kafka) as Kafka
  watched.admin = (options) => {
    const admin = kafka.admin(options)
    const { disconnect } = admin
    admin.disconnect = () => {
      disconnects++
      return disconnect()
    }
    return admin
  }
  const lasting = new LastingAdmin(watched)
  await lasting.use(async (admin) => {
    await lasting.close()
    assert.equal(disconnects, 1)
    // What kafkajs connects again for.
    await admin.fetchTopicMetadata({ topics: [topics.calls] })
  })
  assert.equal(disconnects, 2)
  await lasting.use((admin) => admin.listTopics())
  assert.equal(disconnects, 2, 'it may be used again, and stays connected')
  await lasting.close()
  assert.equal(disconnects, 3)
})
