import { forwardingOf, otherCheckout, setUpFrom } from '../measure/checkout.ts'
import { cpuLine, noVerdict } from '../measure/drain.ts'
import { median, round2 } from '../measure/figures.ts'
import { cpuRatios, pairs, warmUpOfPair, type Side, type SideBySide } from '../measure/side-by-side.ts'
import type { Servers } from '../rig.ts'
import { postSettings, postSide, type PostSetting } from './posts/settings.ts'
import { atMost, type Goal, type Row, type Workload } from './workload.ts'

/** This checkout beside another one of the product, both at once on one core. */
export const versions: Workload = {
  name: 'versions',
  summary:
    'the forwarder of this checkout; reference: that of the checkout in BENCH_AGAINST, both at once on one core',
  sizes: { calls: 300_000, rounds: 8 },
  quick: { calls: 10_000, rounds: 1 },
  async run(servers, { calls, rounds }) {
    const against = otherCheckout() ?? '.'
    const all: Record<string, SideBySide[]> = {}
    const rows: Row[] = []
    const goals: Goal[] = []
    const text: string[] = []
    for (const setting of Object.values(postSettings)) {
      const { what } = setting
      const now = await postSide(servers, setting, calls!, { name: 'this one' })
      const before = await otherSide(servers, setting, calls!, against)
      const warmUp = warmUpOfPair(calls!)
      const found = (all[what] = await pairs(servers, [now, before], {
        calls: calls!,
        rounds: rounds!,
        warmUp,
      }))
      const ratios = cpuRatios(found)
      for (const [side, name] of [now.name, before.name].entries())
        rows.push({
          what: `${what}: CPU of a call, ${name}`,
          unit: 'µs',
          value: median(found.map(({ sides }) => sides[side]!.cpuMicros ?? NaN)),
        })
      goals.push(
        atMost(`${what}: CPU over that of the other, median of ${rounds}`, round2(median(ratios)), 1.02),
      )
      text.push(
        `  ${what}: ${ratios.map((ratio) => ratio.toFixed(3)).join(', ')}`,
        cpuLine(what, found[0]!.use),
      )
    }
    const uses = Object.values(all).flatMap((found) => found.map(({ use }) => use))
    const detail = { calls, against, pairs: all }
    return { rows, ratio: null, goal: null, goals, verdict: noVerdict(uses), text, detail }
  },
}

async function otherSide(
  servers: Servers,
  setting: PostSetting,
  calls: number,
  folder: string,
): Promise<Side> {
  const side = await postSide(servers, setting, calls, { name: 'the other' })
  await setUpFrom(folder, side.deployment.env)
  return { ...side, script: forwardingOf(folder) }
}
