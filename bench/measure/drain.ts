import { Child, bindsCores } from '../child.ts'
import type { BareWay } from '../children/bare-posts.ts'
import { watchCpu, type CpuUse } from './cpu.ts'
import { measuredCore, otherCore, type Servers } from '../rig.ts'

/** One run against `receiver.ts`, from the last request of its warm-up to its last request. */
export interface Drained {
  perSecond: number
  /** CPU of the measured process for one request, in µs; null where it is not to be had. */
  cpuMicros: number | null
  use: CpuUse
  /** On the monotonic clock. */
  from: number
  to: number
}

export interface Drain {
  servers: Servers
  receiver: Child
  /** How many requests come in all, and how many of them are not counted. */
  requests: number
  warmUp: number
  /** A request holds several calls, and what is counted is calls. */
  isBatched?: boolean
  /** For Node, in the measured process. */
  flags?: string[]
}

/** A forwarder of the product works off what lies in Kafka. */
export function forward(run: Drain, env: Record<string, string>): Promise<Drained> {
  return drain(run, (flags) => new Child('forwarding.ts', { core: measuredCore, env, flags }))
}

export interface BareOrder {
  by: BareWay
  urls: string[]
  users: number
  inFlight: number
  connections: number
  caFile?: string
}

/** A bare loop sends the same bodies with the same signature. */
export function post(run: Drain, order: BareOrder): Promise<Drained> {
  return drain(run, async (flags) => {
    const child = new Child('bare-posts.ts', { core: measuredCore, flags })
    await child.reported('listening')
    child.send({ ...order, requests: run.requests })
    return child
  })
}

/** The process that `start` starts on the measured core works off its backlog. */
export async function drain(
  { servers, receiver, requests, warmUp, isBatched = false, flags = [] }: Drain,
  start: (flags: string[]) => Child | Promise<Child>,
): Promise<Drained> {
  await receiver.ask({ expect: requests, warmUp, batched: isBatched }, 'ready')
  const warm = receiver.reported('warm')
  const done = receiver.reported('done')
  const child = await start(flags)
  await child.unlessEnded(warm)
  const watch = await watchCpu(
    { measured: child.pid, receiver: receiver.pid, kafka: servers.brokerPid, bench: process.pid },
    otherCore,
  )
  const { elapsedMs, measured, from, to } = await child.unlessEnded(done)
  const use = await watch.end()
  await child.end()
  const share = use.shares.measured
  return {
    perSecond: Math.round((measured! / elapsedMs!) * 1_000),
    cpuMicros: share === undefined ? null : Math.round((share * elapsedMs! * 10_000) / measured!) / 10,
    use,
    from: from!,
    to: to!,
  }
}

/** A tenth of a backlog is not counted: compilers and limits find their level in it. */
export const warmUpOf = (requests: number): number => Math.floor(requests / 10)

const maxReceiverBusy = 0.9

/** Why no verdict can be given on these runs; null when one can. */
export function noVerdict(uses: readonly CpuUse[]): string | null {
  if (!bindsCores) return 'no verdict: processes cannot be bound to cores here (taskset)'
  const busy = uses.map(({ otherCore: share }) => share)
  if (busy.includes(null)) return 'no verdict: how busy the other core was is not to be had here'
  const busiest = Math.max(...(busy as number[]))
  return busiest > maxReceiverBusy
    ? `no verdict: the receiver's core was ${Math.round(busiest * 100)} % busy`
    : null
}

/** Each process's CPU in one line. */
export function cpuLine(what: string, { shares, otherCore: busy }: CpuUse): string {
  const each = Object.entries(shares).map(([name, share]) => `${name} ${Math.round(share * 100)} %`)
  const core = busy === null ? '' : `; the receiver's core in all ${Math.round(busy * 100)} %`
  return `  CPU, ${what}: ${each.join(', ')}${core}`
}
