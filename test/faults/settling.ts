import { until } from '../support/until.ts'
import { retryTopics } from '../../src/adapters/kafka/admin/topics.ts'
import type { CommitWatch } from './watch/commit-watch.ts'
import type { Findings } from './evidence/findings.ts'
import type { Rig } from './rig.ts'

/** Waits until both groups have committed everything; says of what they have not. */
export async function settle(
  rig: Rig,
  watch: CommitWatch,
  withinMs: number,
  findings: Findings,
  signal: AbortSignal,
): Promise<void> {
  let open: string[] = []
  const look = async (): Promise<boolean> => {
    const found = await openPartitions(rig, watch).catch(() => null)
    // Just after the last fault the runner may not know who leads.
    if (found === null) return false
    open = found
    return open.length === 0
  }
  let settledSince: number | null = null
  try {
    await until(async () => {
      if (signal.aborted) return true
      if (!(await look())) settledSince = null
      else settledSince ??= performance.now()
      await new Promise((resolve) => setTimeout(resolve, 500))
      // A retry that is being published just then is in no topic yet, but its record is not committed either.
      return settledSince !== null && performance.now() - settledSince > 1_500
    }, withinMs)
  } catch {
    for (const each of open) findings.add('not seen through', each)
  }
}

async function openPartitions(rig: Rig, watch: CommitWatch): Promise<string[]> {
  const tiers = await retryTopics(rig.admin, rig.config.topicPrefix)
  const found: string[] = []
  for (const topic of [rig.topics.calls, ...tiers.map((tier) => tier.topic)]) {
    for (const { partition, high } of await rig.admin.fetchTopicOffsets(topic)) {
      const position = watch.position(topic, partition)
      if (position < Number(high))
        found.push(`${topic}/${partition} is committed up to ${position} of ${high}`)
    }
  }
  return found
}
