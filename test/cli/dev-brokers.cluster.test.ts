import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { isAlive } from '../../src/local/state-folder.ts'
import { makeCheckout } from '../support/deployment/checkout.ts'
import { adminOfNode } from '../support/deployment/cluster.ts'
import { until } from '../support/until.ts'
import { devEnv, devReady, ownPorts } from '../support/deployment/dev-run.ts'

test('dev --brokers 3 delivers its samples on three brokers, also while one is down, and when it is back', async (t) => {
  const checkout = await makeCheckout(t)
  const { env, kafka, allFree } = await ownPorts(3)
  const brokers = kafka.map((port) => `127.0.0.1:${port}`)
  const pidOf = async (id: number) => {
    const file = join(checkout.folder, '.postrider', 'kafka', `node-${id}`, 'process.json')
    return (JSON.parse(await readFile(file, 'utf8')) as { child: { pid: number } }).child.pid
  }

  const first = checkout.start(['dev', '--brokers', '3'], env)
  await first.writes(devReady, 120_000)
  assert.match(first.written(), /^Postrider, .* on three brokers \(about 1\.1 GB of memory\)\. /)
  assert.match(first.written(), new RegExp(`\n {2}Kafka +${brokers.join()}\n`))
  assert.match(first.written(), /\nAll 6 arrived, each with its signature verified\.\n/)
  assert.match(await devEnv(checkout), new RegExp(`^KAFKA_BROKERS=${brokers.join()}$`, 'm'))
  const admin = await adminOfNode(t, { port: kafka[0]! })
  const { topics } = await admin.fetchTopicMetadata({ topics: ['analytics.calls'] })
  for (const { replicas } of topics[0]!.partitions) assert.deepEqual(replicas.toSorted(), [1, 2, 3])

  const pids = await Promise.all([1, 2, 3].map(pidOf))
  process.kill(pids[1]!, 'SIGKILL')
  await first.writes(`note: broker ${brokers[1]} ended by itself (SIGKILL; `, 10_000)
  const isNoticed = async () => (await admin.describeCluster()).brokers.length === 2
  await until(isNoticed, 30_000, 'the end of its session')
  const hello = JSON.stringify({ type: 'track', userId: 'me', event: 'Without one' })
  const produce = checkout.start(['produce', '--source', 'demo'], {}, hello)
  assert.equal(await produce.ended, 0, produce.written())
  await first.writes('Without one', 60_000)

  await admin.disconnect()
  first.signal('SIGINT')
  assert.equal(await first.ended, 0, first.written())
  assert.deepEqual(pids.filter(isAlive), [])
  assert.ok(await allFree())

  const other = checkout.start(['dev', '--brokers', '1'], env)
  assert.equal(await other.ended, 2)
  assert.match(
    other.written(),
    /^postrider: --brokers \(DEV_BROKERS\) is 1, and \.postrider\/ holds what three brokers keep: go on with that by --brokers 3, or move \.postrider\/ away to begin again with 1$/m,
  )
  const second = checkout.start(['dev'], env)
  await second.writes(devReady, 120_000)
  assert.match(second.written(), /^Postrider, .* on three brokers /)
  assert.doesNotMatch(second.written(), /sample calls/)
  const again = checkout.start(['produce', '--source', 'demo'], {}, hello.replace('Without one', 'With all'))
  assert.equal(await again.ended, 0, again.written())
  await second.writes('With all', 60_000)
  second.signal('SIGTERM')
  assert.equal(await second.ended, 0, second.written())
  await until(allFree, 5_000)
})
