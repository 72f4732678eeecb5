import { execFile } from 'node:child_process'
import { resolve } from 'node:path'
import { promisify } from 'node:util'
import { nthCall } from '../calls.ts'
import { makeCertificate } from '../certificate.ts'
import { cpuLine, noVerdict } from '../measure/drain.ts'
import { median, round2 } from '../measure/figures.ts'
import { cpuRatios, pairs, warmUpOfPair, type Side, type SideBySide } from '../measure/side-by-side.ts'
import { startReceiver } from '../receiver.ts'
import { deploy, type Servers } from '../rig.ts'
import { atMost, type Goal, type Row, type Workload } from './workload.ts'

interface Setting {
  what: string
  users: number
  delayMs: number
  isSecured: boolean
}

const settings: Setting[] = [
  { what: 'plain HTTP', users: 10_000, delayMs: 0, isSecured: false },
  { what: 'TLS 1.3', users: 10_000, delayMs: 0, isSecured: true },
  { what: 'receivers of 100 ms', users: 50_000, delayMs: 100, isSecured: false },
]

/** This checkout beside another one of the product, both at once on one core. */
export const versions: Workload = {
  name: 'versions',
  summary:
    'the forwarder of this checkout; reference: that of the checkout in BENCH_AGAINST, both at once on one core',
  sizes: { calls: 300_000, rounds: 8 },
  quick: { calls: 10_000, rounds: 1 },
  async run(servers, { calls, rounds }) {
    const against = process.env.BENCH_AGAINST ?? '.'
    const all: Record<string, SideBySide[]> = {}
    const rows: Row[] = []
    const goals: Goal[] = []
    const text: string[] = []
    for (const setting of settings) {
      const { what } = setting
      const now = await sideOf(servers, setting, calls!, null)
      const before = await sideOf(servers, setting, calls!, against)
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

async function sideOf(
  servers: Servers,
  { users, delayMs, isSecured }: Setting,
  calls: number,
  folder: string | null,
): Promise<Side> {
  const certificate = isSecured ? await makeCertificate() : null
  const deployment = await deploy(servers, { ...(certificate && { WEBHOOK_CA_FILE: certificate.file }) })
  const receiver = startReceiver({ delayMs, ...(certificate && { certificate }) })
  const { port } = await receiver.reported('listening')
  await deployment.destination('crm', 'shop', [`http${isSecured ? 's' : ''}://127.0.0.1:${port}/hook`])
  if (folder !== null) await setUp(folder, deployment.env)
  const name = folder === null ? 'this one' : 'the other'
  await deployment.produce(calls, (index) => nthCall(index, users), name)
  const script = folder === null ? {} : { script: resolve(folder, 'bench/children/forwarding.ts') }
  return { name, deployment, receiver, ...script }
}

/** It reads by schemas of its own. */
async function setUp(folder: string, env: Record<string, string>): Promise<void> {
  const main = resolve(folder, 'src/main.ts')
  await promisify(execFile)(process.execPath, [main, 'setup'], {
    cwd: folder,
    env: { ...process.env, ...env },
  })
}
