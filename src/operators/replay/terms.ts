import { deadLetterPlace, noDeadLetter } from '../dead-letters/dead-letters.ts'
import type { FactsOptions, MessagePorts } from '../why/facts.ts'
import { SettingsRefused } from '../settings/writer.ts'
import type { Heartbeat } from '../../core/ledger/heartbeat.ts'
import type { DeadLetterRange, ReplayRange, PlacedRange, TopicEnds } from '../../core/replay/replay-job.ts'
import { termsFaults } from '../../core/replay/replay-rules.ts'
import { PostriderError } from '../../errors.ts'
import type { PartitionSpan, ReplayRig, ReplaySource } from './rig.ts'

export interface CheckedTerms {
  terms: PlacedRange
  /** As of a job. */
  keptSince: number | null
  /** Epoch milliseconds. */
  at: number
}

/** What a replay is to work by, on the settings as they are now. Throws SettingsRefused with every fault, and `not_found`. */
export async function checkedTerms(
  range: ReplayRange,
  rig: ReplayRig,
  signal: AbortSignal,
): Promise<CheckedTerms> {
  const { settings, source, topics } = rig
  await settings.catchUp(signal)
  const at = rig.now()
  // Before retention is looked at, which takes a moment.
  const faults = termsFaults(range, settings.state.destinations, at)
  if (faults.length > 0) throw new SettingsRefused(faults)
  const { since } = range
  const topic = range.deadLetters === null ? topics.calls : topics.deadLetters
  const kept = since === null ? null : await keptSince(since, source, topic, at, signal)
  const terms = range.deadLetters === null ? range : await pinnedDeadLetters(range, rig, signal)
  return { terms, keptSince: kept, at }
}

/**
 * Where retention has taken the beginning of a range, from when on all of it is kept (epoch ms). Null: nothing is
 * missing.
 */
async function keptSince(
  since: number,
  source: ReplaySource,
  topic: string,
  now: number,
  signal: AbortSignal,
): Promise<number | null> {
  // A log that begins at 0 has lost nothing.
  const cut = (await source.spans(topic)).filter(({ low }) => low > 0)
  const firsts = cut.map(({ partition, low, high }) => ({ partition, low, high: Math.min(high, low + 1) }))
  let kept = cut.some(({ low, high }) => low === high) ? now : -Infinity
  for await (const { timestamp } of source.read(topic, firsts, signal)) kept = Math.max(kept, timestamp)
  return kept > since ? kept : null
}

/**
 * What is asked for, with where the dead letters end now, and with the places of those that are named: of a delivery the
 * newest of its dead letters. Throws `not_found`.
 */
async function pinnedDeadLetters(
  terms: DeadLetterRange,
  rig: Pick<ReplayRig, 'source' | 'topics'>,
  signal: AbortSignal,
): Promise<DeadLetterRange & TopicEnds> {
  const spans = await rig.source.spans(rig.topics.deadLetters)
  const ends = spans.map(({ partition, high }) => ({ partition, offset: high }))
  const { deadLetters } = terms
  if (deadLetters.ids === null) return { ...terms, ends }
  const ids = await placesOf(deadLetters.ids, spans, rig, signal)
  return { ...terms, deadLetters: { ...deadLetters, ids }, ends }
}

async function placesOf(
  ids: readonly string[],
  spans: readonly PartitionSpan[],
  rig: Pick<ReplayRig, 'source' | 'topics'>,
  signal: AbortSignal,
): Promise<string[]> {
  const topic = rig.topics.deadLetters
  const deliveries = new Set(ids.filter((id) => deadLetterPlace(id) === null))
  const newest = await newestOf(deliveries, spans, rig, signal)
  const places = ids.map((id) => {
    const place = deadLetterPlace(id)
    const found = newest.get(id)
    if (found) return found.id
    if (place === null) throw noDeadLetter(topic, `of delivery ${id}`)
    const span = spans.find(({ partition }) => partition === place.partition)
    if (!span || place.offset < span.low || place.offset >= span.high) throw noDeadLetter(topic, id)
    return `${place.partition}-${place.offset}`
  })
  return [...new Set(places)]
}

/** By delivery; all dead letters are read for it. */
async function newestOf(
  deliveries: ReadonlySet<string>,
  spans: readonly PartitionSpan[],
  { source, topics }: Pick<ReplayRig, 'source' | 'topics'>,
  signal: AbortSignal,
): Promise<Map<string, { id: string; failedAt: number }>> {
  const newest = new Map<string, { id: string; failedAt: number }>()
  if (deliveries.size === 0) return newest
  for await (const { partition, offset, value } of source.read(topics.deadLetters, spans, signal)) {
    const deadLetter = await source.deadLetter(value)
    const id = deadLetter?.delivery?.id
    if (!deadLetter || id === undefined || !deliveries.has(id)) continue
    const { failedAt } = deadLetter
    if (failedAt >= (newest.get(id)?.failedAt ?? -Infinity))
      newest.set(id, { id: `${partition}-${offset}`, failedAt })
  }
  signal.throwIfAborted()
  return newest
}

/** Epoch ms, by the broker's clock; `until` is not included. */
export interface CallTimes {
  since: number
  until: number
}

/**
 * When a call came in: so that a replay of it need not read all that is kept. Of several copies it is the newest. Throws
 * `not_found`, and what the ports reject with.
 */
export async function timesOfCall(
  messageId: string,
  { facts }: Pick<MessagePorts, 'facts'>,
  options: FactsOptions = {},
): Promise<CallTimes> {
  const [found] = await facts([messageId], options)
  const { calls } = found!
  if (calls.length === 0)
    throw new PostriderError(
      'not_found',
      `no call with messageId ${JSON.stringify(messageId)} lies in Kafka: it cannot be sent again`,
    )
  const since = Math.max(...calls.map(({ appendedAt }) => appendedAt))
  return { since, until: since + 1 }
}

/** A process is taken for gone when this many of its heartbeats are missing. */
const missedIntervals = 3

/** By their heartbeats, which settings the forwarders know: what one held under earlier ones is in the ledger by then. */
export class ForwarderVersions {
  readonly #forwarders = new Map<string, { at: number; intervalMs: number; version: number }>()

  /** @param at when the broker appended it, epoch ms */
  add(heartbeat: Heartbeat, at: number): void {
    const { instance, roles, isLast, intervalMs } = heartbeat
    if (!roles.includes('forwarder')) return
    if (isLast) {
      this.#forwarders.delete(instance)
      return
    }
    this.#forwarders.set(instance, { at, intervalMs, version: heartbeat.settingsVersion })
  }

  /** Whether each forwarder that is there works by these settings or later ones. */
  allKnow(version: number, now: number): boolean {
    return [...this.#forwarders.values()].every(
      ({ at, intervalMs, version: known }) => known >= version || at + missedIntervals * intervalMs < now,
    )
  }
}
