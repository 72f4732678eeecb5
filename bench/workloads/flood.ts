import { cpuLine, noVerdict } from '../measure/drain.ts'
import { fullLoad } from './latency.ts'
import { paced } from '../measure/paced.ts'
import { atMost, type Workload } from './workload.ts'

const others = 9
const times = 100
/** Destination 0 gets a hundred turns for one of each of the others. */
const weights = [times, ...Array<number>(others).fill(1)]
const counted = Array.from({ length: others }, (_, index) => index + 1)
const warmUpS = 5
/** Of the full load, which is measured first. */
const load = 0.5

/** One destination gets a hundred times the traffic of each of nine others. */
export const flood: Workload = {
  name: 'flood',
  summary: `one destination gets ${times} times the traffic of each of ${others} others; reference: the others alone`,
  sizes: { calls: 200_000, seconds: 30 },
  quick: { calls: 20_000, seconds: 5 },
  async run(servers, { calls, seconds }) {
    const full = await fullLoad(servers, calls!)
    const rate = Math.round(full.perSecond * load)
    const pace = { rate, warmUpS, onsetS: 0, seconds: seconds!, weights, counted }
    const alone = await paced(servers, { ...pace, silent: [0] })
    const flooded = await paced(servers, pace)
    const { lasting } = flooded
    return {
      rows: [
        { what: 'full load', unit: 'calls/s', value: full.perSecond },
        { what: 'all together', unit: 'calls/s', value: rate },
        { what: 'each of the others', unit: 'calls/s', value: Math.round(rate / (times + others)) },
        { what: 'the others alone, p50', unit: 'ms', value: alone.lasting.p50 },
        { what: 'the others beside the flood, p50', unit: 'ms', value: lasting.p50 },
        { what: 'the others alone, p99', unit: 'ms', value: alone.lasting.p99 },
        { what: 'the others beside the flood, p99', unit: 'ms', value: lasting.p99 },
      ],
      ratio: null,
      goal: null,
      goals: [
        atMost('p99 beside the flood, × alone', lasting.p99 / alone.lasting.p99, 1.5),
        atMost('calls of the others that did not come', alone.missing + flooded.missing, 0),
      ],
      verdict: noVerdict([alone.use, flooded.use]),
      text: [cpuLine('the others alone', alone.use), cpuLine('beside the flood', flooded.use)],
      detail: { calls, full, rate, alone, flooded },
    }
  },
}
