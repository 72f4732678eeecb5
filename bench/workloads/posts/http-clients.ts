import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { nthCall } from '../../calls.ts'
import { makeCertificate, type Certificate } from '../../certificate.ts'
import { cpuLine, noVerdict } from '../../measure/drain.ts'
import { median, round2 } from '../../measure/figures.ts'
import { cpuRatios, pairs, warmUpOfPair, type Side, type SideBySide } from '../../measure/side-by-side.ts'
import { startReceiver } from '../../receiver.ts'
import { deploy, measuredCore, type Servers } from '../../rig.ts'
import { startProduct } from '../scale/product-process.ts'
import { writeSettings } from '../scale/settings-events.ts'
import { atMost, type Goal, type Row, type Workload } from '../workload.ts'

const clients = ['direct', 'undici'] as const
const destinations = 100_000

interface Setting {
  what: string
  users: number
  delayMs: number
  secured: boolean
  /** CPU of a call by Postrider's own client over that by undici's: up to there ours stays the default. */
  most: number
}

const settings: Setting[] = [
  { what: 'plain HTTP', users: 10_000, delayMs: 0, secured: false, most: 0.82 },
  { what: 'TLS 1.3', users: 10_000, delayMs: 0, secured: true, most: 0.87 },
  { what: 'receivers of 100 ms', users: 50_000, delayMs: 100, secured: false, most: 0.7 },
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
    for (const setting of settings) {
      const { what, most } = setting
      const found = (all[what] = await compare(servers, setting, calls!, rounds!))
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

/** The results are in the order of `clients`. */
async function compare(
  servers: Servers,
  setting: Setting,
  calls: number,
  rounds: number,
): Promise<SideBySide[]> {
  const certificate = setting.secured ? await makeCertificate() : null
  const [direct, undici] = clients
  const one = await prepare(servers, setting, direct, calls, certificate)
  const other = await prepare(servers, setting, undici, calls, certificate)
  return pairs(servers, [one, other], { calls, rounds, warmUp: warmUpOfPair(calls) })
}

async function prepare(
  servers: Servers,
  { users, delayMs, secured }: Setting,
  client: string,
  calls: number,
  certificate: Certificate | null,
): Promise<Side> {
  const deployment = await deploy(servers, {
    WEBHOOK_CLIENT: client,
    ...(certificate && { WEBHOOK_CA_FILE: certificate.file }),
  })
  const receiver = startReceiver({ delayMs, ...(certificate && { certificate }) })
  const { port } = await receiver.reported('listening')
  await deployment.destination('crm', 'shop', [`http${secured ? 's' : ''}://127.0.0.1:${port}/hook`])
  await deployment.produce(calls, (index) => nthCall(index, users), client)
  return { name: client, deployment, receiver }
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
