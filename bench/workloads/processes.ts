import { setTimeout as delay } from 'node:timers/promises'
import { Child } from '../child.ts'
import { nthCall } from '../calls.ts'
import { watchCpu, type CpuUse } from '../measure/cpu.ts'
import { cpuLine, noVerdict } from '../measure/drain.ts'
import { startReceiver } from '../receiver.ts'
import { deploy, measuredCore, otherCore, type Deployment, type Servers } from '../rig.ts'
import { atLeast, type Workload } from './workload.ts'

const maxProcesses = 3
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
  use: CpuUse
}

/** Whether a group's processes add up. */
export const processes: Workload = {
  name: 'processes',
  summary: `two and three processes in a group, ${inFlight} requests in flight each to a receiver that takes ${delayMs} ms, so that no core is full; reference: one`,
  sizes: { seconds: 15 },
  quick: { seconds: 4 },
  async run(servers, { seconds }) {
    const deployment = await deploy(servers, { MAX_IN_FLIGHT_PER_ENDPOINT: String(inFlight) })
    const receiver = startReceiver({ delayMs })
    const { port } = await receiver.reported('listening')
    await deployment.destination('crm', 'shop', [`http://127.0.0.1:${port}/hook`])
    const longest = (settleS + seconds! + 10) * perProcess * maxProcesses
    await deployment.produce(longest, (index) => nthCall(index, users), 'backlog')
    await deployment.close()
    const runs: Run[] = []
    for (let count = 1; count <= maxProcesses; count++)
      runs.push(await measure(servers, deployment, receiver, count, seconds!))
    await receiver.end()
    const one = runs[0]!.perSecond
    return {
      rows: runs.map(({ processes: count, perSecond, use }) => ({
        what: count === 1 ? 'one process' : `${count} processes`,
        unit: 'calls/s',
        value: perSecond,
        cpu: Object.entries(use.shares)
          .filter(([name]) => name.startsWith('forwarder'))
          .reduce((sum, [, share]) => sum + share, 0),
      })),
      ratio: null,
      goal: null,
      goals: runs
        .slice(1)
        .map(({ processes: count, perSecond }) =>
          atLeast(`${count} processes, × one × ${count}`, perSecond / one / count, 0.95),
        ),
      verdict: noVerdict(runs.map(({ use }) => use)),
      text: runs.map(({ processes: count, use }) => cpuLine(`${count}`, use)),
      detail: { inFlight, delayMs, backlog: longest, runs },
    }
  },
}

/** A new group works on the same backlog, which is longer than the time that it gets. */
async function measure(
  servers: Servers,
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
  const watch = await watchCpu(
    { ...pids, receiver: receiver.pid, kafka: servers.brokerPid, bench: process.pid },
    otherCore,
  )
  const before = await receiver.ask({ progress: true }, 'progress')
  await delay(seconds * 1_000)
  const after = await receiver.ask({ progress: true }, 'progress')
  const use = await watch.end()
  await Promise.all(children.map((child) => child.end()))
  const perSecond = ((after.count! - before.count!) / (after.at! - before.at!)) * 1_000
  return { processes: count, perSecond: Math.round(perSecond), use }
}
