import { setTimeout as delay } from 'node:timers/promises'
import { retriesOf, untilFinished, type RetryAccount } from './accounts.ts'
import { Child } from '../child.ts'
import { monotonicMs } from './clock.ts'
import { watchCpu, type CpuUse } from './cpu.ts'
import type { Behaviour } from '../children/endpoints.ts'
import { round2 } from './figures.ts'
import { deployMany, measuredCore, otherCore, type Servers } from '../rig.ts'

/** Load at a rate: for `warmUpS` all endpoints are healthy, then they behave as given. */
export interface Pace {
  /** Calls a second to all endpoints together. */
  rate: number
  warmUpS: number
  /** After the change, while the forwarder adapts: reported apart from the time after. */
  onsetS: number
  seconds: number
  /** How much of the traffic each endpoint gets, in whole numbers. */
  weights: number[]
  behaviours?: Behaviour[]
  /** Endpoints that get nothing although their turns pass. */
  silent?: number[]
  /** Endpoints whose calls' latency is measured; healthy ones. */
  counted: number[]
}

/** From when a call was produced until its POST had come, in ms. */
export interface Latencies {
  count: number
  p50: number
  p90: number
  p99: number
  max: number
}

export interface Paced {
  lasting: Latencies
  /** The same from when the calls were due to be produced: where the sender was late, that counts. */
  lastingSinceDue: Latencies
  onset: Latencies | null
  /** Calls to counted endpoints that had not come half a minute after the last was due. */
  missing: number
  /** Of endpoints that do not behave: what was sent to them, and what is in tiers and dead letters. */
  failing: { sent: number; retries: RetryAccount } | null
  /** Where the sender itself was late at most, in ms. */
  senderLateMs: number
  use: CpuUse
}

const users = 10_000
const missingAfterMs = 30_000

export async function paced(servers: Servers, pace: Pace): Promise<Paced> {
  const { rate, warmUpS, onsetS, seconds, weights, silent = [], counted } = pace
  const { deployment, receiver } = await deployMany(servers, weights.length)
  const measured = { core: measuredCore, env: deployment.env }
  const child = new Child('forwarding.ts', measured)
  await child.reported('ready')
  // With little room for young objects it frees its buffers often, and seldom looks at its whole heap: it shares a core
  // with Kafka and the receiver, and its pauses are theirs.
  const flags = ['--max-semi-space-size=1']
  const pacer = new Child('pacer.ts', { core: otherCore, env: deployment.env, flags })
  await pacer.reported('listening')
  const pacing = pacer.reported('pacing')
  const over = pacer.reported('paced')
  pacer.send({ rate, seconds: warmUpS + onsetS + seconds, users, weights, silent })
  const from = (await pacing).from!
  const [changeAt, lastingFrom, endAt] = [0, onsetS, onsetS + seconds].map(
    (after) => from + (warmUpS + after) * 1_000,
  ) as [number, number, number]
  await until(changeAt)
  if (pace.behaviours) await receiver.ask({ behave: pace.behaviours }, 'behaving')
  await until(lastingFrom)
  const pids = {
    forwarder: child.pid,
    receiver: receiver.pid,
    sender: pacer.pid,
    kafka: servers.brokerPid,
    bench: process.pid,
  }
  const watch = await watchCpu(pids, otherCore)
  await until(endAt)
  const use = await watch.end()
  const reported = (await over) as unknown as { sent: number[]; failed: number; latestMs: number }
  if (reported.failed > 0) throw new Error(`${reported.failed} batches could not be produced`)
  const missing = await untilArrived(receiver, reported.sent, counted)
  const latencies = async (a: number, b: number, since = 'produced'): Promise<Latencies> => {
    const asked = { from: a, to: b, of: counted, since }
    const { count, p50, p90, p99, max } = await receiver.ask(asked, 'quantiles')
    return { count: count!, p50: round2(p50!), p90: round2(p90!), p99: round2(p99!), max: round2(max!) }
  }
  const result: Paced = {
    lasting: await latencies(lastingFrom, endAt),
    lastingSinceDue: await latencies(lastingFrom, endAt, 'due'),
    onset: onsetS > 0 ? await latencies(changeAt, lastingFrom) : null,
    missing,
    failing: null,
    senderLateMs: round2(reported.latestMs),
    use,
  }
  const bad = pace.behaviours?.findIndex((behaviour) => behaviour !== 'ok') ?? -1
  if (bad >= 0) {
    await untilFinished(deployment)
    result.failing = {
      // In its first seconds it was healthy.
      sent: reported.sent[bad]! - (await healthyBefore(receiver, bad)),
      retries: await retriesOf(deployment, `destination-${bad}`),
    }
  }
  await Promise.all([child.end(), pacer.end(), receiver.end(), deployment.close()])
  return result
}

const until = (at: number) => delay(Math.max(0, at - monotonicMs()))

async function totals(receiver: Child): Promise<number[]> {
  const reported = (await receiver.ask({ total: true }, 'totals')) as unknown as { requests: number[] }
  return reported.requests
}

/** How many calls of an endpoint came while it still answered: those whose due times it kept. */
async function healthyBefore(receiver: Child, endpoint: number): Promise<number> {
  const { count } = await receiver.ask(
    { from: 0, to: Number.MAX_VALUE, of: [endpoint], since: 'due' },
    'quantiles',
  )
  return count!
}

async function untilArrived(receiver: Child, sent: readonly number[], counted: readonly number[]) {
  for (const deadline = monotonicMs() + missingAfterMs; ; await delay(100)) {
    const arrived = await totals(receiver)
    const missing = counted.reduce((sum, index) => sum + Math.max(0, sent[index]! - arrived[index]!), 0)
    if (missing === 0 || monotonicMs() > deadline) return missing
  }
}
