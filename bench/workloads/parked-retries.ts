import { setTimeout as delay } from 'node:timers/promises'
import { renderBody } from '../../src/core/call/body.ts'
import type { RetryDelivery } from '../../src/core/delivery/delivery.ts'
import { nthCall } from '../calls.ts'
import { Child } from '../child.ts'
import { watchCpu } from '../measure/cpu.ts'
import { cpuLine, noVerdict } from '../measure/drain.ts'
import { deployMany, measuredCore, otherCore } from '../rig.ts'
import { atMost, type Workload } from './workload.ts'

const users = 50_000
const tier = { name: '5m', delayMs: 5 * 60_000 }
/** What the records can be produced at, at least, and a pause for the forwarder to join and fetch. */
const producedPerSecond = 25_000
const pauseMs = 15_000
const missingAfterMs = 30_000

/**
 * Retries that wait in a tier and come due evenly. A record is due at the time it was scheduled, which it carries, plus the
 * tier's delay: they are produced at once, scheduled nearly the tier's delay ago.
 */
export const parkedRetries: Workload = {
  name: 'parked-retries',
  summary: '1,000,000 retries parked in a tier, due evenly over 60 s: how late, and never early',
  sizes: { calls: 1_000_000, seconds: 60 },
  quick: { calls: 50_000, seconds: 5 },
  async run(servers, { calls, seconds }) {
    const { deployment, receiver } = await deployMany(servers, 1)
    const codec = deployment.codecs.retries(tier.name)
    await codec.ready()
    const endpointIds = deployment.endpointIds('destination-0')
    const firstDueAt = Date.now() + (calls! / producedPerSecond) * 1_000 + pauseMs
    const dueAt = (index: number) => Math.ceil(firstDueAt + (index * seconds! * 1_000) / calls!)
    await deployment.append(
      deployment.topics.retry(tier.name),
      calls!,
      (index) => {
        const retry = parked(index, dueAt(index), endpointIds)
        return { key: `user-${index % users}`, value: codec.encode(retry) }
      },
      'retries',
    )
    const spareMs = firstDueAt - Date.now()
    if (spareMs < pauseMs / 2) throw new Error('producing took so long that the first retries would be late')
    const child = new Child('forwarding.ts', { core: measuredCore, env: deployment.env })
    await child.reported('ready')
    await delay(firstDueAt - Date.now())
    const watch = await watchCpu(
      { forwarder: child.pid, receiver: receiver.pid, kafka: servers.brokerPid, bench: process.pid },
      otherCore,
    )
    await delay(dueAt(calls! - 1) - Date.now())
    const use = await watch.end()
    const { rssMb } = await child.ask({}, 'usage')
    let arrived = 0
    for (const deadline = Date.now() + missingAfterMs; ; await delay(100)) {
      const reported = (await receiver.ask({ total: true }, 'totals')) as unknown as { requests: [number] }
      arrived = reported.requests[0]
      if (arrived >= calls! || Date.now() > deadline) break
    }
    const late = await receiver.ask({ from: 0, to: Number.MAX_VALUE, of: [0], since: 'due' }, 'quantiles')
    await Promise.all([child.end(), receiver.end(), deployment.close()])
    return {
      rows: [
        { what: 'due', unit: 'retries/s', value: Math.round(calls! / seconds!) },
        { what: 'lateness, p50', unit: 'ms', value: late.p50! },
        { what: 'lateness, longest', unit: 'ms', value: late.max! },
        { what: 'resident memory', unit: 'MB', value: Math.round(rssMb!) },
      ],
      ratio: null,
      goal: null,
      goals: [
        atMost('lateness, p99, ms', late.p99!, 999),
        atMost('earliest: ms before it was due', Math.max(0, -late.min!), 0),
        atMost('missing or doubled', Math.abs(calls! - arrived), 0),
      ],
      verdict: noVerdict([use]),
      text: [cpuLine('while they came due', use)],
      detail: { calls, seconds, use, late },
    }
  },
}

/** A delivery whose first attempt was answered 503. `wall-<epoch ms>` gives the receiver its due time. */
function parked(index: number, dueAt: number, endpointIds: string[]): RetryDelivery {
  const scheduledAt = dueAt - tier.delayMs
  const messageId = `wall-${dueAt}-${index}`
  const call = { ...nthCall(index, users, 'source-0'), messageId }
  return {
    id: `${messageId}:destination-0`,
    messageId,
    sourceId: 'source-0',
    destinationId: 'destination-0',
    userIds: [call.userId!],
    type: 'track',
    body: Buffer.from(renderBody(call)),
    filled: null,
    endpointIds,
    attempts: 1,
    timesScheduled: 1,
    firstAttemptAt: scheduledAt - 5,
    firstScheduledAt: scheduledAt,
    notBefore: null,
    outcomes: endpointIds.map((endpointId) => ({
      endpointId,
      kind: 'status_5xx',
      status: 503,
      durationMs: 5,
      at: scheduledAt,
      detail: null,
    })),
    lastResponse: null,
    lastExchange: null,
    origin: { topic: 'calls', partition: 0, offset: index, appendedAt: scheduledAt },
    scheduledAt,
    from: null,
    owner: 'bench/1',
  }
}
