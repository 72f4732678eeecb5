import { setTimeout as delay } from 'node:timers/promises'
import { readRange } from '../../src/adapters/kafka/read/read-range.ts'
import { countOf, isRun } from '../../src/core/delivery/deferred-run.ts'
import { silentLog as log } from '../../test/support/silent-log.ts'
import { nthCall } from '../calls.ts'
import { Child } from '../child.ts'
import { untilFinished } from '../measure/accounts.ts'
import { median, round2 } from '../measure/figures.ts'
import { deployMany, measuredCore, type Deployment, type Servers } from '../rig.ts'
import { atMost, type Workload } from './workload.ts'

const users = 10_000
/** Until the breaker is open, and what runs most is compiled. */
const warmUp = 20_000
const drainedWithinMs = 120_000
const idleMs = 4_000
/** Long enough that all of a round are put off before the first comes due. */
const soon = '20s'
/** Nothing comes due there while the bench runs. */
const late = '1h'
const pollMs = 1_000

const kinds = { delivered: 'source-0', 'put off': 'source-1', 'of no destination': 'nobody' }
type Kind = keyof typeof kinds

interface Forwarding {
  deployment: Deployment
  /** CPU for each of `count` calls of the kind, in µs, from when the first is produced until all are committed. */
  take(kind: Kind, count: number): Promise<number>
  /** CPU so far, in ms, less what the forwarder takes without any call. */
  cpuMs(): Promise<number>
  end(): Promise<void>
}

/**
 * What a call costs that an endpoint with an open breaker does not take: beside a call that is read and goes nowhere, and
 * each time that it comes due and is put off once more.
 */
export const putOff: Workload = {
  name: 'put-off',
  summary: 'CPU of a call that is put off without an attempt; reference: one that goes to no destination',
  sizes: { calls: 100_000, rounds: 5 },
  quick: { calls: 20_000, rounds: 1 },
  async run(servers, { calls, rounds }) {
    const taken: Record<Kind, number[]> = { delivered: [], 'put off': [], 'of no destination': [] }
    const first = await startForwarding(servers, late)
    for (let round = 0; round < rounds!; round++)
      for (const kind of Object.keys(kinds) as Kind[]) taken[kind].push(await first.take(kind, calls!))
    const inTier = await putOffTo(first.deployment, late)
    if (inTier < rounds! * calls!) throw new Error(`${inTier} calls were put off, not ${rounds! * calls!}`)
    await first.end()
    const again: number[] = []
    for (let round = 0; round < rounds!; round++) again.push(await putOffAgain(servers, calls!))
    const all: Record<string, number[]> = { ...taken, 'put off once more': again }
    const more = median(taken['put off']) - median(taken['of no destination'])
    return {
      rows: Object.entries(all).map(([what, each]) => ({
        what: `a call that is ${what}`,
        unit: 'µs',
        value: round2(median(each)),
      })),
      ratio: null,
      goal: null,
      goals: [
        atMost('more than one of no destination, µs', round2(more), 8),
        atMost('each time that it is put off once more, µs', round2(median(again)), 8),
      ],
      verdict: null,
      text: Object.entries(all).map(([what, each]) => `  ${what}: ${each.map(round2).join(', ')} µs`),
      detail: { calls, taken: all },
    }
  },
}

/** From the first time that calls are put off until all have come due, and lie in the next tier. */
async function putOffAgain(servers: Servers, calls: number): Promise<number> {
  const forwarding = await startForwarding(servers, `${soon},${late}`)
  await forwarding.take('put off', calls)
  const from = await forwarding.cpuMs()
  const before = await putOffTo(forwarding.deployment, late)
  let moved = 0
  for (const deadline = performance.now() + drainedWithinMs; ; await delay(pollMs)) {
    const now = (await putOffTo(forwarding.deployment, late)) - before
    // Those of the warm-up are among them.
    if (now >= calls && now === moved) break
    moved = now
    if (performance.now() > deadline) throw new Error(`${moved} calls were put off once more`)
  }
  const cpuMs = (await forwarding.cpuMs()) - from
  await forwarding.end()
  return (cpuMs * 1_000) / moved
}

async function startForwarding(servers: Servers, tiers: string): Promise<Forwarding> {
  const { deployment, receiver } = await deployMany(servers, 2, { RETRY_TIERS: tiers })
  const name = kinds['of no destination']
  await deployment.execute({ type: 'create_source', id: name, name, writeKey: 'key-nobody', enabled: true })
  await receiver.ask({ behave: ['ok', '503'] }, 'behaving')
  const child = new Child('forwarding.ts', { core: measuredCore, env: deployment.env })
  await child.reported('ready')
  const spentMs = async () => (await child.ask({}, 'usage')).cpuMs!
  let produced = 0
  const produce = async (kind: Kind, count: number) => {
    const from = produced
    produced += count
    await deployment.produce(count, (index) => nthCall(from + index, users, kinds[kind]), kind)
    await untilFinished(deployment, drainedWithinMs)
  }
  for (const kind of Object.keys(kinds) as Kind[]) await produce(kind, warmUp)
  const before = await spentMs()
  await delay(idleMs)
  const idle = ((await spentMs()) - before) / idleMs
  const began = performance.now()
  const cpuMs = async () => (await spentMs()) - idle * (performance.now() - began)
  return {
    deployment,
    async take(kind, count) {
      const from = await cpuMs()
      await produce(kind, count)
      return (((await cpuMs()) - from) * 1_000) / count
    },
    cpuMs,
    end: async () => void (await Promise.all([child.end(), receiver.end(), deployment.close()])),
  }
}

/** Calls of runs in the tier. */
async function putOffTo({ kafka, topics, codecs }: Deployment, tier: string): Promise<number> {
  let count = 0
  for await (const { value } of readRange({ kafka, topic: topics.retry(tier), log })) {
    const record = await codecs.retries(tier).decode(value)
    if (isRun(record)) count += countOf(record)
  }
  return count
}
