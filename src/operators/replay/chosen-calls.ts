import type { AnalyticsCall } from '../../core/call/analytics-call.ts'
import type { DeferredRun } from '../../core/delivery/deferred-run.ts'
import type { RetryDelivery } from '../../core/delivery/delivery.ts'
import type { PlannedDestination } from '../../core/ledger/delivery-event.ts'
import type { ReplayFacts } from '../../core/replay/replay-facts.ts'
import type { CallReplay, ReplayJob, ReplayKind } from '../../core/replay/replay-job.ts'
import { isChosen, replayPlan } from '../../core/replay/replayed-delivery.ts'
import type { Destination, SettingsState } from '../../core/settings/settings.ts'
import { isInRuns } from '../../core/offsets/offset-runs.ts'
import type { StoredRecord } from '../dead-letters/dead-letters.ts'
import type { PartitionSpan, ReplaySource } from './rig.ts'

export interface LocatedCall {
  call: AnalyticsCall
  place: { topic: string; partition: number; offset: number }
  appendedAt: number
}

/** The deliveries of a call that are of a kind that is asked for. */
export function chosenOf(
  { call, place, appendedAt }: LocatedCall,
  job: CallReplay,
  destination: Destination,
  settings: SettingsState,
  facts: ReplayFacts,
): { line: PlannedDestination; kind: ReplayKind }[] {
  if (facts.isBlocked(place)) return []
  return replayPlan(call, job, destination, settings).flatMap((line) => {
    const kind = facts.kindOf(call, line, place, appendedAt)
    return job.only.includes(kind) ? [{ line, kind }] : []
  })
}

/** Whether a retry that was held is one of those that are asked for. */
export function isRetryWanted(
  { destinationId, messageId, type, userIds, origin }: RetryDelivery,
  job: CallReplay,
): boolean {
  if (destinationId !== job.destinationId) return false
  if (job.pauseId !== null) return true
  const at = origin.appendedAt ?? job.since
  if (at < job.since || at >= job.until) return false
  if (job.messageId !== null && job.messageId !== messageId) return false
  if (job.user !== null && !userIds.includes(job.user)) return false
  // The name of an event stands in the body only: a retry is not looked into.
  return (job.types === null || job.types.includes(type)) && job.events === null
}

/** The calls of a run that was held, as far as they are there and are asked for. */
export async function* wantedOfRun(
  run: DeferredRun,
  job: CallReplay,
  source: Pick<ReplaySource, 'read' | 'call'>,
  signal: AbortSignal,
): AsyncIterable<LocatedCall & { record: StoredRecord }> {
  if (run.destinationId !== job.destinationId) return
  const { topic, partition, runs } = run.calls
  const span = { partition, low: runs[0]!.start, high: runs.at(-1)!.end }
  for await (const record of source.read(topic, [span], signal)) {
    const { offset, timestamp: appendedAt, value } = record
    if (!isInRuns(runs, offset)) continue
    const call = await source.call(value)
    if (call === null) continue
    const isAsked = appendedAt >= job.since && appendedAt < job.until && isChosen(call, job)
    if (job.pauseId !== null || isAsked)
      yield { call, place: { topic, partition, offset }, appendedAt, record }
  }
}

/** Why nothing can be sent now, in a word; null when it can. Dead letters of several destinations do not wait. */
export function waitsFor(
  job: ReplayJob,
  { destinations }: Pick<SettingsState, 'destinations'>,
): 'disabled' | 'paused' | null {
  const destination = job.deadLetters === null ? destinations.get(job.destinationId) : undefined
  if (destination?.enabled === false) return 'disabled'
  return destination?.pause ? 'paused' : null
}

/** Of each partition, what was appended from a time on and before another. */
export async function spansBetween(
  source: ReplaySource,
  topic: string,
  since: number,
  until: number,
): Promise<PartitionSpan[]> {
  const [from, to] = [await source.spans(topic, since), await source.spans(topic, until)]
  return from.map(({ partition, low }) => ({
    partition,
    low,
    high: to.find((each) => each.partition === partition)?.low ?? low,
  }))
}
