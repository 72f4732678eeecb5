import { nthCall } from '../calls.ts'
import { cpuLine, forward, noVerdict, warmUpOf } from '../measure/drain.ts'
import { median } from '../measure/figures.ts'
import { paced, type Latencies, type Paced } from '../measure/paced.ts'
import { startReceiver } from '../receiver.ts'
import { deploy, type Servers } from '../rig.ts'
import { atMost, type Workload } from './workload.ts'

const users = 10_000
const warmUpS = 5

/** How long a call takes at half of what the forwarder can do, and in a script of one's own at the same rate. */
export const latency: Workload = {
  name: 'latency',
  summary:
    "produce → POST received, at half of the full load that is measured first; reference: one's own script",
  sizes: { calls: 200_000, rounds: 3, seconds: 20 },
  quick: { calls: 20_000, rounds: 1, seconds: 5 },
  async run(servers, { calls, rounds, seconds }) {
    const full = await fullLoad(servers, calls!)
    const rate = Math.round(full.perSecond / 2)
    const pace = { rate, warmUpS, onsetS: 0, seconds: seconds!, weights: [1], counted: [0] }
    const all = { forwarder: [] as Paced[], script: [] as Paced[] }
    for (let round = 0; round < rounds!; round++) {
      const turns = round % 2 === 0 ? (['forwarder', 'script'] as const) : (['script', 'forwarder'] as const)
      for (const by of turns) all[by].push(await paced(servers, by === 'script' ? { ...pace, by } : pace))
    }
    const of = (by: keyof typeof all, what: (run: Paced) => number) => median(all[by].map(what))
    const p50 = of('forwarder', ({ lasting }) => lasting.p50)
    const p99 = of('forwarder', ({ lasting }) => lasting.p99)
    return {
      rows: [
        { what: 'full load', unit: 'calls/s', value: full.perSecond },
        { what: 'half of it', unit: 'calls/s', value: rate },
        { what: 'p50', unit: 'ms', value: p50 },
        { what: 'p99', unit: 'ms', value: p99 },
        { what: 'p90', unit: 'ms', value: of('forwarder', ({ lasting }) => lasting.p90) },
        { what: 'longest', unit: 'ms', value: of('forwarder', ({ lasting }) => lasting.max) },
        {
          what: 'p50 since it was due to be produced',
          unit: 'ms',
          value: of('forwarder', ({ lastingSinceDue }) => lastingSinceDue.p50),
        },
        {
          what: 'p99 since it was due to be produced',
          unit: 'ms',
          value: of('forwarder', ({ lastingSinceDue }) => lastingSinceDue.p99),
        },
        {
          what: 'the sender itself was late by at most',
          unit: 'ms',
          value: Math.max(...all.forwarder.map(({ senderLateMs }) => senderLateMs)),
        },
        { what: "one's own script: p50", unit: 'ms', value: of('script', ({ lasting }) => lasting.p50) },
        { what: "one's own script: p99", unit: 'ms', value: of('script', ({ lasting }) => lasting.p99) },
      ],
      ratio: null,
      goal: null,
      goals: [
        atMost('p50, ms', p50, 5),
        atMost('p99, ms', p99, 20),
        atMost('missing calls', Math.max(...all.forwarder.map(({ missing }) => missing)), 0),
      ],
      verdict: noVerdict([...all.forwarder, ...all.script].map(({ use }) => use)),
      text: [
        cpuLine('at full load', full.use),
        ...all.forwarder.map(({ lasting, use }) => `${cpuLine('at half', use)}: ${timesLine(lasting)}`),
        ...all.script.map(({ lasting, use }) => `${cpuLine("one's own script", use)}: ${timesLine(lasting)}`),
      ],
      detail: { calls, users, full, rate, ...all },
    }
  },
}

const timesLine = ({ p50, p99 }: Latencies): string => `p50 ${p50} ms, p99 ${p99} ms`

/** What one process works off of a backlog in a second, one destination. */
export async function fullLoad(servers: Servers, calls: number) {
  const deployment = await deploy(servers)
  const receiver = startReceiver()
  const { port } = await receiver.reported('listening')
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
