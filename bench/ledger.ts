import { Child } from './child.ts'
import { nthCall } from './calls.ts'
import { cpuLine, forward, noVerdict, warmUpOf, type Drained } from './drain.ts'
import { median, medianBy, round2 } from './figures.ts'
import { deploy, otherCore } from './rig.ts'
import { atMost, type Workload } from './workload.ts'

const users = 10_000
const settings = ['failures', 'all'] as const

/** What it costs to tell of every delivery, by the same forwarder on the same backlog, in turns. */
export const ledger: Workload = {
  name: 'ledger',
  summary:
    'LEDGER=all, which writes every delivery to webhooks.deliveries; reference: LEDGER=failures, the default',
  sizes: { calls: 200_000, rounds: 3 },
  quick: { calls: 20_000, rounds: 1 },
  async run(servers, { calls, rounds }) {
    const deployment = await deploy(servers)
    const receiver = new Child('./receiver.ts', { core: otherCore })
    const { port } = await receiver.told('listening')
    await deployment.destination('crm', 'shop', [`http://127.0.0.1:${port}/hook`])
    await deployment.produce(calls!, (index) => nthCall(index, users), 'backlog')
    await deployment.close()
    const run = { servers, receiver, requests: calls!, warmUp: warmUpOf(calls!) }
    const runs: Record<(typeof settings)[number], Drained[]> = { failures: [], all: [] }
    for (let round = 0; round < rounds!; round++) {
      for (const setting of settings) {
        const groupId = `${deployment.env.GROUP_ID}${round}${setting}`
        runs[setting].push(await forward(run, { ...deployment.env, GROUP_ID: groupId, LEDGER: setting }))
      }
    }
    await receiver.end()
    const [reference, figure] = settings.map((setting) =>
      medianBy(runs[setting], ({ perSecond }) => perSecond),
    ) as [Drained, Drained]
    // Each pair ran one after the other: what the machine did meanwhile falls on both.
    const cost = median(runs.all.map((all, round) => 1 - all.perSecond / runs.failures[round]!.perSecond))
    const row = (setting: string, { perSecond, cpuMicros, use }: Drained) => ({
      what: `LEDGER=${setting}${cpuMicros === null ? '' : `, ${cpuMicros} µs each`}`,
      unit: 'calls/s',
      value: perSecond,
      ...(use.shares.measured !== undefined && { cpu: use.shares.measured }),
    })
    return {
      rows: [row('all', figure), row('failures', reference)],
      ratio: figure.perSecond / reference.perSecond,
      goal: null,
      goals: [atMost('cost of all, % of the speed', round2(cost * 100), 3)],
      verdict: noVerdict([...runs.failures, ...runs.all].map(({ use }) => use)),
      text: [cpuLine('all', figure.use), cpuLine('failures', reference.use)],
      detail: { calls, users, runs },
    }
  },
}
