import type { AnalyticsCall } from '../../src/core/call/analytics-call.ts'
import { cpuLine, noVerdict } from '../measure/drain.ts'
import { median, round2 } from '../measure/figures.ts'
import { cpuRatios, pairs, warmUpOfPair, type Side } from '../measure/side-by-side.ts'
import { startReceiver } from '../receiver.ts'
import { deploy, type Deployment, type Servers } from '../rig.ts'
import type { Goal, Workload } from './workload.ts'

/** What is told of the forwarder that has something, beside the one that has not. */
export interface Compared {
  /** What a call takes more than without, in % of the CPU that it takes without; the median of the pairs. */
  cost: number
  /** Calls a second over those without, each with half of a core; the median of the pairs. */
  ratio: number
  /** CPU of a call without, in µs, in the cheapest pair: what else runs on the machine makes calls dearer. */
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

/** What something costs or saves: the same forwarder with it and without it, both at once on one core. */
export const withAndWithout = ({
  name,
  summary,
  sides: names,
  setUp,
  callOf,
  batched = false,
  goals,
}: Sided): Workload => ({
  name,
  summary,
  sizes: { calls: 300_000, rounds: 8 },
  quick: { calls: 20_000, rounds: 1 },
  async run(servers, { calls, rounds }) {
    const prepare = { servers, calls: calls!, callOf }
    const having = await sideOf(names.with, { ...prepare, setUp, isBatched: batched })
    const lacking = await sideOf(names.without, prepare)
    const found = await pairs(servers, [having, lacking], {
      calls: calls!,
      rounds: rounds!,
      warmUp: warmUpOfPair(calls!),
    })
    const ratios = cpuRatios(found)
    const cost = round2((median(ratios) - 1) * 100)
    const ratio = median(found.map(({ sides: [one, other] }) => one!.perSecond / other!.perSecond))
    const of = (side: 0 | 1) => found.map(({ sides }) => sides[side]!)
    const cheapestMicros = Math.min(...of(1).map(({ cpuMicros }) => cpuMicros ?? Infinity))
    return {
      rows: ([1, 0] as const).flatMap((side) => [
        {
          what: `${side === 0 ? names.with : names.without}: CPU of a call`,
          unit: 'µs',
          value: median(of(side).map(({ cpuMicros }) => cpuMicros ?? NaN)),
        },
        {
          what: `${side === 0 ? names.with : names.without}: beside the other`,
          unit: 'calls/s',
          value: median(of(side).map(({ perSecond }) => perSecond)),
        },
      ]),
      ratio,
      goal: null,
      goals: await goals({ cost, ratio, cheapestMicros }),
      verdict: noVerdict(found.map(({ use }) => use)),
      text: [
        `  CPU of a call over that without, by pair: ${ratios.map((each) => each.toFixed(3)).join(', ')}`,
        cpuLine('the first pair', found[0]!.use),
      ],
      detail: { calls, pairs: found },
    }
  },
})

interface Preparing {
  servers: Servers
  calls: number
  callOf(index: number): AnalyticsCall
  setUp?(deployment: Deployment): Promise<void>
  isBatched?: boolean
}

async function sideOf(
  name: string,
  { servers, calls, callOf, setUp, isBatched = false }: Preparing,
): Promise<Side> {
  const deployment = await deploy(servers)
  const receiver = startReceiver({ batched: isBatched })
  const { port } = await receiver.reported('listening')
  await deployment.destination('crm', 'shop', [`http://127.0.0.1:${port}/hook`])
  await setUp?.(deployment)
  await deployment.produce(calls, callOf, `backlog, ${name}`)
  return { name, deployment, receiver, isBatched }
}
