import type { Admin } from 'kafkajs'
import { withAdmin } from '../../adapters/kafka/admin/with-admin.ts'
import { CommittedOffsets, forwardersCommits } from '../../adapters/kafka/group/committed-offsets.ts'
import { readBetween } from '../../adapters/kafka/read/read-range.ts'
import { fetchRanges } from '../../adapters/kafka/read/topic-offsets.ts'
import { readable } from '../../adapters/schema-registry/readable.ts'
import type { Context } from '../../cli/context.ts'
import { countOf, isRun } from '../../core/delivery/deferred-run.ts'
import { partPermissions } from '../../core/permissions.ts'
import { replayTier } from '../../core/topics.ts'
import { messageOf } from '../../errors.ts'
import { maxWaitingRead, WaitingInTiers, type WaitingCounts } from './waiting.ts'

/** Deliveries in retry tiers that no forwarder has finished, by destination: counted where they lie. */
export function openWaiting({ config, kafka, log, topics, codecs }: Context): WaitingInTiers {
  const { groupId } = config
  const replays = topics.retry(replayTier.name)
  const codec = codecs.retries(replayTier.name)
  const needs = partPermissions('console', { topics, tiers: [], groupId })
  const read = async (): Promise<WaitingCounts | null> => {
    const look = (admin: Admin) => forwardersCommits(kafka, admin, groupId, topics)
    const { tiers, commits } = await withAdmin(kafka, look, { needs })
    const waited = tiers.filter((topic) => topic !== replays)
    const finished = new CommittedOffsets(commits)
    const positions = new Map(commits.map((each) => [`${each.topic}/${each.partition}`, each.position ?? 0]))
    const ranges = (await fetchRanges(kafka, waited)).map((range) => ({
      ...range,
      low: Math.max(range.low, positions.get(`${range.topic}/${range.partition}`) ?? 0),
    }))
    if (ranges.reduce((sum, { low, high }) => sum + Math.max(0, high - low), 0) > maxWaitingRead) return null
    const counts = new Map<string, number>()
    for (const [topic, its] of Map.groupBy(ranges, (range) => range.topic))
      await readBetween(its, {
        ...{ kafka, topic, log },
        onRecord: async ({ partition, offset, value }) => {
          if (finished.isFinished({ topic, partition, offset })) return
          const record = await readable(() => codec.decode(value))
          if (record === null) return
          const count = isRun(record) ? countOf(record) : 1
          counts.set(record.destinationId, (counts.get(record.destinationId) ?? 0) + count)
        },
      })
    return counts
  }
  return new WaitingInTiers(
    () =>
      read().catch((error: unknown) => {
        log.debug({ error: messageOf(error) }, 'what waits in the tiers cannot be counted')
        return null
      }),
    Date.now,
  )
}
