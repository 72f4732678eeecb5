import { passes, type DeadLetterFilter } from '../../core/delivery/dead-letter-filter.ts'
import { planReplay } from '../../core/delivery/replay.ts'
import type { RetryDelivery } from '../../core/delivery/delivery.ts'
import type { Destination } from '../../core/settings/settings.ts'
import type { TopicNames } from '../../core/topics.ts'
import type { DeadLetterStore, StoredDeadLetter, StoredRecord } from './dead-letter-store.ts'

export interface ReplayRequest {
  /** Empty: by filter. */
  ids: readonly string[]
  filter: DeadLetterFilter
  /** Only reports what would be done. */
  dryRun: boolean
  /** Records a second; null for as many as Kafka takes. */
  rate: number | null
}

/** What became of one dead letter. */
export interface ReplayVerdict {
  stored: StoredDeadLetter
  /** The topic that it goes to; null when it cannot be replayed. */
  to: string | null
  why: string | null
}

/** How far a replay is, and what it did so far. */
export interface ReplayCounts {
  /** Sent again, or in a dry run to be sent. */
  replayed: number
  /** Cannot be replayed. */
  refused: number
  /** Further dead letters of deliveries that were taken already: left out. */
  repeated: number
  /** Dead letters that were looked at, and about how many there are. */
  looked: number
  total: number
  /** How many went to each topic. */
  topics: Record<string, number>
}

/** Learns what a replay does, as it goes. */
export interface ReplayReport {
  /** Called before the first dead letter, and after each; `counts` is the same object each time. */
  progress(counts: ReplayCounts): void
  add(verdict: ReplayVerdict): void
}

/** A dead letter on its way back. */
export interface ReplayRecord {
  stored: StoredDeadLetter
  topic: string
  key: Uint8Array | null
  value: Uint8Array
  headers: StoredRecord['headers']
}

/** Appends records, acknowledged by all replicas, at most `rate` a second. */
export interface ReplaySink {
  add(outgoing: ReplayRecord): Promise<void>
  /** Resolves once each record that was added is decided. */
  flush(): Promise<void>
  close(): void
}

export interface ReplaySinkOptions {
  /** Records a second; null for as many as Kafka takes. */
  rate: number | null
  /** Ends a wait early. */
  signal: AbortSignal
  /** Each of the two learns of a record once it is decided. */
  taken: (outgoing: ReplayRecord) => void
  tooLarge: (outgoing: ReplayRecord) => void
}

export interface ReplayPorts {
  deadLetters: DeadLetterStore
  topics: TopicNames
  /** The destinations as they are now. */
  destinations(signal: AbortSignal): Promise<ReadonlyMap<string, Destination>>
  /** The shortest tier, where replays begin. */
  tier: {
    name: string
    /** Resolves once `encode` can be called. */
    ready(): Promise<void>
    encode(record: RetryDelivery & { key: Uint8Array | null }): Uint8Array
  }
  openSink(options: ReplaySinkOptions): ReplaySink
  /** Epoch milliseconds. */
  now(): number
}

/**
 * Replays dead letters, or with a dry run reports what would be sent. All ids are looked up before
 * anything is sent: `not_found`. Ends early, without an error, when the signal aborts; the same request then goes
 * on, and repeats what was sent.
 */
export async function replayDeadLetters(
  request: ReplayRequest,
  ports: ReplayPorts,
  report: ReplayReport,
  signal: AbortSignal,
): Promise<ReplayCounts> {
  const { deadLetters, tier } = ports
  const counts: ReplayCounts = { replayed: 0, refused: 0, repeated: 0, looked: 0, total: 0, topics: {} }
  const begin = (total: number) => {
    counts.total = total
    report.progress(counts)
  }
  const add = (stored: StoredDeadLetter, to: string | null, why: string | null) => {
    if (to === null) counts.refused++
    else {
      counts.replayed++
      counts.topics[to] = (counts.topics[to] ?? 0) + 1
    }
    report.add({ stored, to, why })
  }
  let sink: ReplaySink | null = null
  try {
    await tier.ready()
    const chosen =
      request.ids.length > 0
        ? await newestOfEach(deadLetters, request.ids, begin, signal)
        : deadLetters.all({ since: request.filter.since, signal, onRange: begin })
    const plan = await planner(ports, signal)
    if (!request.dryRun)
      sink = ports.openSink({
        rate: request.rate,
        signal,
        taken: ({ stored, topic }) => add(stored, topic, null),
        tooLarge: ({ stored, topic }) => add(stored, null, `it is larger than ${topic} takes`),
      })
    const seen = new Set<string>()
    for await (const stored of chosen) {
      if (signal.aborted) break
      counts.looked++
      report.progress(counts)
      if (!passes(request.filter, stored)) continue
      const deliveryId = stored.deadLetter?.delivery?.id
      // A delivery that was replayed and failed again has several; its newest attempt is not of interest here.
      if (deliveryId !== undefined && seen.has(deliveryId)) {
        counts.repeated++
        continue
      }
      const planned = plan(stored)
      if ('why' in planned) {
        add(stored, null, planned.why)
        continue
      }
      if (deliveryId !== undefined) seen.add(deliveryId)
      if (sink) await sink.add(planned)
      else add(stored, planned.topic, null)
    }
    await sink?.flush()
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    sink?.close()
  }
  return counts
}

/** By id: of a delivery that failed several times the newest. */
async function newestOfEach(
  deadLetters: DeadLetterStore,
  ids: readonly string[],
  begin: (total: number) => void,
  signal: AbortSignal,
): Promise<StoredDeadLetter[]> {
  const found: StoredDeadLetter[] = []
  for (const id of new Set(ids)) found.push((await deadLetters.byId(id, signal)).at(-1)!)
  begin(found.length)
  return found
}

/** What one dead letter becomes, on the settings as they are now. */
async function planner(
  { topics, tier, now, ...ports }: ReplayPorts,
  signal: AbortSignal,
): Promise<(stored: StoredDeadLetter) => ReplayRecord | { why: string }> {
  const destinations = await ports.destinations(signal)
  return (stored) => {
    const { deadLetter, record, id, problem } = stored
    if (!deadLetter) return { why: `it cannot be read: ${problem}` }
    const planned = planReplay(deadLetter, {
      now: now(),
      owner: `replay/${id}`,
      topics,
      destination: destinations.get(deadLetter.delivery?.destinationId ?? '') ?? null,
    })
    if (planned.kind === 'refused') return { why: planned.why }
    if (planned.kind === 'raw')
      return {
        stored,
        topic: planned.topic,
        key: planned.key,
        value: planned.value,
        headers: record.headers.traceparent ? { traceparent: record.headers.traceparent } : {},
      }
    return {
      stored,
      topic: topics.retry(tier.name),
      key: record.key,
      value: tier.encode({ ...planned.record, key: record.key }),
      headers: record.headers,
    }
  }
}
