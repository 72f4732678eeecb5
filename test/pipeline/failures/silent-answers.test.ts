// kafkajs may leave a topic out of an answer while brokers move: that says nothing about the topic.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Kafka } from 'kafkajs'
import { createKafka } from '../../../src/adapters/kafka/patched-client.ts'
import { auditOf } from '../../support/audit.ts'
import { someCall } from '../../support/calls/calls.ts'
import { deploy, logged } from '../../support/deployment/deployment.ts'
import { startReceiver } from '../../support/receivers.ts'
import { silentLog } from '../../support/silent-log.ts'

/** Makes the first `answers` answers of its admins about committed offsets empty. */
function leavingOut(kafka: Kafka, answers: number): Kafka {
  const makeAdmin = kafka.admin.bind(kafka)
  let left = answers
  kafka.admin = (options) => {
    const admin = makeAdmin(options)
    const { fetchOffsets } = admin
    admin.fetchOffsets = async (asked) => (left-- > 0 ? [] : fetchOffsets(asked))
    return admin
  }
  return kafka
}

const callsOf = (from: number, count: number) =>
  Array.from({ length: count }, (_, index) =>
    someCall({ messageId: `m-${from + index}`, userId: `u-${index}` }),
  )

test('a forwarder whose question about commits is not answered asks again, and sends nothing twice', async (t) => {
  const deployment = await deploy(t)
  const receiver = await startReceiver(t)
  await deployment.destination({ urls: [receiver.url] })
  const first = await deployment.forwarder()
  await deployment.produce(callsOf(0, 20))
  await deployment.drained()
  await first.stop()

  const kafka = leavingOut(createKafka(deployment.config, silentLog), 2)
  const second = await deployment.forwarder({ kafka })
  await logged(second, 'committed offsets cannot be read')
  await deployment.produce(callsOf(20, 20))
  await deployment.drained()
  const ids = receiver.requests.map((request) => request.json().messageId as string)
  assert.deepEqual(ids.toSorted(), [...new Set(ids)].sort())
  assert.equal(ids.length, 40)
})

test('an audit whose question about commits is not answered asks again, and finds all', async (t) => {
  const deployment = await deploy(t)
  const receiver = await startReceiver(t)
  await deployment.destination({ urls: [receiver.url] })
  const forwarder = await deployment.forwarder()
  await deployment.produce(callsOf(0, 20))
  await deployment.drained()
  await forwarder.stop()
  const kafka = leavingOut(createKafka(deployment.config, silentLog), 1)
  const report = await auditOf({ ...deployment, kafka })
  assert.deepEqual(report.faults, [])
  assert.equal(report.destinations.find(({ destinationId }) => destinationId === 'crm')?.delivered, 20)
})
