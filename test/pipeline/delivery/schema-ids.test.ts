// Schema ids that anybody may write into the calls topic, and a registry that will not tell of one of them.
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { someCall } from '../../support/calls/calls.ts'
import { startCollector, withSource } from '../../support/calls/collectors.ts'
import { deploy, logged, type Deployment } from '../../support/deployment/deployment.ts'
import { until } from '../../support/until.ts'
import { startReceiver } from '../../support/receivers.ts'
import { brokenRegistry } from '../../support/deployment/registry.ts'
import { registryUrl } from '../../support/deployment/rig.ts'
import { connect, counted, dispositions } from '../../support/calls/samples.ts'

/** The run's registry, except that some schema ids get another status. Counts requests by id. */
async function registryWith(t: TestContext, statuses: Map<number, number>) {
  const asked: number[] = []
  const url = await brokenRegistry(t, (request, response) => {
    const id = /\/schemas\/ids\/(-?\d+)/.exec(request.url!)?.[1]
    if (id !== undefined) asked.push(Number(id))
    const status = id === undefined ? undefined : statuses.get(Number(id))
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      if (status !== undefined) {
        response.writeHead(status, { 'content-type': 'application/json' })
        response.end(JSON.stringify({ error_code: status * 100 + 1, message: 'not for you' }))
        return
      }
      const { method, headers } = request
      const { host: _host, connection: _connection, ...kept } = headers as Record<string, string>
      const path = request.url!.replace(/^\//, '')
      const body = chunks.length > 0 ? { body: Buffer.concat(chunks) } : {}
      fetch(`${registryUrl().replace(/\/$/, '')}/${path}`, { method: method!, headers: kept, ...body }).then(
        async (answer) => {
          response.writeHead(answer.status, { 'content-type': 'application/json' })
          response.end(await answer.text())
        },
        () => response.destroy(),
      )
    })
  })
  return { url, asked }
}

const at = ({ config }: Deployment, url: string) => ({ ...config, registry: { ...config.registry, url } })

function recordOf(deployment: Deployment, id: number): Buffer {
  const value = Buffer.from(deployment.codecs.calls.encode(someCall()))
  value.writeInt32BE(id, 1)
  return value
}

const produceRaw = (deployment: Deployment, values: readonly Buffer[]) =>
  deployment.producer.send({
    topic: deployment.topics.calls,
    acks: -1,
    messages: values.map((value) => ({ key: 'u-1', value })),
  })

test('a schema id that the registry refuses makes only its record undecodable, and does not stop a collector’s start', async (t) => {
  const refusals = new Map([400, 403, 422].map((status, index) => [1_000_777 + index, status]))
  const { url, asked } = await registryWith(t, refusals)
  const deployment = await deploy(t, { PARTITIONS_CALLS: '1' })
  const forwarder = await deployment.forwarder({ config: at(deployment, url) })
  const receiver = await startReceiver(t)
  await connect(deployment, forwarder, { id: 'shop', urls: [receiver.url] })
  await produceRaw(
    deployment,
    [...refusals.keys(), -1, -(2 ** 31)].map((id) => recordOf(deployment, id)),
  )
  await deployment.produce([someCall({ messageId: 'behind' })])
  const [request] = await receiver.waitFor(1)
  assert.equal(request!.json().messageId, 'behind')
  await counted(forwarder, dispositions('none', 'dead_lettered'), 5)
  const deadLetters = await deployment.deadLetters()
  assert.deepEqual(new Set(deadLetters.map(({ reason }) => reason)), new Set(['undecodable']))
  assert.match(deadLetters[1]!.detail!, /does not give schema 1000778 \(403\): .*not for you/)
  assert.ok(
    asked.every((id) => id >= 0),
    'a negative id is not asked for',
  )

  // It reads the same records when it starts.
  const collector = await startCollector(deployment, { config: { ...at(deployment, url), collectorPort: 0 } })
  assert.equal(collector.problem(), null)
})

test('a registry error for one schema id is retried, and the log names the record by topic, partition and offset', async (t) => {
  const statuses = new Map([[1_000_500, 500]])
  const { url } = await registryWith(t, statuses)
  const deployment = await deploy(t, { PARTITIONS_CALLS: '1' })
  const forwarder = await deployment.forwarder({ config: at(deployment, url) })
  const receiver = await startReceiver(t)
  await connect(deployment, forwarder, { id: 'shop', urls: [receiver.url] })
  await deployment.produce([someCall({ messageId: 'before' })])
  await produceRaw(deployment, [recordOf(deployment, 1_000_500)])
  await deployment.produce([someCall({ messageId: 'behind' })])
  const line = await logged(forwarder, 'waits for its schema')
  assert.deepEqual([line.topic, line.partition, line.offset], [deployment.topics.calls, 0, 1])
  assert.match(forwarder.problem()!, /wait for the schema registry/)
  statuses.set(1_000_500, 404)
  const requests = await receiver.waitFor(2)
  assert.deepEqual(
    requests.map((request) => request.json().messageId),
    ['before', 'behind'],
  )
  await until(() => forwarder.problem() === null)
})

test('of a thousand unknown schema ids only a few are requested, and calls behind them do not wait for the rest', async (t) => {
  const { url, asked } = await registryWith(t, new Map())
  const deployment = await deploy(t, { PARTITIONS_CALLS: '1' })
  await withSource(deployment)
  const receiver = await startReceiver(t)
  await deployment.destination({ urls: [receiver.url] })
  const count = 1_500
  await produceRaw(
    deployment,
    Array.from({ length: count }, (_, index) => recordOf(deployment, 2_000_000 + index)),
  )
  await deployment.produce([someCall({ messageId: 'behind' })])
  const began = Date.now()
  const forwarder = await deployment.forwarder({ config: at(deployment, url) })
  await receiver.waitFor(1, 60_000)
  const seconds = (Date.now() - began) / 1_000
  t.diagnostic(`${asked.length} were asked for, and the call behind came after ${seconds} s`)
  assert.ok(asked.length <= 21 * (seconds + 1), `${asked.length} were asked for in ${seconds} s`)
  assert.ok(asked.length < count / 2)
  await counted(forwarder, dispositions('none', 'dead_lettered'), count, 30_000)
  const deadLetters = await deployment.deadLetters()
  assert.ok(deadLetters.every(({ reason, raw }) => reason === 'undecodable' && raw !== null))
  assert.ok(deadLetters.some(({ detail }) => detail!.includes('too many unknown ones to ask for each')))
})
