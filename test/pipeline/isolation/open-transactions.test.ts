// A producer that begins a transaction and does not end it holds back everything behind its first record.
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { Transaction } from 'kafkajs'
import { LogCounts } from '../../../src/adapters/metrics/log-counts.ts'
import { someCall } from '../../support/calls/calls.ts'
import { startCollector } from '../../support/calls/collectors.ts'
import { startConsole } from '../../support/consoles.ts'
import { deploy, type Deployment } from '../../support/deployment/deployment.ts'
import { parseExposition } from '../../support/exposition.ts'
import { startReceiver } from '../../support/receivers.ts'
import { until } from '../../support/until.ts'

/** One that has written a record there, and is not ended. */
async function begin(t: TestContext, { kafka }: Deployment, topic: string): Promise<Transaction> {
  const transactionalId = `${topic}.open`
  const producer = kafka.producer({ transactionalId, maxInFlightRequests: 1, idempotent: true })
  await producer.connect()
  t.after(() => producer.disconnect())
  const transaction = await producer.transaction()
  await transaction.send({ topic, messages: [{ partition: 0, key: 'u-1', value: 'never ended' }] })
  t.after(() => (transaction.isActive() ? transaction.abort() : undefined))
  return transaction
}

const openSeconds = (counts: LogCounts, topic: string): number | undefined =>
  parseExposition([...counts.expose()].join('')).samples.get(
    `postrider_open_transaction_seconds{topic="${topic}",partition="0"}`,
  )

test('an open transaction among the calls is named by readiness and a metric, and delivery goes on when it ends', async (t) => {
  const deployment = await deploy(t, { PARTITIONS_CALLS: '1' })
  const { topics } = deployment
  const receiver = await startReceiver(t)
  await deployment.destination({ urls: [receiver.url] })
  const logCounts = new LogCounts()
  const forwarder = await deployment.forwarder({ logCounts })
  await deployment.produce([someCall({ messageId: 'before' })])
  await receiver.waitFor(1)
  const transaction = await begin(t, deployment, topics.calls)
  await deployment.produce([someCall({ messageId: 'behind' })])
  await until(() => forwarder.warning() !== null, 30_000, 'a warning')
  assert.match(
    forwarder.warning()!,
    new RegExp(`open transaction holds back partition 0 of ${topics.calls} from offset 1 on, for \\d+ s`),
  )
  assert.equal(forwarder.problem(), null)
  assert.ok(openSeconds(logCounts, topics.calls)! >= 10)
  assert.equal(receiver.requests.length, 1)
  await transaction.abort()
  const requests = await receiver.waitFor(2)
  assert.equal(requests[1]!.json().messageId, 'behind')
  await until(() => forwarder.warning() === null, 10_000, 'that nothing is held')
  assert.equal(openSeconds(logCounts, topics.calls), undefined)
})

test('an open transaction in the settings is named by every part', async (t) => {
  const deployment = await deploy(t)
  const { topics } = deployment
  const parts = [
    await deployment.forwarder(),
    await startCollector(deployment),
    await startConsole(deployment),
  ]
  const transaction = await begin(t, deployment, topics.settings)
  const expected = `open transaction holds back partition 0 of ${topics.settings} from offset 0 on, for `
  await until(() => parts.every((part) => part.warning()?.includes(expected)), 30_000, 'warnings')
  assert.deepEqual(
    parts.map((part) => part.problem()),
    [null, null, null],
  )
  await transaction.commit()
  await until(() => parts.every((part) => part.warning() === null), 20_000, 'that nothing is held')
})
