import { paceBounds } from '../../../src/cli/open-forwarder.ts'
import { loadConfig, type Config } from '../../../src/config/config.ts'
import { round2 } from '../../measure/figures.ts'
import { deadUntil, hangs, healthy, queueing, wavering, type Refusal } from '../../pacing/endpoint-models.ts'
import { simulate, type Figures, type Scenario } from '../../pacing/simulation.ts'
import { atLeast, type Workload } from '../workload.ts'

const minuteMs = 60_000
const outageMs = 10 * minuteMs
const seed = 1
/** What the endpoint can do, in requests a second; more than that cannot be delivered. */
const capacity = 50

interface Case {
  endpoint: string
  model: Scenario['endpoint']
  loads: readonly number[]
  capacity: number
  /** Beside an even share for each forwarder, also half of the load for one of them. */
  alsoUneven?: boolean
  backlog?: number
  returnsAtMs?: number
  /** How long calls come, where it is not as long as is asked for. */
  loadMs?: number
}

interface Run extends Figures {
  endpoint: string
  load: number
  forwarders: number
  isUneven: boolean
  /** Of what could be delivered at best, while it is counted; null where that is nothing. */
  used: number | null
}

const refusing =
  (status: Refusal['status'], retryAfterMs: number | null): Scenario['endpoint'] =>
  (random) =>
    queueing(capacity, random, { queue: 50, status, retryAfterMs })
const slow: Scenario['endpoint'] = (random) => queueing(capacity, random)
const returning: Scenario['endpoint'] = (random) => deadUntil(outageMs, queueing(capacity, random))

const cases: readonly Case[] = [
  { endpoint: 'fast', model: () => healthy, loads: [200], capacity: Infinity },
  {
    endpoint: '20 to 180 ms, one minute',
    model: wavering,
    loads: [5_000],
    capacity: Infinity,
    loadMs: minuteMs,
  },
  { endpoint: '50/s, the rest queues', model: slow, loads: [40, 50, 200], capacity, alsoUneven: true },
  { endpoint: 'the same, 5,000 wait', model: slow, loads: [40], capacity, backlog: 5_000 },
  { endpoint: '5/s, the rest queues', model: (random) => queueing(5, random), loads: [20], capacity: 5 },
  { endpoint: '50/s, beyond 503', model: refusing(503, null), loads: [200], capacity },
  { endpoint: '50/s, beyond 429', model: refusing(429, null), loads: [200], capacity },
  { endpoint: '50/s, beyond 429, wait 1 s', model: refusing(429, 1_000), loads: [200], capacity },
  { endpoint: 'hangs', model: () => hangs, loads: [40, 200], capacity: 0 },
  {
    ...{ endpoint: 'dead for 10 min, then 50/s', model: returning, loads: [20, 40], capacity },
    ...{ returnsAtMs: outageMs, loadMs: 60 * minuteMs, alsoUneven: true },
  },
]

/** How many processes that know nothing of one another treat the endpoints that they share. */
export const pacing: Workload = {
  name: 'pacing',
  summary:
    '1, 10 and 100 forwarders that share an endpoint, simulated: slow, refusing, hanging, dead; the real pacing code',
  sizes: { minutes: 15 },
  quick: { minutes: 2 },
  run: async (_servers, { minutes = 15 }) => {
    const config = loadConfig({ SECRETS_KEY: '0'.repeat(64) })
    const runs = cases.flatMap((one) => [...runsOf(one, minutes * minuteMs, config)])
    const least = (forwarders: number) =>
      Math.min(...runs.flatMap((run) => (run.forwarders === forwarders ? (run.used ?? []) : [])))
    return {
      rows: [],
      ratio: null,
      goal: null,
      goals: forwarderCounts.map((count) =>
        atLeast(`least part of the possible, ${count} sharing`, round2(least(count)), 0.9),
      ),
      verdict: null,
      text: tableOf(runs),
      detail: { seed, capacity, runs },
    }
  },
}

const forwarderCounts = [1, 10, 100]

function* runsOf(one: Case, loadMs: number, config: Config): Generator<Run> {
  const { endpoint, model, loads, backlog = 0, returnsAtMs = 0 } = one
  const lasts = one.loadMs ?? loadMs
  for (const load of loads)
    for (const forwarders of forwarderCounts)
      for (const isUneven of one.alsoUneven && forwarders > 1 ? [false, true] : [false]) {
        const figures = simulate({
          ...{ forwarders, load, isUneven, backlog, returnsAtMs, seed, endpoint: model },
          loadMs: lasts,
          endMs: returnsAtMs > 0 ? 2 * lasts : lasts,
          // A backlog is all there at the start; what an outage left waits in the tiers.
          countFromMs: backlog > 0 ? 0 : returnsAtMs > 0 ? returnsAtMs : lasts / 5,
          bounds: paceBounds(config),
          policy: { tiers: config.retryTiers, windowMs: config.retryWindowMs },
        })
        if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${endpoint}, ${load}/s, ${forwarders}`)
        const possible = Math.min(load, one.capacity)
        const used = possible === 0 ? null : Math.min(1, figures.succeeded / possible)
        yield { endpoint, load, forwarders, isUneven, used, ...figures }
      }
  if (process.stderr.isTTY) process.stderr.write('\r\u001b[K')
}

const columns: readonly [head: string, width: number, of: (run: Run) => string][] = [
  ['endpoint', -27, ({ endpoint }) => endpoint],
  ['calls/s', 7, ({ load }) => String(load)],
  ['forwarders', 11, ({ forwarders, isUneven }) => `${forwarders}${isUneven ? ' uneven' : ''}`],
  ['requests/s', 10, ({ arrived }) => number(arrived)],
  ['most', 6, ({ peakArrived }) => number(peakArrived)],
  ['delivered/s', 11, ({ succeeded }) => number(succeeded)],
  ['of possible', 11, ({ used }) => (used === null ? '' : `${Math.round(used * 100)} %`)],
  ['in flight', 9, ({ peakInFlight }) => number(peakInFlight)],
  [
    'requests/call',
    13,
    ({ attemptsPerCall, deliveredShare }) => (deliveredShare > 0 ? number(attemptsPerCall) : ''),
  ],
  ['fairness', 8, ({ fairness }) => fairness.toFixed(2)],
  ['probes/s', 8, ({ probes }) => (probes === null ? '' : number(probes))],
  [
    'drained',
    8,
    (run) =>
      run.probes === null ? '' : run.drainedAfterS === null ? 'no' : `${number(run.drainedAfterS)} s`,
  ],
]

function tableOf(runs: readonly Run[]): string[] {
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, index) => pad(cell, columns[index]![1]))
      .join('  ')
      .trimEnd()
  return [
    line(columns.map(([head]) => head)),
    ...runs.map((run) => line(columns.map(([, , of]) => of(run)))),
  ].map((text) => `  ${text}`)
}

const pad = (text: string, width: number): string => (width < 0 ? text.padEnd(-width) : text.padStart(width))

const number = (value: number): string =>
  value.toLocaleString('en', { maximumFractionDigits: value < 10 ? 2 : 0 })
