import { usersOf } from '../../core/call/analytics-call.ts'
import { isRun } from '../../core/delivery/deferred-run.ts'
import { erasableDelivery } from '../../core/erasure/erasable.ts'
import type { ErasableCall } from '../../core/erasure/erasures.ts'
import {
  type CallReplay,
  type DeadLetterReplay,
  type ReplayJob,
  type ReplayRange,
  type SentKind,
} from '../../core/replay/replay-job.ts'
import type { StoredRecord } from '../dead-letters/dead-letters.ts'
import { checkedTerms } from './terms.ts'
import { chosenOf, isRetryWanted, spansBetween, wantedOfRun } from './chosen-calls.ts'
import { ChosenDeadLetters, deadLetterSpans, type DeadLetterVerdict } from './chosen-dead-letters.ts'
import { FactsReader } from './ledger.ts'
import { keyOfPlace, type PartitionSpan, type ReplayRig } from './rig.ts'

type KindCounts = Record<SentKind, number>

/** What would become of one dead letter. */
export interface DryRunResult {
  id: string
  deliveryId: string | null
  /** The topic that it would go to; null when it cannot be replayed. */
  to: string | null
  why: string | null
}

export interface DryRunReport {
  range: ReplayRange
  keptSince: number | null
  /** What would be sent. */
  counts: KindCounts
  erased: number
  /** Of dead letters: cannot be replayed. */
  refused: number
  /** Of dead letters: further ones of deliveries that are counted. */
  repeated: number
  /** Calls that the forwarders have not finished: a replay waits for them. */
  unfinished: number
  /** By the day (UTC) on which the call came in, or the dead letter did. */
  days: ({ day: string } & KindCounts)[]
  /** Of the topic that it reads. */
  partitions: ({ partition: number } & KindCounts)[]
  /** Of dead letters, the first of those that would be sent or cannot be. */
  results: DryRunResult[]
}

type Progress = (looked: number, total: number) => void

export const maxResults = 1_000

/** What a replay would send, by what is known now. Sends nothing. Throws SettingsRefused, as a start does. */
export async function dryRun(
  range: ReplayRange,
  rig: ReplayRig,
  signal: AbortSignal,
  progress: Progress,
): Promise<DryRunReport> {
  const { terms, keptSince, at } = await checkedTerms(range, rig, signal)
  const job: ReplayJob = {
    ...terms,
    id: '',
    pauseId: null,
    createdAt: at,
    keptSince,
    state: 'running',
    changedAt: at,
    totals: null,
  }
  const reading = new DryReading(rig, signal, progress)
  if (job.deadLetters === null) await lookAtCalls(job, rig, reading, signal)
  else await lookAtDeadLetters(job, rig, reading, signal)
  return { range: terms, keptSince, ...reading.found() }
}

const noCounts = (): KindCounts => ({ held: 0, skipped: 0, failed: 0, delivered: 0, raw: 0 })

/** Reads, reports how far it is, and counts what is found. */
class DryReading {
  readonly #rig: ReplayRig
  readonly #signal: AbortSignal
  readonly #progress: Progress
  readonly #days = new Map<string, KindCounts>()
  readonly #partitions = new Map<number, KindCounts>()
  readonly #counts = noCounts()
  readonly others = { erased: 0, refused: 0, repeated: 0, unfinished: 0 }
  readonly results: DryRunResult[] = []

  constructor(rig: ReplayRig, signal: AbortSignal, progress: Progress) {
    this.#rig = rig
    this.#signal = signal
    this.#progress = progress
  }

  async read(
    topic: string,
    spans: readonly PartitionSpan[],
    look: (record: StoredRecord) => Promise<void>,
  ): Promise<void> {
    for (const { partition } of spans) this.#partitions.set(partition, noCounts())
    const total = spans.reduce((sum, { low, high }) => sum + Math.max(0, high - low), 0)
    let looked = 0
    for await (const record of this.#rig.source.read(topic, spans, this.#signal)) {
      if (++looked % 1_000 === 0) this.#progress(looked, total)
      await look(record)
    }
    this.#signal.throwIfAborted()
    this.#progress(looked, looked)
  }

  /** @param at epoch milliseconds @param partition of the topic that is read; null for another one's */
  count(kind: SentKind, at: number, partition: number | null): void {
    this.#counts[kind]++
    const day = new Date(at).toISOString().slice(0, 10)
    if (!this.#days.has(day)) this.#days.set(day, noCounts())
    this.#days.get(day)![kind]++
    if (partition !== null) this.#partitions.get(partition)![kind]++
  }

  found() {
    return {
      counts: this.#counts,
      ...this.others,
      days: [...this.#days].sort(([a], [b]) => (a < b ? -1 : 1)).map(([day, each]) => ({ day, ...each })),
      partitions: [...this.#partitions]
        .sort(([a], [b]) => a - b)
        .map(([partition, each]) => ({ partition, ...each })),
      results: this.results,
    }
  }
}

async function lookAtDeadLetters(
  job: DeadLetterReplay,
  rig: ReplayRig,
  reading: DryReading,
  signal: AbortSignal,
): Promise<void> {
  const { source, topics } = rig
  const chosen = await ChosenDeadLetters.open(job, rig, signal)
  const spans = await deadLetterSpans(job, source, topics.deadLetters)
  await reading.read(topics.deadLetters, spans, async (record) => {
    const verdict = await chosen.verdict(record)
    if (verdict === null) return
    if (verdict.is === 'sent') reading.count(verdict.kind, record.timestamp, record.partition)
    else reading.others[verdict.is]++
    const result = resultOf(verdict, record)
    if (result !== null && reading.results.length < maxResults) reading.results.push(result)
  })
}

function resultOf(verdict: DeadLetterVerdict, { partition, offset }: StoredRecord): DryRunResult | null {
  const id = `${partition}-${offset}`
  if (verdict.is === 'refused') return { id, deliveryId: verdict.deliveryId, to: null, why: verdict.why }
  if (verdict.is === 'sent') return { id, deliveryId: verdict.deliveryId, to: verdict.to, why: null }
  return null
}

async function lookAtCalls(
  job: CallReplay,
  rig: ReplayRig,
  reading: DryReading,
  signal: AbortSignal,
): Promise<void> {
  const { source, topics, settings } = rig
  const { state } = settings
  const destination = state.destinations.get(job.destinationId)!
  const committed = await source.committed()
  const spans = await spansBetween(source, topics.calls, job.since, job.until)
  const facts = new FactsReader(job, rig)
  await facts.readOn(signal)
  const erasures = await rig.erasures(signal)
  await reading.read(topics.calls, spans, async ({ partition, offset, timestamp, value }) => {
    const call = await source.call(value)
    if (!call) return
    const place = { topic: topics.calls, partition, offset }
    const chosen = chosenOf({ call, place, appendedAt: timestamp }, job, destination, state, facts.facts)
    const { sourceId, type } = call
    if (offset >= (committed.get(keyOfPlace(place)) ?? 0)) reading.others.unfinished++
    else if (chosen.length === 0) return
    else if (erasures.covers({ sourceId, type, userIds: usersOf(call), appendedAt: timestamp }))
      reading.others.erased += chosen.length
    else for (const { kind } of chosen) reading.count(kind, timestamp, partition)
  })
  if (job.only.includes('held'))
    for (const { at, owner } of await heldRetries(job, rig, facts, signal))
      if (erasures.covers(owner)) reading.others.erased++
      else reading.count('held', at, null)
}

/** When the calls of held retries came in, and whose they are. */
async function heldRetries(
  job: CallReplay,
  { source, topics }: ReplayRig,
  { facts }: FactsReader,
  signal: AbortSignal,
): Promise<{ at: number; owner: ErasableCall }[]> {
  const found: { at: number; owner: ErasableCall }[] = []
  for (const topic of facts.heldTopics()) {
    if (topic === topics.calls) continue
    const spans = (await source.spans(topic)).flatMap(({ partition, low }) => {
      const held = facts.heldIn(topic, partition)
      return held ? [{ partition, low: Math.max(low, held.first), high: held.end }] : []
    })
    for await (const { partition, offset, key, value, timestamp } of source.read(topic, spans, signal)) {
      if (!facts.heldIn(topic, partition)!.has(offset)) continue
      const retry = await source.retry(value)
      if (retry !== null && isRun(retry))
        for await (const { call, appendedAt } of wantedOfRun(retry, job, source, signal)) {
          const { sourceId, type } = call
          found.push({ at: appendedAt, owner: { sourceId, type, userIds: usersOf(call), appendedAt } })
        }
      else if (retry && isRetryWanted(retry, job)) {
        const owner = erasableDelivery(retry, key && Buffer.from(key).toString('utf8'), retry.scheduledAt)
        found.push({ at: retry.origin.appendedAt ?? timestamp, owner })
      }
    }
  }
  return found
}
