import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadConfig } from '../../../src/config/config.ts'
import { nthCall } from '../../calls.ts'
import { makeCertificate, type Certificate } from '../../certificate.ts'
import { cpuLine, noVerdict } from '../../measure/drain.ts'
import { median, round2 } from '../../measure/figures.ts'
import { sideBySide, type Side, type SideBySide } from '../../measure/side-by-side.ts'
import { startReceiver } from '../../receiver.ts'
import { deploy, measuredCore, type Deployment, type Servers } from '../../rig.ts'
import { startProduct } from '../scale/product-process.ts'
import { writeSettings } from '../scale/settings-events.ts'
import { atMost, type Goal, type Row, type Workload } from '../workload.ts'

const clients = ['direct', 'undici'] as const
const destinations = 100_000

/** Two processes that share a core take seconds until V8 has compiled what is hot, and the one with more code longer. */
const warmUpOf = (calls: number): number => Math.floor(calls / 3)

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
    const pairs: Record<string, SideBySide[]> = {}
    for (const setting of settings) {
      const { what, most } = setting
      const found = (pairs[what] = await compare(servers, setting, calls!, rounds!))
      const ratios = found.map(ratioOf).filter((ratio) => ratio !== null)
      for (const [index, client] of clients.entries()) {
        const cpu = found.map(({ sides }) => sides[index]!.cpuMicros ?? NaN)
        rows.push({ what: `${what}: CPU of a call, ${client}`, unit: 'µs', value: median(cpu) })
        const speed = found.map(({ sides }) => sides[index]!.perSecond)
        rows.push({ what: `${what}: beside the other, ${client}`, unit: 'calls/s', value: median(speed) })
      }
      if (ratios.length > 0)
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
    const uses = Object.values(pairs).flatMap((found) => found.map(({ use }) => use))
    return { rows, ratio: null, goal: null, goals, verdict: noVerdict(uses), text, detail: { calls, pairs } }
  },
}

function ratioOf({ sides: [direct, undici] }: SideBySide): number | null {
  return direct!.cpuMicros === null || undici!.cpuMicros === null
    ? null
    : direct!.cpuMicros / undici!.cpuMicros
}

/** Which of both starts first changes from pair to pair. The results are in the order of `clients`. */
async function compare(
  servers: Servers,
  setting: Setting,
  calls: number,
  rounds: number,
): Promise<SideBySide[]> {
  const certificate = setting.secured ? await makeCertificate() : null
  const prepared: Side[] = []
  for (const client of clients) prepared.push(await prepare(servers, setting, client, calls, certificate))
  const found: SideBySide[] = []
  for (let round = 0; round < rounds; round++) {
    const sides = prepared.map((side) => ({ ...side, deployment: inGroup(side.deployment, round) }))
    const swapped = round % 2 === 1
    const [first, second] = (swapped ? sides.toReversed() : sides) as [Side, Side]
    const pair = await sideBySide(servers, [first, second], [0], { expect: calls, warmUp: warmUpOf(calls) })
    found.push(swapped ? { ...pair, sides: pair.sides.toReversed() } : pair)
  }
  for (const { deployment, receiver } of prepared) await Promise.all([receiver.end(), deployment.close()])
  return found
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

/** A group that has read nothing yet. */
function inGroup(deployment: Deployment, round: number): Deployment {
  const env = { ...deployment.env, GROUP_ID: `${deployment.env.GROUP_ID}${round}` }
  return { ...deployment, env, config: loadConfig(env) }
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
