// All other tests run on the newest Kafka that is supported.
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { newestKafka, oldestKafka, registryVersion } from '../../src/local/parts.ts'
import { settledAudit } from '../support/audit.ts'
import { startCollector, writeKey } from '../support/calls/collectors.ts'
import { deploy } from '../support/deployment/deployment.ts'
import { runCommand } from '../support/deployment/deployment-cli.ts'
import { startForwarderProcess } from '../support/deployment/forwarder-process.ts'
import { ownKafka, type OwnKafka } from '../support/deployment/rig.ts'
import { readPage } from '../support/docs.ts'
import { compressAll } from '../support/kafka/compress-topics.ts'
import { startReceiver } from '../support/receivers.ts'
import { until } from '../support/until.ts'

test(`on Kafka ${oldestKafka}, the oldest supported`, { timeout: 600_000 }, async (t) => {
  const own = await ownKafka(t, {}, oldestKafka)
  await t.test('calls go from the collector to their end, also after the broker was killed', (t) =>
    fromSetupToAudit(t, own),
  )
})

async function fromSetupToAudit(t: TestContext, own: OwnKafka): Promise<void> {
  const receiver = await startReceiver(t, { secret: 's3cret' })
  const deployment = await deploy(t, { KAFKA_BROKERS: own.brokers.join(), SESSION_TIMEOUT: '6s' })
  const command = async (...args: string[]) => {
    const { status, stdout, stderr } = await runCommand(t, deployment, '', ...args)
    assert.equal(status, 0, `${args.join(' ')}: ${stderr}`)
    return stdout
  }
  await command('setup')
  await deployment.destination({ urls: [receiver.url] })
  const collector = await startCollector(deployment)
  const forwarder = await startForwarderProcess(t, deployment)
  const send = async (ids: readonly string[]) => {
    const batch = ids.map((messageId) => ({ type: 'track', userId: messageId, event: 'E', messageId }))
    const { status } = await fetch(`${collector.url}/v1/batch`, {
      method: 'POST',
      headers: { Authorization: `Basic ${btoa(`${writeKey}:`)}` },
      body: JSON.stringify({ batch }),
    })
    return status
  }
  const arrived = () => new Set(receiver.requests.map((request) => request.json().messageId))
  const all = (ids: readonly string[]) =>
    until(() => ids.every((id) => arrived().has(id)), 60_000, 'all deliveries')
  const group = (name: string) => Array.from({ length: 20 }, (_, index) => `${name}-${index}`)

  // The first fails once and comes again from its tier, the second is finally refused and is replayed.
  receiver.answer({ status: 503 }, { status: 400 }, { status: 200 })
  assert.equal(await send(['retried']), 200)
  await receiver.waitFor(1)
  assert.equal(await send(['refused']), 200)
  await receiver.waitFor(3)
  await until(async () => (await deployment.deadLetters()).length === 1, 20_000, 'the dead letter')
  await command('dead-letters', 'replay', '--destination', 'crm')
  await receiver.waitFor(4)

  for (const codec of ['gzip', 'snappy', 'lz4', 'zstd']) {
    await compressAll(deployment, codec)
    assert.equal(await send(group(codec)), 200)
    await all(group(codec))
  }

  await own.kill()
  assert.equal(await send(['while-away']), 503)
  await own.start()
  await forwarder.ready(60_000)
  await until(async () => (await send(group('after'))) === 200, 60_000, 'a collector that accepts again')
  await all(group('after'))

  assert.ok(receiver.requests.every(({ signature }) => signature === 'valid'))
  const report = await settledAudit(deployment)
  assert.ok(report.ok, JSON.stringify(report))
  assert.match(await command('why', 'refused'), /delivered/)
  assert.match(await command('audit'), /everything is accounted for/)
}

test('docs/kafka-clusters.md names the versions that tests run on', () => {
  const page = readPage('docs/kafka-clusters.md')
  const rows = page.split('\n').filter((line) => line.startsWith('| '))
  for (const version of [oldestKafka, newestKafka, registryVersion])
    assert.ok(
      rows.some((row) => row.includes(` ${version},`)),
      `no row names ${version}`,
    )
  const [line] = oldestKafka.split(/\.\d+$/)
  assert.ok(readPage('README.md').includes(`Kafka ${line} or later`))
})
