// Stands in until src/local starts three nodes by itself.
import { randomBytes } from 'node:crypto'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { runJavaTool } from '../../src/local/java-server.ts'
import { startLocalKafka, type LocalKafka } from '../../src/local/kafka.ts'
import type { LocalParts } from '../../src/local/parts.ts'
import { freePort } from '../../src/local/ports.ts'

export interface Node {
  id: number
  broker: string
  controllerPort: number
  pid: number
  logFile: string
  stop(deadlineMs?: number): Promise<void>
  kill(): Promise<void>
  freeze(): void
  thaw(): void
  start(): Promise<void>
  isRunning(): boolean
}

export async function startNodes(given: {
  parts: LocalParts
  dataDir: string
  nodes: number
  heapMb?: number
  properties?: Record<string, string | number | boolean>
  nodeProperties?: (node: {
    id: number
    broker: string
    controllerPort: number
  }) => Record<string, string | number | boolean>
}): Promise<{ brokers: string[]; nodes: Node[]; kill(): Promise<void> }> {
  const taken: number[] = []
  const port = async () => {
    const free = await freePort(taken)
    taken.push(free)
    return free
  }
  const plans: { id: number; port: number; controllerPort: number; folder: string }[] = []
  for (let id = 1; id <= given.nodes; id++)
    plans.push({
      id,
      port: await port(),
      controllerPort: await port(),
      folder: join(given.dataDir, `node-${id}`),
    })
  const voters = plans.map(({ id, controllerPort }) => `${id}@127.0.0.1:${controllerPort}`).join(',')
  const factor = given.nodes
  const isr = Math.max(1, given.nodes - 1)
  const propertiesOf = ({ id, port, controllerPort }: (typeof plans)[number]) => ({
    'node.id': id,
    'controller.quorum.voters': voters,
    listeners: `PLAINTEXT://127.0.0.1:${port},CONTROLLER://127.0.0.1:${controllerPort}`,
    'offsets.topic.replication.factor': factor,
    'default.replication.factor': factor,
    'min.insync.replicas': isr,
    'transaction.state.log.replication.factor': factor,
    'transaction.state.log.min.isr': isr,
    'share.coordinator.state.topic.replication.factor': factor,
    'share.coordinator.state.topic.min.isr': isr,
    'broker.session.timeout.ms': 6000,
    'leader.imbalance.check.interval.seconds': 5,
    ...given.properties,
    ...given.nodeProperties?.({ id, broker: `127.0.0.1:${port}`, controllerPort }),
  })
  let clusterId = randomBytes(16).toString('base64url')
  while (clusterId.startsWith('-')) clusterId = randomBytes(16).toString('base64url')
  const start = (plan: (typeof plans)[number]) =>
    startLocalKafka({
      parts: given.parts,
      dataDir: plan.folder,
      port: plan.port,
      heapMb: given.heapMb ?? 384,
      properties: propertiesOf(plan),
    })
  await Promise.all(
    plans.map(async (plan) => {
      await mkdir(join(plan.folder, 'tmp'), { recursive: true })
      const note = join(plan.folder, 'cluster-id')
      if (await readFile(note).catch(() => null)) return
      const properties = {
        'process.roles': 'broker,controller',
        'controller.listener.names': 'CONTROLLER',
        'log.dirs': 'log',
        ...propertiesOf(plan),
      }
      await writeFile(
        join(plan.folder, 'server.properties'),
        Object.entries(properties)
          .map(([key, value]) => `${key}=${value}\n`)
          .join(''),
      )
      await runJavaTool({
        what: 'formatting',
        java: given.parts.java,
        args: [
          ...['-cp', given.parts.kafkaClassPath, '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn'],
          ...['kafka.tools.StorageTool', 'format', '-t', clusterId, '-c', 'server.properties'],
        ],
        dataDir: plan.folder,
        logName: 'format.log',
      })
      await writeFile(`${note}.partial`, clusterId)
      await rename(`${note}.partial`, note)
    }),
  )
  const began = await Promise.allSettled(plans.map(start))
  const running = began.map((each) => (each.status === 'fulfilled' ? each.value : null))
  const failed = began.find((each) => each.status === 'rejected')
  if (failed) {
    await Promise.all(running.map((each) => each?.kill()))
    throw (failed as PromiseRejectedResult).reason
  }
  const nodes = plans.map((plan, index): Node => {
    let server: LocalKafka = running[index]!
    return {
      id: plan.id,
      broker: `127.0.0.1:${plan.port}`,
      controllerPort: plan.controllerPort,
      get pid() {
        return server.pid
      },
      logFile: join(plan.folder, 'kafka.log'),
      stop: (deadlineMs) => server.stop(deadlineMs),
      kill: () => server.kill(),
      freeze: () => void process.kill(server.pid, 'SIGSTOP'),
      thaw: () => void process.kill(server.pid, 'SIGCONT'),
      start: async () => void (server = await start(plan)),
      isRunning: () => server.isRunning(),
    }
  })
  return {
    brokers: nodes.map(({ broker }) => broker),
    nodes,
    kill: async () => void (await Promise.all(nodes.map((node) => node.kill()))),
  }
}
