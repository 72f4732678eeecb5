import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cpuLine, noVerdict } from '../../measure/drain.ts'
import { median, round2 } from '../../measure/figures.ts'
import { cpuRatios, pairs, warmUpOfPair, type SideBySide } from '../../measure/side-by-side.ts'
import { deploy, measuredCore, type Servers } from '../../rig.ts'
import { startProduct } from '../scale/product-process.ts'
import { writeSettings } from '../scale/settings-events.ts'
import { postSettings, postSide } from './settings.ts'
import { atMost, type Goal, type Row, type Workload } from '../workload.ts'

const clients = ['direct', 'undici'] as const
const destinations = 100_000

/** CPU of a call by Postrider's own client over that by undici's: up to there ours stays the default. */
const settings = [
  { setting: postSettings.plain, most: 0.82 },
  { setting: postSettings.tls, most: 0.87 },
  { setting: postSettings.slow, most: 0.7 },
]

/** The same product with either client of WEBHOOK_CLIENT, both at once on one core. */
export const clientsSideBySide: Workload = {
  name: 'http-clients',
  summary:
    'the product with its own HTTP client beside the product with undici’s, both at once on one core; and a start with 100,000 destinations',
  sizes: { calls: 300_000, rounds: 8 },
  quick: { calls: 10_000, rounds: 1 },
  async run(servers, { calls, rounds }) {
    const rows: Row[] = []
    const goals: Goal[] = []
    const text: string[] = []
    const all: Record<string, SideBySide[]> = {}
    for (const { setting, most } of settings) {
      const { what } = setting
      const side = (client: string) =>
        postSide(servers, setting, calls!, { name: client, env: { WEBHOOK_CLIENT: client } })
      // In the order of `clients`.
      const both = [await side('direct'), await side('undici')] as const
      const warmUp = warmUpOfPair(calls!)
      const found = (all[what] = await pairs(servers, both, { calls: calls!, rounds: rounds!, warmUp }))
      const ratios = cpuRatios(found)
      for (const [index, client] of clients.entries()) {
        const cpu = found.map(({ sides }) => sides[index]!.cpuMicros ?? NaN)
        rows.push({ what: `${what}: CPU of a call, ${client}`, unit: 'µs', value: median(cpu) })
        const speed = found.map(({ sides }) => sides[index]!.perSecond)
        rows.push({ what: `${what}: beside the other, ${client}`, unit: 'calls/s', value: median(speed) })
      }
      goals.push(
        atMost(`${what}: CPU of direct over undici, median of ${rounds}`, round2(median(ratios)), most),
      )
      text.push(
        `  ${what}: ${ratios.map((ratio) => ratio.toFixed(3)).join(', ')}`,
        cpuLine(what, found[0]!.use),
      )
    }
    const starts = await startBoth(servers)
    rows.push(...starts)
    const uses = Object.values(all).flatMap((found) => found.map(({ use }) => use))
    return {
      rows,
      ratio: null,
      goal: null,
      goals,
      verdict: noVerdict(uses),
      text,
      detail: { calls, pairs: all },
    }
  },
}

async function startBoth(servers: Servers): Promise<Row[]> {
  const folder = await mkdtemp(join(tmpdir(), 'postrider-bench-'))
  const deployment = await deploy(servers)
  const rows: Row[] = []
  try {
    await writeSettings(deployment, destinations)
    await deployment.close()
    const count = destinations.toLocaleString('en')
    for (const client of clients) {
      const env = { ...deployment.env, STORE_PATH: folder, WEBHOOK_CLIENT: client }
      const product = await startProduct('forwarder', env, measuredCore)
      const { now, peak } = await product.memoryMb()
      rows.push(
        { what: `${count} destinations: ready, ${client}`, unit: 's', value: product.readySeconds },
        { what: `${count} destinations: memory, ${client}`, unit: 'MB', value: now },
        { what: `${count} destinations: at most, ${client}`, unit: 'MB', value: peak },
      )
      await product.end()
    }
    return rows
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
