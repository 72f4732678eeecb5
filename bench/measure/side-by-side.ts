import { loadConfig } from '../../src/config/config.ts'
import { untilFinished } from './accounts.ts'
import { Child } from '../child.ts'
import { monotonicMs } from './clock.ts'
import { processMs, watchCpu, type CpuUse } from './cpu.ts'
import { measuredCore, otherCore, type Deployment, type Servers } from '../rig.ts'

/** A forwarder that is to work off a backlog which lies in its topics, against `endpoints.ts`. */
export interface Side {
  name: string
  deployment: Deployment
  receiver: Child
  flags?: string[]
  /** Of the forwarder's process; another one than this checkout's. */
  script?: string
  /** Its requests hold several calls, and what is counted is calls. */
  isBatched?: boolean
}

export interface SideResult {
  /** Requests to the counted endpoints in the common time. */
  perSecond: number
  /** CPU of the forwarder for one of these requests, in µs; null where it is not to be had. */
  cpuMicros: number | null
}

export interface SideBySide {
  sides: SideResult[]
  elapsedMs: number
  use: CpuUse
}

interface Reading {
  at: number
  requests: number
  cpuMs: number | null
}

/**
 * Two forwarders at once on the measured core, which shares itself out evenly: whatever the machine does meanwhile
 * falls on both, so what one gets through beside the other depends on what they do alone. The time that counts begins
 * when both have made their warm-up, and ends when the first has nothing left. Returns when both have committed all.
 *
 * @param expect requests to the counted endpoints, of each side, and how many of them are its warm-up
 */
export async function sideBySide(
  servers: Servers,
  sides: readonly [Side, Side],
  counted: readonly number[],
  { expect, warmUp }: { expect: number; warmUp: number },
): Promise<SideBySide> {
  for (const { receiver, isBatched = false } of sides)
    await receiver.ask({ expect, warmUp, counted, batched: isBatched }, 'ready')
  const warm = sides.map(({ receiver }) => receiver.reported('warm'))
  const done = sides.map(({ receiver }) => receiver.reported('done'))
  const children = sides.map(
    ({ deployment, flags = [], script = 'forwarding.ts' }) =>
      new Child(script, { core: measuredCore, env: deployment.env, flags }),
  )
  const read = (): Promise<Reading[]> =>
    Promise.all(sides.map((side, index) => reading(side, children[index]!, counted)))
  await Promise.all(warm)
  const pids: Record<string, number> = { kafka: servers.brokerPid, bench: process.pid }
  for (const [index, { name, receiver }] of sides.entries()) {
    pids[`forwarder (${name})`] = children[index]!.pid
    pids[`receiver (${name})`] = receiver.pid
  }
  const watch = await watchCpu(pids, otherCore)
  const before = await read()
  await Promise.race(done)
  const after = await read()
  const use = await watch.end()
  await Promise.all(done)
  await Promise.all(sides.map(({ deployment }) => untilFinished(deployment)))
  await Promise.all(children.map((child) => child.end()))
  return {
    sides: sides.map((_, index) => resultOf(before[index]!, after[index]!)),
    elapsedMs: after[0]!.at - before[0]!.at,
    use,
  }
}

/** The same again and again, each time from the start; which of both starts first changes from pair to pair. */
export async function pairs(
  servers: Servers,
  sides: readonly [Side, Side],
  { calls, rounds, warmUp }: { calls: number; rounds: number; warmUp: number },
): Promise<SideBySide[]> {
  const found: SideBySide[] = []
  for (let round = 0; round < rounds; round++) {
    const [one, other] = sides.map((side) => ({ ...side, deployment: inGroup(side.deployment, round) })) as [
      Side,
      Side,
    ]
    const isSwapped = round % 2 === 1
    const pair = await sideBySide(servers, isSwapped ? [other, one] : [one, other], [0], {
      expect: calls,
      warmUp,
    })
    found.push(isSwapped ? { ...pair, sides: pair.sides.toReversed() } : pair)
  }
  for (const { deployment, receiver } of sides) await Promise.all([receiver.end(), deployment.close()])
  return found
}

/** Two processes that share a core take seconds until V8 has compiled what is hot, and the one with more code longer. */
export const warmUpOfPair = (calls: number): number => Math.floor(calls / 3)

/** CPU of a call of the first over that of the second, by pair; where CPU is not to be had, of the time. */
export const cpuRatios = (found: readonly SideBySide[]): number[] =>
  found.map(({ sides: [one, other] }) =>
    one!.cpuMicros === null || other!.cpuMicros === null
      ? other!.perSecond / one!.perSecond
      : one!.cpuMicros / other!.cpuMicros,
  )

/** A group that has read nothing yet. */
function inGroup(deployment: Deployment, round: number): Deployment {
  const env = { ...deployment.env, GROUP_ID: `${deployment.env.GROUP_ID}${round}` }
  return { ...deployment, env, config: loadConfig(env) }
}

async function reading({ receiver }: Side, child: Child, counted: readonly number[]): Promise<Reading> {
  const [reported, cpuMs] = await Promise.all([receiver.ask({ total: true }, 'totals'), processMs(child.pid)])
  const { requests } = reported as unknown as { requests: number[] }
  return { at: monotonicMs(), requests: counted.reduce((sum, index) => sum + requests[index]!, 0), cpuMs }
}

function resultOf(before: Reading, after: Reading): SideResult {
  const requests = after.requests - before.requests
  const cpuMs = after.cpuMs === null || before.cpuMs === null ? null : after.cpuMs - before.cpuMs
  return {
    perSecond: Math.round((requests / (after.at - before.at)) * 1_000),
    cpuMicros: cpuMs === null ? null : Math.round((cpuMs / requests) * 10_000) / 10,
  }
}
