import { setTimeout as delay } from 'node:timers/promises'
import { renderBody } from '../../src/core/call/body.ts'
import { nthCall } from '../calls.ts'
import { Child } from '../child.ts'
import type { Peer } from '../peers/peers.ts'
import { goProgram } from '../programs.ts'
import { startReceiver } from '../receiver.ts'
import { deploy, measuredCore, otherCore, type Deployment, type Servers } from '../rig.ts'
import { forwardingOf, setUpFrom } from './checkout.ts'
import { makeBacklog } from '../workloads/peers/backlog.ts'
import { monotonicMs } from './clock.ts'
import { watchCpu, type CpuUse } from './cpu.ts'
import { round2 } from './figures.ts'

/** One destination at a rate, from Kafka to the receiver. */
export interface SteadyLoad {
  /** Calls a second. */
  rate: number
  warmUpS: number
  seconds: number
  /** The process that delivers: this checkout's forwarder, or that of another one. */
  by: 'Postrider' | 'script' | Checkout | Peer
}

/** Another checkout of the product. */
export interface Checkout {
  name: string
  folder: string
}

/** From when a call was produced until its POST had come, in ms. */
export interface Times {
  count: number
  p50: number
  p95: number
  p99: number
  p999: number
  max: number
}

export interface Steady {
  times: Times
  /** The same from when the calls were due to be produced: where the sender was late, that counts. */
  sinceDue: Times
  /** Calls that had not come some seconds after the last was due. */
  missing: number
  /** Where the sender itself was late at most, in ms. */
  senderLateMs: number
  use: CpuUse
}

const users = 10_000
/** As a producer that lingers (`linger.ms` is 5 by default): with less, the broker takes more of its core. */
const tickMs = 5
const missingAfterMs = 10_000
/** Bento is at its best with few: the receiver answers at once. */
const peerInFlight = 16
/** Plain kafkajs sets timers in the past, and Node warns of each first one. */
const quiet = '--disable-warning=TimeoutNegativeWarning'

/** What goes at a rate comes from a sender in Go and to a receiver in Go; where there is no Go, from and to Node's. */
export async function steady(servers: Servers, { rate, warmUpS, seconds, by }: SteadyLoad): Promise<Steady> {
  const deployment = await deploy(servers)
  const isLean = goProgram('sender') !== null
  const receiver = isLean ? startReceiver() : new Child('endpoints.ts', { core: otherCore, args: ['1'] })
  const { ports } = (await receiver.reported('listening')) as unknown as { ports: number[] }
  const url = `http://127.0.0.1:${ports[0]!}/hook`
  await deployment.destination('crm', 'source-0', [url])
  const form = isPeer(by) ? 'json' : 'avro'
  const { topic } = await makeBacklog(deployment, () => url)
  const child = await start(deployment, by, topic(form), url)
  const sender = isLean
    ? new Child(goProgram('sender')!, { core: otherCore, env: deployment.env, args: [topic(form)] })
    : new Child('pacer.ts', { core: otherCore, env: deployment.env, flags: ['--max-semi-space-size=1'] })
  await sender.reported('listening')
  const pacing = sender.reported('pacing')
  const over = sender.reported('paced')
  const length = warmUpS + seconds
  sender.send(
    isLean
      ? { rate, seconds: length, tickMs, users, ...template(deployment, form) }
      : { rate, seconds: length, users, weights: [1], silent: [] },
  )
  const from = (await pacing).from! + warmUpS * 1_000
  const to = from + seconds * 1_000
  await until(from)
  const name = typeof by === 'string' ? by : by.name
  const pids = { [name]: child.pid, receiver: receiver.pid, sender: sender.pid, kafka: servers.brokerPid }
  const watch = await watchCpu({ ...pids, bench: process.pid }, otherCore)
  await until(to)
  const use = await watch.end()
  const { sent, failed, latestMs } = (await over) as unknown as {
    sent: number[]
    failed: number
    latestMs: number
  }
  if (failed > 0) throw new Error(`${failed} records or batches could not be produced`)
  const missing = await untilArrived(receiver, sent[0]!)
  const times = async (since: string): Promise<Times> => {
    const asked = await receiver.ask({ from, to, of: [0], since }, 'quantiles')
    const of = (key: string) => round2(asked[key] ?? Infinity)
    return {
      count: asked.count!,
      p50: of('p50'),
      p95: of('p95'),
      p99: of('p99'),
      p999: of('p999'),
      max: of('max'),
    }
  }
  const result: Steady = {
    times: await times('produced'),
    sinceDue: await times('due'),
    missing,
    senderLateMs: round2(latestMs),
    use,
  }
  await Promise.all([child.end(), sender.end(), receiver.end(), deployment.close()])
  return result
}

async function start(
  deployment: Deployment,
  by: SteadyLoad['by'],
  topic: string,
  url: string,
): Promise<Child> {
  const { env } = deployment
  const measured = { core: measuredCore, env }
  if (isPeer(by)) {
    const groupId = env.GROUP_ID!
    const child = by.start({ env, topic, groupId, form: 'json', urls: [url], inFlight: peerInFlight })
    await untilJoined(deployment, groupId)
    return child
  }
  const urls = JSON.stringify({ 'source-0': url })
  if (typeof by !== 'string') await setUpFrom(by.folder, env)
  const child =
    by === 'script'
      ? new Child('script.ts', { ...measured, args: [urls], flags: [quiet] })
      : new Child(typeof by === 'string' ? 'forwarding.ts' : forwardingOf(by.folder), measured)
  await child.reported('ready')
  return child
}

const isPeer = (by: SteadyLoad['by']): by is Peer => typeof by === 'object' && 'start' in by

/** Programs of others do not say when they are ready: they are when their group is. */
async function untilJoined({ kafka }: Deployment, groupId: string): Promise<void> {
  const admin = kafka.admin()
  await admin.connect()
  try {
    for (const deadline = monotonicMs() + 60_000; ; await delay(100)) {
      const { groups } = await admin.describeGroups([groupId])
      if (groups[0]?.state === 'Stable' && groups[0].members.length > 0) return
      if (monotonicMs() > deadline) throw new Error(`nobody has joined ${groupId} within a minute`)
    }
  } finally {
    await admin.disconnect()
  }
}

/** A record that the sender copies, and where it writes digits into it. */
function template({ codecs }: Deployment, form: 'avro' | 'json') {
  const digits = { due: '1'.repeat(16), later: '2'.repeat(8), number: '3'.repeat(10), user: '4'.repeat(7) }
  const id = `due-${digits.due}-${digits.later}-0-${digits.number}`
  const call = { ...nthCall(0, users, 'source-0'), messageId: id, userId: `user-${digits.user}` }
  const value = form === 'avro' ? codecs.calls.encode(call) : Buffer.from(renderBody(call))
  const place = (text: string) => ({ at: value.indexOf(text), length: text.length })
  const places = Object.fromEntries(Object.entries(digits).map(([name, text]) => [name, place(text)]))
  return {
    key: Buffer.from(call.userId).toString('base64'),
    value: value.toString('base64'),
    ...places,
    ...(form === 'json' && { id: place(id) }),
  }
}

const until = (at: number) => delay(Math.max(0, at - monotonicMs()))

async function untilArrived(receiver: Child, sent: number): Promise<number> {
  for (const deadline = monotonicMs() + missingAfterMs; ; await delay(100)) {
    const totals = (await receiver.ask({ total: true }, 'totals')) as unknown as { requests: number[] }
    const missing = Math.max(0, sent - totals.requests[0]!)
    if (missing === 0 || monotonicMs() > deadline) return missing
  }
}
