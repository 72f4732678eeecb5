import { nthCall } from '../calls.ts'
import { cpuLine, forward, noVerdict, warmUpOf } from '../measure/drain.ts'
import { median } from '../measure/figures.ts'
import { steady, type Steady, type SteadyLoad, type Times } from '../measure/steady.ts'
import { bento } from '../peers/peers.ts'
import { startReceiver } from '../receiver.ts'
import { deploy, type Servers } from '../rig.ts'
import { atMost, type Goal, type Workload } from './workload.ts'

const users = 10_000
const warmUpS = 5
const shares = [0.1, 0.25, 0.5, 0.75]
const halfLoad = 0.5
/** One that takes this long has fallen behind, and is not measured at more. */
const behindMs = 1_000

type By = SteadyLoad['by']
type Quantile = 'p50' | 'p95' | 'p99' | 'p999'
const quantiles: readonly Quantile[] = ['p50', 'p95', 'p99', 'p999']

interface Point {
  share: number
  rate: number
  runs: { by: string; runs: Steady[] }[]
}

/** How long a call takes at several shares of what the forwarder can do; in a script of one's own and in Bento at the same. */
export const latency: Workload = {
  name: 'latency',
  summary:
    "produce → POST received, at 10 to 75 % of the full load, measured first; references: one's own script, Bento",
  sizes: { calls: 200_000, rounds: 3, seconds: 10 },
  quick: { calls: 20_000, rounds: 1, seconds: 3 },
  async run(servers, { calls, rounds, seconds }) {
    const full = await fullLoad(servers, calls!)
    const peer = bento()
    const all: By[] = ['Postrider', 'script', ...(peer ? [peer] : [])]
    const points: Point[] = []
    const behind = new Set<By>()
    for (const share of shares) {
      const rate = Math.round(full.perSecond * share)
      const sides = all.filter((by) => !behind.has(by)).map((by) => ({ by, runs: [] as Steady[] }))
      for (let round = 0; round < rounds!; round++)
        for (const { by, runs } of round % 2 === 0 ? sides : sides.toReversed())
          runs.push(await steady(servers, { rate, warmUpS, seconds: seconds!, by }))
      for (const { by, runs } of sides) if (hasFallenBehind(runs)) behind.add(by)
      points.push({ share, rate, runs: sides.map(({ by, runs }) => ({ by: nameOf(by), runs })) })
    }
    const runs = points.flatMap((point) => point.runs.flatMap((each) => each.runs))
    const own = points.flatMap((point) => runsOf(point, 'Postrider'))
    return {
      rows: [
        { what: 'full load', unit: 'calls/s', value: full.perSecond },
        {
          what: 'the sender itself was late by at most',
          unit: 'ms',
          value: Math.max(...runs.map(({ senderLateMs }) => senderLateMs)),
        },
      ],
      ratio: null,
      goal: null,
      goals: [
        ...points.flatMap(aheadAt),
        atMost(
          'p50 at half load, ms',
          timeOf(
            points.find(({ share }) => share === halfLoad)!,
            'Postrider',
            'p50',
          ),
          2,
        ),
        atMost('missing calls', Math.max(...own.map(({ missing }) => missing)), 0),
      ],
      verdict: noVerdict(runs.map(({ use }) => use)),
      text: [
        ...tableOf(points, all.map(nameOf)),
        cpuLine('at full load', full.use),
        ...points.flatMap(cpuOf),
      ],
      detail: { calls, users, full, points },
    }
  },
}

const hasFallenBehind = (runs: readonly Steady[]): boolean =>
  median(runs.map(({ times }) => times.p50)) > behindMs || median(runs.map(({ missing }) => missing)) > 0

const nameOf = (by: By): string => (typeof by === 'string' ? by : by.name)

const runsOf = ({ runs }: Point, name: string): Steady[] => runs.find(({ by }) => by === name)?.runs ?? []

/** Infinite where it was not measured, since it had fallen behind at less. */
function timeOf(point: Point, name: string, which: Quantile): number {
  const runs = runsOf(point, name)
  return runs.length === 0 ? Infinity : median(runs.map(({ times }) => times[which]))
}

/** Of each reference, at each quantile. */
function aheadAt(point: Point): Goal[] {
  const others = point.runs.map(({ by }) => by).filter((by) => by !== 'Postrider')
  return others.map((by) => {
    const ratios = quantiles.map((which) => timeOf(point, 'Postrider', which) / timeOf(point, by, which))
    return atMost(`${percent(point.share)}: times that of ${by}, the worst of four`, Math.max(...ratios), 1)
  })
}

function tableOf(points: readonly Point[], names: readonly string[]): string[] {
  const cell = (time: number) => (Number.isFinite(time) ? time.toFixed(2) : 'behind').padStart(10)
  const head = `  ${'load'.padEnd(22)} ${'by'.padEnd(10)}${quantiles.map((which) => which.padStart(10)).join('')}   (ms)`
  const rows = points.flatMap((point) =>
    names.map((name) => {
      const load = `${percent(point.share)}: ${point.rate.toLocaleString('en')} calls/s`
      const times = quantiles.map((which) => cell(timeOf(point, name, which)))
      return `  ${load.padEnd(22)} ${name.padEnd(10)}${times.join('')}`
    }),
  )
  return [head, ...rows]
}

const cpuOf = ({ share, runs }: Point): string[] =>
  runs.flatMap((side) =>
    side.runs.map(
      ({ use, times }) => `${cpuLine(`${percent(share)}, ${side.by}`, use)}: ${timesLine(times)}`,
    ),
  )

const percent = (share: number): string => `${Math.round(share * 100)} %`

const timesLine = ({ p50, p99 }: Times): string => `p50 ${p50} ms, p99 ${p99} ms`

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
