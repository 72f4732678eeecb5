import type { AnalyticsCall } from '../../src/core/call/analytics-call.ts'
import { cpuLine, forward, noVerdict, warmUpOf, type Drained } from '../measure/drain.ts'
import { costOf, medianBy } from '../measure/figures.ts'
import { startReceiver } from '../receiver.ts'
import { deploy, type Deployment } from '../rig.ts'
import type { Goal, Workload } from './workload.ts'

/** What is told of the forwarder that has something, beside the one that has not. */
export interface Compared {
  /** CPU of a call more than without, in %; null where that is not to be had. */
  cpuCost: number | null
  /** Time of a call more than without, in %. */
  timeCost: number
  /** Calls a second over those without. */
  ratio: number
  /** CPU of a call without, in µs, in the cheapest round: what else runs on the machine makes calls dearer. */
  cheapestMicros: number
}

interface Sided {
  name: string
  summary: string
  /** How the two are called. */
  sides: { without: string; with: string }
  /** What the one has that the other has not. The destination is `crm`, the source `shop`. */
  setUp(deployment: Deployment): Promise<void>
  callOf(index: number): AnalyticsCall
  /** Requests hold several calls. */
  batched?: boolean
  goals(compared: Compared): Goal[] | Promise<Goal[]>
}

type Side = keyof Sided['sides']
const names: readonly Side[] = ['without', 'with']

/** What something costs or saves, by the same forwarder on the same backlog, in turns. */
export const withAndWithout = ({
  name,
  summary,
  sides,
  setUp,
  callOf,
  batched = false,
  goals,
}: Sided): Workload => ({
  name,
  summary,
  sizes: { calls: 200_000, rounds: 5 },
  quick: { calls: 20_000, rounds: 1 },
  async run(servers, { calls, rounds }) {
    const receiver = startReceiver({ batched })
    const { port } = await receiver.reported('listening')
    const env = {} as Record<Side, Record<string, string>>
    for (const side of names) {
      const deployment = await deploy(servers)
      await deployment.destination('crm', 'shop', [`http://127.0.0.1:${port}/hook`])
      if (side === 'with') await setUp(deployment)
      await deployment.produce(calls!, callOf, `backlog, ${sides[side]}`)
      env[side] = deployment.env
      await deployment.close()
    }
    const run = { servers, receiver, requests: calls!, warmUp: warmUpOf(calls!) }
    const runs: Record<Side, Drained[]> = { without: [], with: [] }
    for (let round = 0; round < rounds!; round++) {
      // Each goes first in turn, for a machine that slows down does so in one direction.
      for (const [index] of names.entries()) {
        const side = names[(index + round) % names.length]!
        const GROUP_ID = `${env[side].GROUP_ID}${round}`
        const isBatched = batched && side === 'with'
        runs[side].push(await forward({ ...run, isBatched }, { ...env[side], GROUP_ID }))
      }
    }
    await receiver.end()
    const middle = (side: Side) => medianBy(runs[side], ({ perSecond }) => perSecond)
    const cpuCost = costOf(runs.with, runs.without, ({ cpuMicros }) => cpuMicros)
    const timeCost = costOf(runs.with, runs.without, ({ perSecond }) => 1 / perSecond)!
    const ratio = middle('with').perSecond / middle('without').perSecond
    const cheapestMicros = Math.min(...runs.without.map(({ cpuMicros }) => cpuMicros ?? Infinity))
    return {
      rows: names.map((side) => {
        const { perSecond, cpuMicros, use } = middle(side)
        return {
          what: `${sides[side]}${cpuMicros === null ? '' : `, ${cpuMicros} µs each`}`,
          unit: 'calls/s',
          value: perSecond,
          ...(use.shares.measured !== undefined && { cpu: use.shares.measured }),
        }
      }),
      ratio,
      goal: null,
      goals: await goals({ cpuCost, timeCost, ratio, cheapestMicros }),
      verdict: noVerdict(names.flatMap((side) => runs[side].map(({ use }) => use))),
      text: [
        `  cost in % of the CPU (of the time): ${cpuCost ?? '–'} (${timeCost})`,
        ...names.map((side) => cpuLine(sides[side], middle(side).use)),
      ],
      detail: { calls, costs: { cpu: cpuCost, time: timeCost }, runs },
    }
  },
})
