// Records that no Postrider wrote, in Postrider's own logs: what an attacker needs is to be allowed to write there, or
// just a console producer on the wrong topic.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { someCall } from '../../support/calls/calls.ts'
import { startCollector } from '../../support/calls/collectors.ts'
import { computationsOf } from '../../support/computations.ts'
import { runCommand } from '../../support/deployment/deployment-cli.ts'
import { deploy, logged, type Deployment } from '../../support/deployment/deployment.ts'
import { until } from '../../support/until.ts'
import { appendErasures } from '../../support/erasures.ts'
import { startForwarderProcess } from '../../support/deployment/forwarder-process.ts'
import { startReceiver } from '../../support/receivers.ts'

const garbage = Buffer.from('garbage')

async function append(
  { producer }: Deployment,
  topic: string,
  ...records: { key: string; value: Buffer | null }[]
): Promise<void> {
  await producer.send({ topic, acks: -1, messages: records.map((record) => ({ ...record, partition: 0 })) })
}

/** Of a type that this version does not know. */
async function appendNewer(deployment: Deployment): Promise<void> {
  const { codecs, settings, topics } = deployment
  const event = { type: 'quota_set', id: 'crm' }
  const value = codecs.settings.encode({
    ...{ commandId: 'newer', expectedVersion: settings.state.version, at: Date.now() },
    ...{
      aggregate: 'destination',
      aggregateId: 'crm',
      type: event.type,
      data: JSON.stringify(event),
      actor: '',
    },
  })
  await append(deployment, topics.settings, { key: 'crm', value })
}

test('garbage in the settings and erasures stops no process, now or at a later start', async (t) => {
  const deployment = await deploy(t)
  const { topics } = deployment
  const receiver = await startReceiver(t)
  await deployment.destination({ urls: [receiver.url] })
  const [forwarder, collector] = [await deployment.forwarder(), await startCollector(deployment)]
  deployment.endFirst(() => collector.stop())
  await append(deployment, topics.settings, { key: 'x', value: garbage }, { key: 'x', value: null })
  await append(deployment, topics.erasures, { key: 'no user', value: garbage })
  // Taken from its key, as it is documented.
  await append(deployment, topics.erasures, { key: 'shop/u-9', value: garbage })
  for (const part of [forwarder, collector]) {
    const line = await logged(part, 'cannot be read, and it is ignored')
    assert.partialDeepStrictEqual(line, { level: 50, topic: topics.settings, offset: 2 })
  }
  const erasure = await logged(forwarder, `${topics.erasures} holds a record at offset 0`)
  assert.equal(erasure.level, 50)
  const later = await deployment.forwarder()
  await forwarder.stop()
  assert.equal(collector.problem(), null)
  await deployment.produce([someCall({ messageId: 'm-1' })])
  await receiver.waitFor(1)
  // It may have the calls' partitions before it is a member of the group of retries.
  await until(() => later.problem() === null, 10_000, 'a forwarder that says that all is well')
  const { status, stdout, stderr } = await runCommand(t, deployment, '', 'destinations', 'list')
  assert.equal(status, 0, stderr)
  assert.match(stdout, /^crm /m)
  assert.match(stderr, /holds a record at offset 2 of partition 0/)
})

test('an event of a newer version stops no delivery, and at a start it is waited for until it is skipped', async (t) => {
  const deployment = await deploy(t)
  const receiver = await startReceiver(t)
  await deployment.destination({ urls: [receiver.url] })
  const forwarder = await deployment.forwarder()
  const collector = await startCollector(deployment)
  deployment.endFirst(() => collector.stop())
  await appendNewer(deployment)
  const expected = /"quota_set", which this version does not know, at offset 2/
  await until(() => expected.test(forwarder.problem() ?? '') && expected.test(collector.problem() ?? ''))
  await deployment.produce([someCall({ messageId: 'm-1' })])
  await receiver.waitFor(1)

  const starting = await startForwarderProcess(t, deployment, { waitUntilReady: false })
  await until(
    async () => expected.test((await starting.readiness())?.checks.forwarder ?? ''),
    20_000,
    'a start that says what it waits for',
  )
  const run = (...args: string[]) => runCommand(t, deployment, '', ...args)
  const refused = await run('sources', 'create', '--id', 'web', '--name', 'Web')
  assert.equal(refused.status, 1)
  assert.match(refused.stderr, /^postrider: .*at offset 2: .*`postrider settings skip 2` passes over it$/m)
  assert.match((await run('settings', 'skip', '1')).stderr, /by the one at offset 2/)
  assert.equal((await run('settings', 'skip', 'two')).status, 2)
  const skipped = await run('settings', 'skip', '2')
  assert.deepEqual(
    [skipped.status, skipped.stdout],
    [0, 'the event at offset 2 is skipped; the settings are at version 3\n'],
    skipped.stderr,
  )
  await until(() => forwarder.problem() === null && collector.problem() === null)
  await starting.ready()
  assert.equal((await run('sources', 'create', '--id', 'web', '--name', 'Web')).status, 0)
  assert.equal(starting.isRunning(), true)
})

test('garbage among the memberships fails no sync, and is logged with its offset', async (t) => {
  const deployment = await deploy(t)
  const { topics } = deployment
  await deployment.destination({ urls: ['http://127.0.0.1:9/hook'] })
  const computations = await computationsOf(t, deployment)
  await computations.create('audience', 'vip', 'VIP')
  await append(
    deployment,
    topics.memberships,
    { key: 'x', value: garbage },
    { key: 'vip/u-1', value: Buffer.alloc(5) },
  )
  const { entered } = await computations.sync('audience', 'vip', ['u-1', 'u-2'])
  assert.equal(entered, 2)
  const lines = computations.log.filter(({ level }) => level === 50)
  assert.equal(lines.length, 2)
  assert.partialDeepStrictEqual(lines[0], { topic: topics.memberships, partition: 0, offset: 0 })
  assert.equal((await computations.sync('audience', 'vip', ['u-1', 'u-2'])).entered, 0)
})

test('an erasure before garbage still takes effect', async (t) => {
  const deployment = await deploy(t)
  const receiver = await startReceiver(t)
  receiver.answer({ status: 503 })
  await deployment.destination({ urls: [receiver.url] })
  const first = await deployment.forwarder()
  await deployment.produce([someCall({ messageId: 'old', userId: 'u-1' })])
  await receiver.waitFor(1)
  await first.stop()
  await appendErasures(deployment, { userId: 'u-1', sourceId: 'shop' })
  await append(deployment, deployment.topics.erasures, { key: 'x', value: garbage })
  receiver.answer({ status: 200 })
  const second = await deployment.forwarder()
  await deployment.produce([someCall({ messageId: 'new', userId: 'u-2' })])
  const requests = await receiver.waitFor(2)
  await until(() => second.log.some(({ msg }) => msg.includes('it is ignored')))
  assert.deepEqual(
    requests.slice(1).map((request) => request.json().messageId),
    ['new'],
  )
})
