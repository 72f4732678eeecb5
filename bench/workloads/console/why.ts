import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { partitionOfKey } from '../../../src/adapters/kafka/wire/murmur2.ts'
import { fetchRanges } from '../../../src/adapters/kafka/read/topic-offsets.ts'
import { withAdmin } from '../../../src/adapters/kafka/admin/with-admin.ts'
import { deliveryEvent, type DeliveryEvent } from '../../../src/core/ledger/delivery-event.ts'
import { encodeFinished, withTally } from '../../../src/core/offsets/offset-runs.ts'
import { noTally } from '../../../src/core/ledger/result-codes.ts'
import type { Tally } from '../../../src/core/ledger/tally.ts'
import { nthCall } from '../../calls.ts'
import { p99Of } from '../../measure/figures.ts'
import { deploy, measuredCore, type Deployment, type Servers } from '../../rig.ts'
import { atMost, type Workload } from '../workload.ts'
import { startConsole } from './console-process.ts'

const destinations = 5
const users = 100_000
const perTally = 500
/** Every Nth call fails once at the first destination, and is delivered then. */
const failsEvery = 20
const questions = 500

/** How `why` answers over a ledger as it is by default: successes counted, failures listed. */
export const why: Workload = {
  name: 'why',
  summary:
    'the life of one call among 10,000,000 deliveries of 2,000,000 calls, by the console, once indexed',
  sizes: { calls: 2_000_000 },
  quick: { calls: 20_000 },
  run: async (servers: Servers, { calls = 2_000_000 }) => {
    const folder = await mkdtemp(join(tmpdir(), 'postrider-bench-'))
    const deployment = await deploy(servers)
    try {
      for (let index = 0; index < destinations; index++)
        await deployment.destination(`d${index}`, 'shop', ['http://127.0.0.1:9/a'])
      await deployment.produce(calls, (index) => nthCall(index, users), 'calls')
      await writeLedger(deployment, calls)
      await deployment.close()
      const found = await ask({ ...deployment.env, STORE_PATH: folder }, calls)
      const file = join(folder, `${deployment.topics.deliveries}.index.sqlite`)
      const fileMb = Math.round((await stat(file)).size / 1_000_000)
      const { indexSeconds, peakMb, p99 } = found
      return {
        rows: [
          { what: 'indexed at the first question', unit: 's', value: Math.round(indexSeconds) },
          { what: 'peak memory', unit: 'MB', value: peakMb },
          { what: 'index', unit: 'MB', value: fileMb },
          ...Object.entries(p99).map(([what, value]) => ({ what: `p99 of ${what}`, unit: 'ms', value })),
        ],
        ratio: null,
        goal: null,
        goals: Object.entries(p99).map(([what, ms]) => atMost(`p99 of ${what}, ms`, ms, 100)),
        verdict: null,
        detail: { calls, deliveries: calls * destinations, ...found, fileMb },
      }
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  },
}

/** As if forwarders had finished all calls: tallies in a chain for each partition, and commits that name the last. */
async function writeLedger({ append, codecs, config, kafka, topics }: Deployment, calls: number) {
  await codecs.deliveries.ready()
  const ends = await fetchRanges(kafka, [topics.calls])
  const placeOf = placesOf(ends.length)
  const failures: DeliveryEvent[] = []
  for (let index = 0; index < calls; index++) {
    const { messageId, userId } = nthCall(index, users)
    const place = placeOf(userId!)
    if (index % failsEvery === 0) failures.push(failed(messageId, topics.calls, place))
  }
  const at = Date.now()
  const tallies = ends.flatMap(({ partition, high }) =>
    Array.from({ length: Math.ceil(high / perTally) }, (_, index) => {
      const start = index * perTally
      const tally = nthTally(config.groupId, index, start, Math.min(perTally, high - start))
      return deliveryEvent('tally', at, { topic: topics.calls, partition, tally })
    }),
  )
  const nth = (events: readonly DeliveryEvent[]) => (index: number) => {
    const event = events[index]!
    const key = event.tally ? `${config.groupId}/${event.partition}` : event.messageId!
    return { key, value: codecs.deliveries.encode(event) }
  }
  await append(topics.deliveries, failures.length, nth(failures), 'failures')
  await append(topics.deliveries, tallies.length, nth(tallies), 'tallies')
  await withAdmin(kafka, (admin) =>
    admin.setOffsets({
      groupId: config.groupId,
      topic: topics.calls,
      partitions: ends.map(({ partition, high }) => ({
        partition,
        offset: String(high),
        metadata: withTally(encodeFinished(high, []), `t${Math.ceil(high / perTally) - 1}`),
      })),
    }),
  )
}

/** Where each call of a key lies, asked in the order in which they were produced. */
function placesOf(partitions: number): (key: string) => { partition: number; firstOffset: number } {
  const next = new Array<number>(partitions).fill(0)
  return (key) => {
    const partition = partitionOfKey(key, partitions)
    return { partition, firstOffset: next[partition]!++ }
  }
}

function nthTally(group: string, index: number, start: number, records: number): Tally {
  return {
    id: `t${index}`,
    predecessor: index === 0 ? null : `t${index - 1}`,
    ...{ group, start, position: start + records, before: [], finished: [0, records], lost: [], held: [] },
    ...{ records, owner: 'm/1', earlier: [] },
    counts: Array.from({ length: destinations }, (_, which) => ({
      ...noTally(`d${which}`),
      delivered: records,
    })),
  }
}

const failed = (
  messageId: string,
  topic: string,
  place: { partition: number; firstOffset: number },
): DeliveryEvent =>
  deliveryEvent('attempt_failed', Date.now(), {
    ...{ messageId, sourceId: 'shop', destinationId: 'd0', deliveryId: `${messageId}:d0`, urlId: 'u1' },
    ...{ topic, ...place, attempt: 1, reason: 'status_5xx', status: 503, durationMs: 12.5 },
  })

/** A console as users run it: the first question builds the index. */
async function ask(env: Record<string, string>, calls: number) {
  const console = startConsole(env, measuredCore)
  const lifeAt = (index: number) => console.ask<object>(`/messages/${nthCall(index, users).messageId}`)
  try {
    while ((await console.ask('/session')) === null) await new Promise((resolve) => setTimeout(resolve, 100))
    const began = performance.now()
    if ((await lifeAt(0)) === null) throw new Error('the first question was refused')
    const indexSeconds = (performance.now() - began) / 1_000
    const p99: Record<string, number> = {}
    // Spread over the whole topic; 7919 has no divisor in common with the sizes.
    for (const [what, step, from] of [
      ['a call delivered at once', 1, 1],
      ['a call that failed once', failsEvery, 0],
    ] as const) {
      const times: number[] = []
      for (let index = 0; index < questions; index++) {
        const nth = (from + ((index * 7_919 * step) % (calls - failsEvery))) % calls
        const asked = performance.now()
        if ((await lifeAt(nth)) === null) throw new Error(`call ${nth} was not found`)
        times.push(performance.now() - asked)
      }
      p99[what] = p99Of(times)
    }
    return { indexSeconds, peakMb: await console.peakMb(), p99 }
  } finally {
    await console.end()
  }
}
