import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { startLocalKafka } from '../../src/local/kafka.ts'
import { ensureLocalParts } from '../../src/local/parts.ts'
import { Child } from '../child.ts'
import { nthCall } from '../calls.ts'
import { watchCpu, type CpuUse } from '../measure/cpu.ts'
import { cpuLine, noVerdict } from '../measure/drain.ts'
import { startReceiver } from '../receiver.ts'
import { deploy, measuredCore, otherCore, type Deployment } from '../rig.ts'
import { atLeast, type Workload } from './workload.ts'

const maxProcesses = 4
const delayMs = 100
/** With 100 ms an answer, this many at once make 2,000 calls a second a process: a fraction of a core. */
const inFlight = 200
const perProcess = (inFlight * 1_000) / delayMs
const users = 50_000
/** After all have their partitions: the limits find their level. */
const settleS = 8

interface Run {
  processes: number
  perSecond: number
  /** CPU of a call, in µs: of the forwarders, and of the brokers, which serve their fetches and commits. */
  micros: { forwarders: number; brokers: number }
  use: CpuUse
}

/** Whether a group's processes add up, on three brokers that have a copy of each record. */
export const processes: Workload = {
  name: 'processes',
  summary: `one to ${maxProcesses} processes in a group on three brokers, ${inFlight} requests in flight each to a receiver that takes ${delayMs} ms, so that no core is full; reference: one`,
  sizes: { seconds: 15 },
  quick: { seconds: 4 },
  async run(servers, { seconds }) {
    const cluster = await startCluster()
    const env = { ...servers.env, KAFKA_BROKERS: cluster.brokers.join(',') }
    const deployment = await deploy({ ...servers, env }, { MAX_IN_FLIGHT_PER_ENDPOINT: String(inFlight) })
    const receiver = startReceiver({ delayMs })
    const { port } = await receiver.reported('listening')
    await deployment.destination('crm', 'shop', [`http://127.0.0.1:${port}/hook`])
    const longest = (settleS + seconds! + 10) * perProcess * maxProcesses
    await deployment.produce(longest, (index) => nthCall(index, users), 'backlog')
    await deployment.close()
    const runs: Run[] = []
    for (let count = 1; count <= maxProcesses; count++)
      runs.push(await measure(cluster, deployment, receiver, count, seconds!))
    await receiver.end()
    await cluster.stop()
    const one = runs[0]!.perSecond
    return {
      rows: runs.map(({ processes: count, perSecond, micros, use }) => ({
        what: `${count === 1 ? 'one process' : `${count} processes`}, ${micros.forwarders} µs each, brokers ${micros.brokers} µs`,
        unit: 'calls/s',
        value: perSecond,
        cpu: sumOf(use, 'forwarder'),
      })),
      ratio: null,
      goal: null,
      goals: runs
        .slice(1)
        .map(({ processes: count, perSecond }) =>
          atLeast(`${count} processes, × one × ${count}`, perSecond / one / count, 0.97),
        ),
      verdict: noVerdict(runs.map(({ use }) => use)),
      text: runs.map(({ processes: count, use }) => cpuLine(`${count}`, use)),
      detail: { inFlight, delayMs, backlog: longest, runs },
    }
  },
}

interface Cluster {
  brokers: string[]
  pids: number[]
  stop(): Promise<void>
}

async function startCluster(): Promise<Cluster> {
  const dataDir = await mkdtemp(join(tmpdir(), 'postrider-bench-'))
  const kafka = await startLocalKafka({ parts: await ensureLocalParts(), dataDir, nodes: 3 })
  return {
    brokers: kafka.brokers,
    pids: kafka.nodes.map(({ pid }) => pid),
    async stop() {
      await kafka.stop()
      await rm(dataDir, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

const sumOf = ({ shares }: CpuUse, name: string): number =>
  Object.entries(shares).reduce((sum, [each, share]) => (each.startsWith(name) ? sum + share : sum), 0)

/** A new group works on the same backlog, which is longer than the time that it gets. */
async function measure(
  cluster: Cluster,
  deployment: Deployment,
  receiver: Child,
  count: number,
  seconds: number,
): Promise<Run> {
  const env = { ...deployment.env, GROUP_ID: `${deployment.env.GROUP_ID}${count}` }
  const children = Array.from(
    { length: count },
    () => new Child('forwarding.ts', { core: measuredCore, env }),
  )
  await Promise.all(children.map((child) => child.reported('ready')))
  await delay(settleS * 1_000)
  const pids = Object.fromEntries(children.map((child, index) => [`forwarder ${index + 1}`, child.pid]))
  const brokers = Object.fromEntries(cluster.pids.map((pid, index) => [`broker ${index + 1}`, pid]))
  const watch = await watchCpu({ ...pids, ...brokers, receiver: receiver.pid, bench: process.pid }, otherCore)
  const before = await receiver.ask({ progress: true }, 'progress')
  await delay(seconds * 1_000)
  const after = await receiver.ask({ progress: true }, 'progress')
  const use = await watch.end()
  await Promise.all(children.map((child) => child.end()))
  const perSecond = ((after.count! - before.count!) / (after.at! - before.at!)) * 1_000
  const microsOf = (name: string) => Math.round((sumOf(use, name) * 1e7) / perSecond) / 10
  const micros = { forwarders: microsOf('forwarder'), brokers: microsOf('broker') }
  return { processes: count, perSecond: Math.round(perSecond), micros, use }
}
