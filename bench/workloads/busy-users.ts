import { deliveryIdIn, isRun, offsetsOf } from '../../src/core/delivery/deferred-run.ts'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { readRange } from '../../src/adapters/kafka/read/read-range.ts'
import { murmur2OfText } from '../../src/adapters/kafka/wire/murmur2.ts'
import { untilFinished } from '../measure/accounts.ts'
import { nthCall } from '../calls.ts'
import { Child } from '../child.ts'
import { round2 } from '../measure/figures.ts'
import { deploy, measuredCore, type Deployment, type Servers } from '../rig.ts'
import { atMost, type Workload } from './workload.ts'
import { silentLog } from '../../test/support/silent-log.ts'

const answerMs = 1_000
/** Calls of others a second, of many users: in every partition. */
const othersPerSecond = 20
/** How long all of what was put off is given to arrive. */
const arriveWithinMs = 20 * 60_000

/** A receiver in this process, which notes when each call first came. */
async function receive(
  afterMs: number,
): Promise<{ url: string; arrived: Map<string, number>; close(): void }> {
  const arrived = new Map<string, number>()
  const server = createServer((request, response) => {
    const id = String(request.headers['idempotency-key'])
    request.resume()
    request.on('end', () => {
      if (!arrived.has(id)) arrived.set(id, performance.now())
      if (afterMs > 0) setTimeout(() => response.end(), afterMs)
      else response.end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const close = () => {
    server.closeAllConnections()
    server.close()
  }
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`, arrived, close }
}

/** A user of each partition. */
function userOfEach(partitions: number): string[] {
  const users: string[] = []
  for (let index = 0; users.filter(Boolean).length < partitions; index++) {
    const user = `hot-${index}`
    users[(murmur2OfText(user) & 0x7fffffff) % partitions] ??= user
  }
  return users
}

/**
 * A busy user in every partition, each with many calls for an endpoint that works but takes a second an answer; beside
 * them a few calls a second of other users to another destination.
 */
export const busyUsers: Workload = {
  name: 'busy-users',
  summary: `a user in each partition with many calls at an endpoint of ${answerMs / 1_000} s; measured: another destination's calls`,
  sizes: { calls: 20_000, seconds: 60 },
  quick: { calls: 2_000, seconds: 5 },
  async run(servers: Servers, { calls, seconds }) {
    const deployment = await deploy(servers)
    const [slow, well] = [await receive(answerMs), await receive(0)]
    await deployment.destination('slow', 'busy', [slow.url])
    await deployment.destination('well', 'others', [well.url])
    const forwarder = new Child('forwarding.ts', { core: measuredCore, env: deployment.env })
    await forwarder.reported('ready')
    const hot = userOfEach(deployment.config.partitions.calls)
    const hotCalls = calls! * hot.length

    const sent = new Map<string, number>()
    const sending = new AbortController()
    const others = sendOthers(deployment, sent, sending.signal)
    await delay(1_000)
    const began = performance.now()
    await deployment.produce(
      hotCalls,
      (index) => ({
        ...nthCall(index, 1, 'busy'),
        userId: hot[index % hot.length]!,
        messageId: `hot-${index % hot.length}-${Math.floor(index / hot.length)}`,
      }),
      'busy users',
    )
    const producedMs = performance.now() - began
    await delay(seconds! * 1_000)
    sending.abort()
    await others
    await untilArrived(well.arrived, sent.size, 60_000)
    const latencies = [...sent].map(([id, at]) => (well.arrived.get(`${id}:well`) ?? Infinity) - at)
    latencies.sort((a, b) => a - b)
    const at = (share: number) =>
      round2(latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))]!)

    await untilFinished(deployment, 120_000)
    await untilArrived(slow.arrived, hotCalls, arriveWithinMs)
    const allAfterS = Math.round((performance.now() - began) / 1_000)
    const deferred = await deferredIds(deployment)
    const outOfOrder = countOutOfOrder(slow.arrived, deferred)
    await forwarder.end()
    await deployment.close()
    slow.close()
    well.close()
    const lost = hotCalls - slow.arrived.size + latencies.filter((ms) => ms === Infinity).length
    return {
      rows: [
        { what: 'calls of the busy users', unit: 'calls', value: hotCalls },
        { what: 'produced within', unit: 'ms', value: Math.round(producedMs) },
        { what: 'of them put off', unit: 'calls', value: deferred.size },
        { what: 'all of them had arrived after', unit: 's', value: allAfterS },
        { what: 'calls of the others', unit: 'calls', value: latencies.length },
        { what: 'the others, p50', unit: 'ms', value: at(0.5) },
        { what: 'the others, p90', unit: 'ms', value: at(0.9) },
        { what: 'the others, p99', unit: 'ms', value: at(0.99) },
        { what: 'the others, longest', unit: 'ms', value: at(1) },
      ],
      ratio: null,
      goal: null,
      goals: [
        atMost('p99 of the others', at(0.99), 5_000),
        atMost('calls that did not come', lost, 0),
        atMost('calls out of order that were not put off', outOfOrder, 0),
      ],
      verdict: null,
      detail: { calls, seconds, producedMs, deferred: deferred.size, latencies },
    }
  },
}

async function sendOthers(
  deployment: Deployment,
  sent: Map<string, number>,
  signal: AbortSignal,
): Promise<void> {
  const under: Promise<void>[] = []
  for (let index = 0, next = performance.now(); !signal.aborted; index++) {
    const messageId = `other-${index}`
    sent.set(messageId, performance.now())
    const call = { ...nthCall(index, 1_000, 'others'), messageId }
    under.push(deployment.produce(1, () => call, 'others'))
    next += 1_000 / othersPerSecond
    await delay(Math.max(0, next - performance.now()))
  }
  await Promise.all(under)
}

async function untilArrived(
  arrived: ReadonlyMap<string, number>,
  count: number,
  withinMs: number,
): Promise<void> {
  const deadline = performance.now() + withinMs
  while (arrived.size < count && performance.now() < deadline) await delay(100)
}

/** Delivery ids of what went into a tier. */
async function deferredIds({ kafka, topics, codecs, config }: Deployment): Promise<Set<string>> {
  const ids = new Set<string>()
  const log = silentLog
  const messageIds = new Map<string, string>()
  for await (const { partition, offset, value } of readRange({ kafka, topic: topics.calls, log }))
    messageIds.set(`${partition}/${offset}`, (await codecs.calls.decode(value)).messageId)
  for (const { name } of config.retryTiers) {
    const range = readRange({ kafka, topic: topics.retry(name), log })
    for await (const { value } of range) {
      const record = await codecs.retries(name).decode(value)
      if (!isRun(record)) ids.add(record.id)
      else
        for (const offset of offsetsOf(record.calls))
          ids.add(deliveryIdIn(record, messageIds.get(`${record.calls.partition}/${offset}`)!))
    }
  }
  return ids
}

/** Of those that were never put off: calls that came before an earlier one of their user. */
function countOutOfOrder(arrived: ReadonlyMap<string, number>, deferred: ReadonlySet<string>): number {
  const latest = new Map<string, number>()
  let count = 0
  for (const id of arrived.keys()) {
    if (deferred.has(id)) continue
    const [, user, number] = id.split(':')[0]!.split('-') as [string, string, string]
    if (Number(number) < (latest.get(user) ?? -1)) count++
    latest.set(user, Math.max(Number(number), latest.get(user) ?? -1))
  }
  return count
}
