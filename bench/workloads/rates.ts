import { otherCheckout } from '../measure/checkout.ts'
import { noVerdict } from '../measure/drain.ts'
import { median, round2 } from '../measure/figures.ts'
import { steady, type Steady, type SteadyLoad } from '../measure/steady.ts'
import { atMost, type Goal, type Row, type Workload } from './workload.ts'

const rates = [1_000, 2_000, 10_000]
const warmUpS = 5
/** At that rate a call may cost this much, in µs. */
const judged = { rate: 2_000, maxMicros: 45 }

/** What a call costs where calls are few, and each fetch and each commit is for some of them. */
export const lowRates: Workload = {
  name: 'rates',
  summary:
    'CPU of a call and its latency at 1,000, 2,000 and 10,000 calls a second; reference: the checkout in BENCH_AGAINST',
  sizes: { rounds: 3, seconds: 10 },
  quick: { rounds: 1, seconds: 3 },
  async run(servers, { rounds, seconds }) {
    const folder = otherCheckout()
    const sides: SteadyLoad['by'][] = ['Postrider', ...(folder ? [{ name: 'the other', folder }] : [])]
    const rows: Row[] = []
    const goals: Goal[] = []
    const text: string[] = []
    const all: { rate: number; by: string; runs: Steady[] }[] = []
    for (const rate of rates) {
      const at = sides.map((by) => ({
        by,
        name: typeof by === 'string' ? by : by.name,
        runs: [] as Steady[],
      }))
      for (let round = 0; round < rounds!; round++)
        for (const { by, runs } of round % 2 === 0 ? at : at.toReversed())
          runs.push(await steady(servers, { rate, warmUpS, seconds: seconds!, by }))
      for (const { name, runs } of at) {
        const micros = median(runs.map(({ use }) => microsOf(use.shares[name], rate)))
        rows.push({ what: `${rate} calls/s: CPU of a call, ${name}`, unit: 'µs', value: micros })
        if (name === 'Postrider' && rate === judged.rate)
          goals.push(atMost(`CPU of a call at ${rate} calls/s, µs`, micros, judged.maxMicros))
        for (const { times, use } of runs)
          text.push(
            `  ${rate} calls/s, ${name}: ${microsOf(use.shares[name], rate)} µs, ` +
              `p50 ${times.p50}, p95 ${times.p95}, p99 ${times.p99} ms`,
          )
        all.push({ rate, by: name, runs })
      }
    }
    const missing = Math.max(...all.flatMap(({ runs }) => runs.map((run) => run.missing)))
    goals.push(atMost('missing calls', missing, 0))
    const uses = all.flatMap(({ runs }) => runs.map(({ use }) => use))
    return { rows, ratio: null, goal: null, goals, verdict: noVerdict(uses), text, detail: { folder, all } }
  },
}

const microsOf = (share: number | undefined, rate: number): number => round2(((share ?? NaN) * 1e6) / rate)
