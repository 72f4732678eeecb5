import { readBetween } from '../../adapters/kafka/read/read-range.ts'
import { fetchRange } from '../../adapters/kafka/read/topic-offsets.ts'
import type { Context } from '../../cli/context.ts'
import { MembershipCalls } from '../../core/audience/membership.ts'
import { checkCall } from '../../core/call/check-call.ts'
import type { SettingsState } from '../../core/settings/settings.ts'
import { PlanDraft } from '../../core/tracking-plan/draft.ts'
import type { DraftPlan } from './plans.ts'

/** Records that are looked at, of all sources: a second or two of CPU. */
const maxRecords = 100_000

/** Drafts plans from the calls' topic. @param mostRecords that are looked at */
export function openDrafts(
  { kafka, log, topics, codecs }: Context,
  settings: { readonly state: SettingsState },
  mostRecords = maxRecords,
): DraftPlan {
  return async (sourceId, since, { hasContext, signal, progress }) => {
    const topic = topics.calls
    const ranges = await fetchRange(kafka, topic, since)
    const total = ranges.reduce((sum, { low, high }) => sum + Math.max(0, high - low), 0)
    const share = Math.ceil(mostRecords / Math.max(1, ranges.length))
    const newest = ranges.map(({ partition, low, high }) => ({
      ...{ partition, high },
      low: Math.max(low, high - share),
    }))
    const { computations } = settings.state
    const notifications = new MembershipCalls(computations.values())
    const draft = new PlanDraft({ hasContext })
    const most = newest.reduce((sum, { low, high }) => sum + Math.max(0, high - low), 0)
    /** Partitions of which older records are left out, until their first one is read. */
    const cut = new Set(
      newest.filter(({ low }, index) => low > ranges[index]!.low).map(({ partition }) => partition),
    )
    let [looked, lookedSince] = [0, since]
    await readBetween(newest, {
      ...{ kafka, topic, log, signal },
      async onRecord({ partition, value, timestamp }) {
        progress(++looked, most)
        if (cut.delete(partition)) lookedSince = Math.max(lookedSince, timestamp)
        const found = await codecs.calls.read(value)
        const call = found && found.sourceId === sourceId ? checkCall(found).call : null
        if (call && !notifications.has(call)) draft.add(call)
      },
    })
    signal.throwIfAborted()
    return { ...draft.plan(), looked, total, lookedSince }
  }
}
