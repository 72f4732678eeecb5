import { Child } from '../child.ts'
import { nthCall } from '../calls.ts'
import { cpuLine, forward, noVerdict, warmUpOf, type Drained } from '../measure/drain.ts'
import { costOf, medianBy, round2 } from '../measure/figures.ts'
import { startReceiver } from '../receiver.ts'
import { deploy, measuredCore } from '../rig.ts'
import { atMost, type Workload } from './workload.ts'

const users = 10_000
const flags = ['--import', new URL('../children/without-ledger.ts', import.meta.url).href]
const sides = {
  none: { what: 'no ledger', env: {}, flags },
  failures: { what: 'LEDGER=failures', env: { LEDGER: 'failures' }, flags: [] },
  all: { what: 'LEDGER=all', env: { LEDGER: 'all' }, flags: [] },
}
type Side = keyof typeof sides
const names = Object.keys(sides) as Side[]

/** What it costs to account for every call, by the same forwarder on the same backlog, in turns. */
export const ledger: Workload = {
  name: 'ledger',
  summary:
    'failures and tallies to webhooks.deliveries, as by default; reference: the same forwarder without a ledger; ' +
    'beside it LEDGER=all, which records every delivery',
  sizes: { calls: 200_000, rounds: 5 },
  quick: { calls: 20_000, rounds: 1 },
  async run(servers, { calls, rounds }) {
    const deployment = await deploy(servers)
    const receiver = startReceiver()
    const { port } = await receiver.reported('listening')
    await deployment.destination('crm', 'shop', [`http://127.0.0.1:${port}/hook`])
    await deployment.produce(calls!, (index) => nthCall(index, users), 'backlog')
    await deployment.close()
    const run = { servers, receiver, requests: calls!, warmUp: warmUpOf(calls!) }
    const runs: Record<Side, Drained[]> = { none: [], failures: [], all: [] }
    for (let round = 0; round < rounds!; round++) {
      // Each goes first in turn, for a machine that slows down does so in one direction.
      for (const [index] of names.entries()) {
        const side = names[(index + round) % names.length]!
        const GROUP_ID = `${deployment.env.GROUP_ID}${round}${side}`
        const env = { ...deployment.env, ...sides[side].env, GROUP_ID }
        runs[side].push(await forward({ ...run, flags: sides[side].flags }, env))
      }
    }
    await receiver.end()
    const work = new Child('tally-work.ts', { core: measuredCore, env: deployment.env })
    const tallied = await work.reported('tallied')
    await work.end()
    const middle = (side: Side) => medianBy(runs[side], ({ perSecond }) => perSecond)
    const costs = (side: Side) => ({
      speed: costOf(runs[side], runs.none, ({ perSecond }) => 1 / perSecond),
      cpu: costOf(runs[side], runs.none, ({ cpuMicros }) => cpuMicros),
    })
    const [byDefault, all] = [costs('failures'), costs('all')]
    const { counts, content } = { counts: tallied.counts!, content: tallied.content! }
    const percentOf = (micros: number) => round2((micros / (1_000_000 / middle('none').perSecond)) * 100)
    return {
      rows: names.map((side) => {
        const { perSecond, cpuMicros, use } = middle(side)
        return {
          what: `${sides[side].what}${cpuMicros === null ? '' : `, ${cpuMicros} µs each`}`,
          unit: 'calls/s',
          value: perSecond,
          ...(use.shares.measured !== undefined && { cpu: use.shares.measured }),
        }
      }),
      ratio: middle('failures').perSecond / middle('none').perSecond,
      goal: null,
      goals: [
        atMost('cost by default, % of a call’s CPU', byDefault.cpu ?? byDefault.speed!, 3),
        atMost('URLs and durations in tallies, % of a call', percentOf(content - counts), 1),
      ],
      verdict: noVerdict(names.flatMap((side) => runs[side].map(({ use }) => use))),
      text: [
        `  cost in % of the CPU (of the speed), by default: ${byDefault.cpu ?? '–'} (${byDefault.speed})`,
        `  cost in % of the CPU (of the speed), LEDGER=all: ${all.cpu ?? '–'} (${all.speed})`,
        `  tallies by themselves: ${round2(content)} µs a call (${percentOf(content)} %), ${round2(counts)} with counts alone`,
        ...names.map((side) => cpuLine(sides[side].what, middle(side).use)),
      ],
      detail: { calls, users, costs: { failures: byDefault, all }, tallied, runs },
    }
  },
}
