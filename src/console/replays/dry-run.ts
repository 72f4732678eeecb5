import { usersOf } from '../../core/call/analytics-call.ts'
import {
  replayKinds,
  type ReplayJob,
  type ReplayKind,
  type ReplayRange,
} from '../../core/replay/replay-job.ts'
import { termsFaults } from '../../core/replay/replay-rules.ts'
import { SettingsRefused } from '../settings-writer.ts'
import { chosenOf, isRetryWanted, spansBetween } from './chosen-calls.ts'
import { FactsReader } from './facts-reader.ts'
import { keptSince } from './kept-since.ts'
import { keyOfPlace, type ReplayRig } from './replay-source.ts'

type KindCounts = Record<ReplayKind, number>

export interface DryRunReport {
  destinationId: string
  since: number
  until: number
  keptSince: number | null
  only: readonly ReplayKind[]
  /** What would be sent. */
  counts: KindCounts
  erased: number
  /** Calls that the forwarders have not finished: a replay waits for them. */
  unfinished: number
  /** By the day (UTC) on which the call came in. */
  days: ({ day: string } & KindCounts)[]
  /** Of `analytics.calls`. */
  partitions: ({ partition: number } & KindCounts)[]
}

const noCounts = (): KindCounts => ({ held: 0, skipped: 0, failed: 0, delivered: 0 })

/** What a replay would send, by what the ledger says now. Sends nothing. Throws SettingsRefused, as a start does. */
export async function dryRun(
  terms: ReplayRange,
  rig: ReplayRig,
  signal: AbortSignal,
  progress: (looked: number, total: number) => void,
): Promise<DryRunReport> {
  const { settings, source, topics } = rig
  await settings.catchUp(signal)
  const now = rig.now()
  const destination = settings.state.destinations.get(terms.destinationId)
  const faults = termsFaults(terms, destination, now)
  if (faults.length > 0) throw new SettingsRefused(faults)
  const job: ReplayJob = {
    ...terms,
    id: '',
    pauseId: null,
    createdAt: now,
    keptSince: await keptSince(terms.since, source, topics.calls, now, signal),
    state: 'running',
    changedAt: now,
    totals: null,
  }
  const committed = await source.committed()
  const spans = await spansBetween(source, topics.calls, job.since, job.until)
  const reader = new FactsReader(job, rig)
  await reader.readOn(signal)
  const erasures = await rig.erasures(signal)
  const days = new Map<string, KindCounts>()
  const partitions = new Map<number, KindCounts>(spans.map(({ partition }) => [partition, noCounts()]))
  const counts = noCounts()
  const count = (kind: ReplayKind, at: number, partition: number | null) => {
    counts[kind]++
    const day = new Date(at).toISOString().slice(0, 10)
    if (!days.has(day)) days.set(day, noCounts())
    days.get(day)![kind]++
    if (partition !== null) partitions.get(partition)![kind]++
  }
  const total = spans.reduce((sum, { low, high }) => sum + Math.max(0, high - low), 0)
  let [looked, erased, unfinished] = [0, 0, 0]
  const { state } = settings
  for await (const { partition, offset, timestamp, value } of source.read(topics.calls, spans, signal)) {
    if (++looked % 1_000 === 0) progress(looked, total)
    const call = await source.call(value)
    if (!call) continue
    const place = { topic: topics.calls, partition, offset }
    const chosen = chosenOf({ call, place, appendedAt: timestamp }, job, destination!, state, reader.facts)
    const { sourceId, type } = call
    if (offset >= (committed.get(keyOfPlace(place)) ?? 0)) unfinished++
    else if (chosen.length === 0) continue
    else if (erasures.covers({ sourceId, type, userIds: usersOf(call), appendedAt: timestamp })) erased++
    else for (const { kind } of chosen) count(kind, timestamp, partition)
  }
  signal.throwIfAborted()
  progress(looked, looked)
  if (job.only.includes('held'))
    for (const { at, partition } of await heldRetries(job, rig, reader, signal)) count('held', at, partition)
  return {
    destinationId: job.destinationId,
    since: job.since,
    until: job.until,
    keptSince: job.keptSince,
    only: replayKinds.filter((kind) => job.only.includes(kind)),
    counts,
    erased,
    unfinished,
    days: [...days].sort(([a], [b]) => (a < b ? -1 : 1)).map(([day, each]) => ({ day, ...each })),
    partitions: [...partitions]
      .sort(([a], [b]) => a - b)
      .map(([partition, each]) => ({ partition, ...each })),
  }
}

async function heldRetries(
  job: ReplayJob,
  { source, topics }: ReplayRig,
  { facts }: FactsReader,
  signal: AbortSignal,
): Promise<{ at: number; partition: number | null }[]> {
  const found: { at: number; partition: number | null }[] = []
  for (const topic of facts.heldTopics()) {
    if (topic === topics.calls) continue
    const spans = (await source.spans(topic)).flatMap(({ partition, low }) => {
      const held = facts.heldIn(topic, partition)
      return held ? [{ partition, low: Math.max(low, held.first), high: held.end }] : []
    })
    for await (const { partition, offset, value, timestamp } of source.read(topic, spans, signal)) {
      if (!facts.heldIn(topic, partition)!.has(offset)) continue
      const retry = await source.retry(value)
      if (retry && isRetryWanted(retry, job))
        found.push({ at: retry.origin.appendedAt ?? timestamp, partition: null })
    }
  }
  return found
}
