import assert from 'node:assert/strict'
import { fork, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdir, symlink } from 'node:fs/promises'
import { createServer } from 'node:net'
import { basename, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import kafkajs, { Kafka, logLevel, type Admin } from 'kafkajs'
import { startLocalKafka } from '../../src/local/kafka.ts'
import { asPart } from '../../src/local/java-server.ts'
import { ensureQuickParts } from '../../src/local/class-archives.ts'
import { ensureLocalParts } from '../../src/local/parts.ts'
import { isPortFree } from '../../src/local/ports.ts'
import { startLocalRegistry } from '../../src/local/registry.ts'
import { isAlive } from '../../src/local/state-folder.ts'
import { ownKafka, temporaryFolder } from '../support/deployment/rig.ts'
import { createTopics } from '../../src/adapters/kafka/admin/topics.ts'
import { until } from '../support/until.ts'

const adminOf = async (t: TestContext, brokers: string[], retries = 2) => {
  const kafka = new Kafka({ brokers, logLevel: logLevel.NOTHING, retry: { retries } })
  const admin = kafka.admin()
  await admin.connect()
  t.after(() => admin.disconnect())
  return admin
}

/** What a client made: without the broker's own topics. */
const ownTopics = async (admin: Admin) => (await admin.listTopics()).filter((name) => !name.startsWith('__'))

/** Folders may be called anything, though settings have separators and escapes. */
const oddName = 'my data, \\n; ü=1'

/** A folder for servers. They are ended, and then it is removed (`after` runs what was registered first first). */
async function serverFolder(t: TestContext) {
  const servers: { kill(): unknown }[] = []
  t.after(() => Promise.all(servers.map((server) => server.kill())))
  const folder = await temporaryFolder(t)
  const keep = <T extends { kill(): unknown }>(server: T): T => {
    servers.push(server)
    return server
  }
  return { folder, keep }
}

interface Started {
  kafka: { pid: number; port: number }
  registry: { pid: number; port: number; url: string }
}

/** A process that has started both servers, to be killed. */
async function startParent(t: TestContext, folder: string) {
  const parent = fork(join(import.meta.dirname, '../support/deployment/local-parent.ts'), [folder], {
    execArgv: [],
  })
  t.after(() => parent.kill('SIGKILL'))
  const [started] = (await once(parent, 'message')) as [Started]
  return { parent, started }
}

const schema = JSON.stringify({
  schema: JSON.stringify({
    type: 'record',
    name: 'Kept',
    namespace: 'local',
    fields: [{ name: 'a', type: 'string' }],
  }),
})

async function registerSchema(url: string, subject: string): Promise<number> {
  const response = await fetch(`${url}/subjects/${subject}/versions`, {
    method: 'POST',
    headers: { 'content-type': 'application/vnd.schemaregistry.v1+json' },
    body: schema,
  })
  assert.equal(response.status, 200)
  return ((await response.json()) as { id: number }).id
}

test('a broker keeps its topics, cluster id and port after a stop and after a crash', async (t) => {
  const kafka = await ownKafka(t)
  const before = await adminOf(t, kafka.brokers)
  await createTopics(before, [{ topic: 'kept', numPartitions: 3 }])
  const { clusterId } = (await before.describeCluster()) as { clusterId: string }
  await before.disconnect()

  await kafka.stop()
  await kafka.start()
  await kafka.kill()
  await kafka.start()

  const after = await adminOf(t, kafka.brokers)
  assert.deepEqual(await ownTopics(after), ['kept'])
  assert.equal(((await after.describeCluster()) as { clusterId: string }).clusterId, clusterId)
})

test('a local broker', async (t) => {
  const { folder, keep } = await serverFolder(t)
  const dataDir = join(folder, oddName)
  const parts = await ensureLocalParts()
  const kafka = keep(await startLocalKafka({ parts, dataDir }))

  await t.test(
    'a local broker answers for a consumer group at once, and creates no topic unasked',
    async (t) => {
      const admin = await adminOf(t, kafka.brokers, 0)
      assert.deepEqual(await ownTopics(admin), [])
      assert.deepEqual(await admin.fetchOffsets({ groupId: 'any' }), [])
      await assert.rejects(admin.fetchTopicMetadata({ topics: ['misspelt'] }))
      assert.deepEqual(await ownTopics(admin), [])
    },
  )

  await t.test('a local broker remembers a stopped group for 30 days', async (t) => {
    const admin = await adminOf(t, kafka.brokers)
    const name = 'offsets.retention.minutes'
    const { resources } = await admin.describeConfigs({
      includeSynonyms: false,
      resources: [{ type: kafkajs.ConfigResourceTypes.BROKER, name: '1', configNames: [name] }],
    })
    const found = resources[0]!.configEntries.find(({ configName }) => configName === name)
    assert.equal(Number(found?.configValue), 30 * 24 * 60)
  })

  await t.test('a local broker does not share its folder', async () => {
    await assert.rejects(startLocalKafka({ parts, dataDir }), {
      code: 'local',
      message: `Kafka runs in ${dataDir} already: stop process ${process.pid} first`,
    })
  })

  await t.test(
    'a local broker stops as a part when asked, and leaves no process and no open port',
    async () => {
      const asked = new AbortController()
      const running = asPart(kafka).run(asked.signal)
      asked.abort()
      await Promise.all([running, kafka.stop()])
      assert.ok(!kafka.isRunning() && !isAlive(kafka.pid))
      await until(() => !isAlive(-kafka.pid), 10_000, "the end of the broker's watcher")
      assert.ok(await isPortFree(kafka.port))
      await kafka.stop()
    },
  )

  await t.test('a local broker that ends by itself fails its part', async () => {
    const again = keep(await startLocalKafka({ parts, dataDir }))
    const running = asPart(again).run(new AbortController().signal)
    process.kill(again.pid, 'SIGKILL')
    await assert.rejects(running, {
      code: 'local',
      message: /^Kafka ended by itself \(SIGKILL\): .*kafka\.log/,
    })
  })

  await t.test('a local broker reports which setting it rejects', async () => {
    const starting = startLocalKafka({ parts, dataDir, properties: { 'log.retention.ms': 'soon' } })
    await assert.rejects(starting, { code: 'local', message: /log\.retention\.ms.*kafka\.log/ })
  })
})

test('servers start with the archive of their classes, which is made again when it is missing', async (t) => {
  const cacheDir = await temporaryFolder(t)
  const made = await ensureLocalParts()
  for (const file of Object.values(made.archiveFiles)) {
    const folder = file.replace(/\.jsa$/, '')
    await symlink(folder, join(cacheDir, basename(folder)))
  }
  await symlink(made.archiveFiles.registry, join(cacheDir, basename(made.archiveFiles.registry)))
  const before = await ensureLocalParts({ cacheDir })
  assert.deepEqual(before.kafkaFlags, [])

  const { kafkaFlags, registryFlags, archiveFiles } = await ensureQuickParts({ cacheDir })
  assert.deepEqual(kafkaFlags, [`-XX:SharedArchiveFile=${archiveFiles.kafka}`])
  assert.deepEqual(registryFlags, [`-XX:SharedArchiveFile=${archiveFiles.registry}`])
  assert.deepEqual((await readdir(cacheDir)).sort(), [
    'apicurio-registry-3.0.9',
    'apicurio-registry-3.0.9.jsa',
    'kafka-4.3.1',
    'kafka-4.3.1.jsa',
  ])
  // The JVM says whether it takes what it is given.
  const storageTool = ['-cp', before.kafkaClassPath, 'kafka.tools.StorageTool', 'random-uuid']
  const args = ['-Xshare:on', ...kafkaFlags, ...storageTool]
  const { status, stderr } = spawnSync(made.java, args, { encoding: 'utf8' })
  assert.equal(status, 0, stderr)
})

test('a registry gives a schema the same id after a crash during its registration', async (t) => {
  const { folder, keep } = await serverFolder(t)
  const dataDir = join(folder, oddName)
  const parts = await ensureLocalParts()
  const first = keep(await startLocalRegistry({ parts, dataDir }))
  const ids: number[] = []
  for (let n = 0; n < 5; n++) ids.push(await registerSchema(first.url, `kept-${n}`))
  await first.kill()

  const second = keep(await startLocalRegistry({ parts, dataDir }))
  for (const [n, id] of ids.entries()) {
    const response = await fetch(`${second.url}/subjects/kept-${n}/versions/latest`)
    assert.equal(((await response.json()) as { id: number }).id, id)
  }
})

test('both servers end when the process that started them is killed, and start again from their state', async (t) => {
  const { folder, keep } = await serverFolder(t)
  const { parent, started } = await startParent(t, folder)
  const id = await registerSchema(started.registry.url, 'kept')
  const before = await adminOf(t, [`127.0.0.1:${started.kafka.port}`])
  await createTopics(before, [{ topic: 'kept' }])
  await before.disconnect()

  parent.kill('SIGKILL')
  await once(parent, 'exit')
  // Not waited for: a new start waits for what the killed one has left behind.
  const parts = await ensureLocalParts()
  const { port } = started.kafka
  const [kafka, registry] = await Promise.all([
    startLocalKafka({ parts, dataDir: join(folder, 'kafka'), port }).then(keep),
    startLocalRegistry({ parts, dataDir: join(folder, 'registry'), port: started.registry.port }).then(keep),
  ])
  assert.ok(!isAlive(started.kafka.pid) && !isAlive(started.registry.pid))
  const after = await adminOf(t, kafka.brokers)
  assert.deepEqual(await ownTopics(after), ['kept'])
  assert.equal(await registerSchema(registry.url, 'kept'), id)
})

test('even a frozen broker ends with the process that started it', async (t) => {
  const { folder } = await serverFolder(t)
  const { parent, started } = await startParent(t, folder)
  process.kill(started.kafka.pid, 'SIGSTOP')
  parent.kill('SIGKILL')
  const isGone = () => !isAlive(started.kafka.pid) && !isAlive(started.registry.pid)
  await until(isGone, 15_000, 'the end of both')
})

test('a port that is in use gets one line that says what to do', async (t) => {
  const { folder: dataDir } = await serverFolder(t)
  const parts = await ensureLocalParts()
  const blocker = createServer().listen(0, '127.0.0.1')
  await once(blocker, 'listening')
  t.after(() => blocker.close())
  const { port } = blocker.address() as { port: number }
  await assert.rejects(startLocalKafka({ parts, dataDir, port }), {
    code: 'local',
    message:
      `port ${port} is taken: if a Kafka listens there, set KAFKA_BROKERS=127.0.0.1:${port} to use it; ` +
      'otherwise stop what listens there',
  })
  await assert.rejects(startLocalRegistry({ parts, dataDir, port }), {
    code: 'local',
    message: new RegExp(`^port ${port} is taken: .*SCHEMA_REGISTRY_URL`),
  })
})
