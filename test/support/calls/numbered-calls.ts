// A load whose every request can be traced to its record, and what the group has committed of it: so that each
// duplicate can be explained, or not.
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { decodeFinished } from '../../../src/core/offsets/offset-runs.ts'
import { someCall } from './calls.ts'
import type { Deployment } from '../deployment/deployment.ts'
import type { Answer, ReceivedRequest, Receiver } from '../receivers.ts'
import { until } from '../until.ts'
import { tierDeliveries } from './tier-deliveries.ts'

/** A record of the calls topic: `<partition>/<offset>`. It is its call's messageId too. */
export type Place = string

export const placeOf = (request: ReceivedRequest): Place => {
  const key = String(request.headers['idempotency-key'])
  return key.slice(0, key.lastIndexOf(':'))
}

/** Answers after 5 to 5 + spreadMs ms, by the record: so that records finish out of order. */
export const unevenly =
  (spreadMs: number) =>
  (request: ReceivedRequest): Answer => {
    const [partition, offset] = placeOf(request).split('/').map(Number)
    return { delayMs: 5 + ((offset! * 7_919 + partition! * 104_729) % 997) * (spreadMs / 997) }
  }

/** Writes calls to all partitions of the calls topic in turns; nobody else may write to it. */
export class NumberedCalls {
  readonly places: Place[] = []
  readonly #deployment: Deployment
  readonly #next: number[]
  readonly #usersPerPartition: number

  constructor(deployment: Deployment, usersPerPartition = 100) {
    this.#deployment = deployment
    this.#next = new Array<number>(deployment.config.partitions.calls).fill(0)
    this.#usersPerPartition = usersPerPartition
  }

  async produce(
    perPartition: number,
    partitions = this.#next.map((_, partition) => partition),
  ): Promise<void> {
    const { producer, codecs, topics } = this.#deployment
    for (const partition of partitions) this.#next[partition] ??= 0
    for (let left = perPartition; left > 0; left -= 500) {
      const messages = partitions.flatMap((partition) =>
        Array.from({ length: Math.min(left, 500) }, () => {
          const offset = this.#next[partition]!++
          const messageId = `${partition}/${offset}`
          const userId = `u-${partition}-${offset % this.#usersPerPartition}`
          this.places.push(messageId)
          return { partition, key: userId, value: codecs.calls.encode(someCall({ messageId, userId })) }
        }),
      )
      await producer.send({ topic: topics.calls, acks: -1, messages })
    }
  }
}

/** How often each record arrived. */
export function countByPlace(requests: readonly ReceivedRequest[]): Map<Place, number> {
  const counts = new Map<Place, number>()
  for (const request of requests) {
    const place = placeOf(request)
    counts.set(place, (counts.get(place) ?? 0) + 1)
  }
  return counts
}

export const missing = (places: readonly Place[], receivers: readonly Receiver[]): Place[] => {
  const arrived = new Set(receivers.flatMap(({ requests }) => requests.map(placeOf)))
  return places.filter((place) => !arrived.has(place))
}

/** Of each record a request comes. One whose answer was late waits in a tier, though its own topic is done with. */
export async function assertAllArrive(
  places: readonly Place[],
  receivers: readonly Receiver[],
): Promise<void> {
  await until(() => missing(places, receivers).length === 0, 60_000).catch(() => {})
  assert.deepEqual(missing(places, receivers), [], 'every call arrives')
}

/** Of each record one request comes, and nothing else does; but those that went to a retry tier may come again. */
export async function assertEachOnce(
  deployment: Deployment,
  places: readonly Place[],
  receiver: Receiver,
): Promise<void> {
  await assertAllArrive(places, [receiver])
  const scheduled = await readScheduled(deployment)
  const unscheduled = (all: readonly Place[]) => all.filter((place) => !scheduled.has(place)).toSorted()
  assert.deepEqual(unscheduled(receiver.requests.map(placeOf)), unscheduled(places))
}

/**
 * Records that went to a retry tier: no answer came in time, or too many calls of one user waited for one another. On
 * a machine with too much else to do any may. That they come twice, or after their record was finished, is right.
 */
export async function readScheduled(deployment: Deployment): Promise<Set<Place>> {
  const { config } = deployment
  const places = new Set<Place>()
  for (const { name } of config.retryTiers) {
    for (const { id } of await tierDeliveries(deployment, name)) places.add(id.slice(0, id.lastIndexOf(':')))
  }
  return places
}

/** Those of records that never went to a retry tier (see `readScheduled`). */
export async function withoutScheduled(
  deployment: Deployment,
  requests: readonly ReceivedRequest[],
): Promise<ReceivedRequest[]> {
  const scheduled = await readScheduled(deployment)
  return requests.filter((request) => !scheduled.has(placeOf(request)))
}

/** What the calls' group has committed at one moment. */
export interface CommittedMap {
  /** Of each partition; 0 where nothing was committed. */
  positions: number[]
  isFinished(place: Place): boolean
}

export async function committedMap(deployment: Deployment): Promise<CommittedMap> {
  const { admin, config, topics } = deployment
  const [found] = await admin.fetchOffsets({ groupId: config.groupId, topics: [topics.calls] })
  const positions: number[] = []
  const runs = new Map<number, { start: number; end: number }[]>()
  for (const { partition, offset, metadata } of found!.partitions) {
    positions[partition] = Math.max(0, Number(offset))
    runs.set(partition, decodeFinished(positions[partition], metadata))
  }
  return {
    positions,
    isFinished(place) {
      const [partition, offset] = place.split('/').map(Number) as [number, number]
      if (offset < (positions[partition] ?? 0)) return true
      return (runs.get(partition) ?? []).some(({ start, end }) => offset >= start && offset < end)
    },
  }
}

export interface Sample extends CommittedMap {
  /** When the broker's answer was there, in ms by the steady clock. */
  steadyAt: number
}

/** Reads the committed map over and over, until `stop`. */
export function watchCommits(
  t: TestContext,
  deployment: Deployment,
): { samples: Sample[]; stop(): Promise<void> } {
  const samples: Sample[] = []
  let stopped = false
  const loop = async () => {
    while (!stopped) {
      try {
        const map = await committedMap(deployment)
        samples.push({ ...map, steadyAt: performance.now() })
      } catch {
        // The broker is away, or the coordinator is: the next look will tell.
      }
      await new Promise((resolve) => setTimeout(resolve, 25))
    }
  }
  const running = loop()
  const stop = async () => {
    stopped = true
    await running
  }
  t.after(stop)
  return { samples, stop }
}

/** Positions that went back from one sample to the next. */
export function rewinds(samples: readonly Sample[]): string[] {
  const found: string[] = []
  for (let index = 1; index < samples.length; index++) {
    for (const [partition, position] of samples[index]!.positions.entries()) {
      const before = samples[index - 1]!.positions[partition] ?? 0
      if (position < before) found.push(`partition ${partition}: ${before} → ${position}`)
    }
  }
  return found
}

/**
 * Requests that no rule allows: a commit that held their record as finished had been acknowledged before they
 * arrived.
 */
export function repeatedAfterCommit(
  requests: readonly ReceivedRequest[],
  samples: readonly Sample[],
): string[] {
  const found: string[] = []
  const times = samples.map(({ steadyAt }) => steadyAt)
  for (const request of requests) {
    const place = placeOf(request)
    // Only the last sample before the request: what is finished stays so, which `rewinds` and this together hold.
    const index = lastBefore(times, request.steadyAt)
    const sample = samples[index]
    if (!sample?.isFinished(place)) continue
    const [at, committedAt] = [request.steadyAt, sample.steadyAt].map(Math.round)
    found.push(`${place} at ${at}, committed at ${committedAt} (up to ${sample.positions.join()})`)
  }
  return found
}

function lastBefore(times: readonly number[], at: number): number {
  let low = 0
  let high = times.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (times[middle]! < at) low = middle + 1
    else high = middle
  }
  return low - 1
}
