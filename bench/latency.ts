import { nthCall } from './calls.ts'
import { Child } from './child.ts'
import { cpuLine, forward, noVerdict, warmUpOf } from './drain.ts'
import { paced } from './paced.ts'
import { deploy, otherCore, type Servers } from './rig.ts'
import { atMost, type Workload } from './workload.ts'

const users = 10_000
const warmUpS = 5

/** How long a call takes at half of what the forwarder can do. */
export const latency: Workload = {
  name: 'latency',
  summary: 'produce → POST received, at half of the full load that is measured first',
  sizes: { calls: 200_000, seconds: 30 },
  quick: { calls: 20_000, seconds: 5 },
  async run(servers, { calls, seconds }) {
    const full = await fullLoad(servers, calls!)
    const rate = Math.round(full.perSecond / 2)
    const run = await paced(servers, {
      rate,
      warmUpS,
      onsetS: 0,
      seconds: seconds!,
      weights: [1],
      counted: [0],
    })
    const { p50, p90, p99, most } = run.lasting
    const due = run.lastingSinceDue
    return {
      rows: [
        { what: 'full load', unit: 'calls/s', value: full.perSecond },
        { what: 'half of it', unit: 'calls/s', value: rate },
        { what: 'p90', unit: 'ms', value: p90 },
        { what: 'longest', unit: 'ms', value: most },
        { what: 'p50 since it was due to be produced', unit: 'ms', value: due.p50 },
        { what: 'p99 since it was due to be produced', unit: 'ms', value: due.p99 },
        { what: 'the sender itself was late by at most', unit: 'ms', value: run.senderLateMs },
      ],
      ratio: null,
      goal: null,
      goals: [atMost('p50, ms', p50, 5), atMost('p99, ms', p99, 20), atMost('missing calls', run.missing, 0)],
      verdict: noVerdict([run.use]),
      text: [cpuLine('at full load', full.use), cpuLine('at half', run.use)],
      detail: { calls, users, full, rate, run },
    }
  },
}

/** What one process works off of a backlog in a second, one destination. */
export async function fullLoad(servers: Servers, calls: number) {
  const deployment = await deploy(servers)
  const receiver = new Child('./receiver.ts', { core: otherCore })
  const { port } = await receiver.told('listening')
  await deployment.destination('crm', 'shop', [`http://127.0.0.1:${port}/hook`])
  await deployment.produce(calls, (index) => nthCall(index, users), 'backlog')
  await deployment.close()
  const drained = await forward(
    { servers, receiver, requests: calls, warmUp: warmUpOf(calls) },
    deployment.env,
  )
  await receiver.end()
  return drained
}
