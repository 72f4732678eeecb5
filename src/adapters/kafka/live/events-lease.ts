import type { Kafka } from 'kafkajs'
import type { EventsLease, OperationalCheckpoint } from '../../../console/operational/ports.ts'
import { noState, smallerStates, type OperationalState } from '../../../core/operational/operational-fold.ts'
import type { Logger } from '../../log.ts'
import { withAdmin } from '../admin/with-admin.ts'
import { decodeCommitState, encodeCommitState } from '../group/commit-state.ts'
import { commitsOf } from '../group/committed-offsets.ts'
import { GroupLease } from '../group/lease.ts'
import { fetchRanges } from '../read/topic-offsets.ts'

/** The consumer group that stands for the lease, and whose commits say how far what was read. */
export interface EventsGroup {
  kafka: Kafka
  groupId: string
  topics: [string, ...string[]]
  sessionTimeoutMs: number
  log: Logger
}

/** Throws as `GroupLease.acquire`. */
export async function openEventsLease(group: EventsGroup, signal: AbortSignal): Promise<EventsLease> {
  const { kafka, groupId, sessionTimeoutMs, log } = group
  const [topic, ...committed] = group.topics
  const lease = await GroupLease.acquire({
    kafka,
    groupId,
    topic,
    committed,
    sessionTimeoutMs,
    what: 'operational events',
    busy: 'sending operational events',
    signal,
  })
  // Of one commit: it only has to differ from the one before.
  let number = Date.now()
  return {
    check: () => lease.check(),
    release: () => lease.release(),
    async commit({ positions, state }) {
      number++
      for (const [index, smaller] of smallerStates(state).entries()) {
        const pieces = encodeCommitState(JSON.stringify(smaller), number, positions.length)
        if (pieces === null) continue
        if (index > 0)
          log.warn('not all operational events can be kept for a crash: too many endpoints are down at once')
        return lease.commit(positions.map((position, at) => ({ ...position, metadata: pieces[at]! })))
      }
    },
  }
}

/** What was committed last; where there was nothing, the ends of all topics, and no state. */
export function readCheckpoint({ kafka, groupId, topics }: EventsGroup): Promise<OperationalCheckpoint> {
  return withAdmin(kafka, async (admin) => {
    const [commits, ranges] = await Promise.all([
      commitsOf(admin, groupId, [...topics]),
      fetchRanges(kafka, topics),
    ])
    const state = decodeCommitState(commits.map(({ metadata }) => metadata))
    const isNew = commits.every(({ position }) => position === null)
    const positions = ranges.map(({ topic, partition, low, high }) => {
      const commit = commits.find((each) => each.topic === topic && each.partition === partition)
      // A partition that was added since is read from its beginning.
      const offset = isNew ? high : Math.max(low, commit?.position ?? low)
      return { topic, partition, offset }
    })
    // A later version may have left something out, or an earlier one not have had it.
    const kept = state === null ? {} : (JSON.parse(state.text) as Partial<OperationalState>)
    return { positions, state: { ...noState, ...kept } }
  })
}
