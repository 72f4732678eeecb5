import { setTimeout as delay } from 'node:timers/promises'
import { nthCall } from '../../calls.ts'
import { Child } from '../../child.ts'
import { watchCpu, type CpuUse } from '../../measure/cpu.ts'
import { cpuLine } from '../../measure/drain.ts'
import type { Peer, PeerOrder } from '../../peers/peers.ts'
import { startReceiver } from '../../receiver.ts'
import { deploy, measuredCore, otherCore, type Deployment, type Servers } from '../../rig.ts'
import type { Row } from '../workload.ts'
import { makeBacklog, type Backlog } from './backlog.ts'

const endpoints = 10
const bad = endpoints - 1
const users = 10_000
/** More than the fastest works off in the time. */
const callsASecond = 50_000
/** In it limits find their level, and what hangs has timed out twice. */
const warmUpS = 11
const inFlightTried = [1_024, 4_096]
const sampleMs = 250

interface Nine {
  perSecond: number
  use: CpuUse
}

/** Ten URLs, one of which answers nothing: what the nine get, beside the same with ten that answer. */
export async function besideHanging(servers: Servers, peers: readonly Peer[], seconds: number) {
  const deployment = await deploy(servers)
  const receiver = startReceiver({ ports: endpoints })
  const { ports } = (await receiver.reported('listening')) as unknown as { ports: number[] }
  const urls = ports.map((port) => `http://127.0.0.1:${port}/hook`)
  for (const [index, url] of urls.entries())
    await deployment.destination(`destination-${index}`, `source-${index}`, [url])
  const numberOf = ({ sourceId }: { sourceId: string }) => Number(sourceId.slice('source-'.length))
  const backlog = await makeBacklog(deployment, (call) => urls[numberOf(call)]!)
  const calls = callsASecond * (warmUpS + seconds)
  const nth = (index: number) => nthCall(index, users, `source-${index % endpoints}`)
  await backlog.produce(['avro'], calls, nth)
  // Peers are slower.
  await backlog.produce(['json'], Math.floor(calls / 2), nth)
  await deployment.close()
  const hanging: Hanging = { servers, receiver, deployment, backlog, urls, calls, seconds, measured: 0 }

  const rows: Row[] = []
  const uses: CpuUse[] = []
  const text: string[] = []
  const detail: Record<string, { healthy: Nine; hanging: Nine }> = {}
  const keep = (what: string, healthy: Nine, besideBad: Nine) => {
    rows.push(
      { what: `${what}: nine of ten that answer`, unit: 'calls/s', value: healthy.perSecond },
      { what: `${what}: the nine, the tenth hangs`, unit: 'calls/s', value: besideBad.perSecond },
    )
    text.push(cpuLine(`${what}, all answer`, healthy.use), cpuLine(`${what}, one hangs`, besideBad.use))
    uses.push(healthy.use, besideBad.use)
    detail[what] = { healthy, hanging: besideBad }
  }
  keep('Postrider', await nineOf(hanging, null, false), await nineOf(hanging, null, true))
  for (const peer of peers) {
    let best: { inFlight: number; nine: Nine } | null = null
    for (const inFlight of inFlightTried) {
      const nine = await nineOf(hanging, { peer, inFlight }, true)
      if (best === null || nine.perSecond > best.nine.perSecond) best = { inFlight, nine }
    }
    const healthy = await nineOf(hanging, { peer, inFlight: best!.inFlight }, false)
    keep(`${peer.name}, ${best!.inFlight} in flight`, healthy, best!.nine)
  }
  await receiver.end()
  return { rows, uses, text, detail }
}

interface Hanging {
  servers: Servers
  receiver: Child
  deployment: Deployment
  backlog: Backlog
  urls: string[]
  calls: number
  seconds: number
  /** How often it was measured: groups have numbers. */
  measured: number
}

async function nineOf(
  hanging: Hanging,
  by: { peer: Peer; inFlight: number } | null,
  hangs: boolean,
): Promise<Nine> {
  const { servers, receiver, deployment, backlog, urls, calls, seconds } = hanging
  const { env } = deployment
  const groupId = `${env.GROUP_ID}.${hanging.measured++}`
  await receiver.ask({ hang: hangs ? bad : -1 }, 'behaving')
  const before = await arrivedAt(receiver)
  const order = (inFlight: number): PeerOrder => {
    const topic = backlog.topic('json')
    return { env, topic, groupId, form: 'json', urls, inFlight }
  }
  const child =
    by === null
      ? new Child('forwarding.ts', { core: measuredCore, env: { ...env, GROUP_ID: groupId } })
      : by.peer.start(order(by.inFlight))
  for (;;) {
    const { nine } = await arrivedAt(receiver)
    if (nine > before.nine) break
    await child.unlessEnded(delay(sampleMs))
  }
  await delay(warmUpS * 1_000)
  const watch = await watchCpu(
    { measured: child.pid, receiver: receiver.pid, kafka: servers.brokerPid },
    otherCore,
  )
  const from = await arrivedAt(receiver)
  // Ends before the backlog does: a tail says nothing.
  const enough = before.nine + (by === null ? 0.85 : 0.4) * calls
  let to = from
  while (to.at < from.at + seconds * 1_000 && (to === from || to.nine < enough)) {
    await delay(sampleMs)
    to = await arrivedAt(receiver)
  }
  const use = await watch.end()
  await child.end()
  return { perSecond: Math.round(((to.nine - from.nine) / (to.at - from.at)) * 1_000), use }
}

async function arrivedAt(receiver: Child): Promise<{ at: number; nine: number }> {
  const totals = (await receiver.ask({ total: true }, 'totals')) as unknown as {
    at: number
    requests: number[]
  }
  return { at: totals.at, nine: totals.requests.slice(0, bad).reduce((sum, each) => sum + each, 0) }
}
