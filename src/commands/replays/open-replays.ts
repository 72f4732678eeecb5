import { randomBytes, randomInt } from 'node:crypto'
import type { Admin } from 'kafkajs'
import { withAdmin } from '../../adapters/kafka/admin/with-admin.ts'
import { commitsOf } from '../../adapters/kafka/group/committed-offsets.ts'
import { GroupLease } from '../../adapters/kafka/group/lease.ts'
import { commitOf, progressOf } from '../../adapters/kafka/replay/replay-progress.ts'
import { openReplaySource } from '../../adapters/kafka/replay/replay-source.ts'
import { openReplayTopic } from '../../adapters/kafka/replay/replay-topic.ts'
import { LedgerPasses } from '../../console/replays/ledger-passes.ts'
import type { ReplayRig } from '../../console/replays/replay-source.ts'
import { replayIdPrefix } from '../../core/delivery/delivery.ts'
import { partPermissions } from '../../core/permissions.ts'
import { replayTier, tierOfTopic } from '../../core/topics.ts'
import { deadLetterSource } from '../dead-letters/open-dead-letters.ts'
import type { Context } from '../context.ts'

/** Replays, for commands and consoles alike. Holds nothing open between calls. */
export function openReplays(
  deployment: Context,
  settings: ReplayRig['settings'],
  erasures: ReplayRig['erasures'],
): ReplayRig {
  const { config, kafka, log, topics, codecs } = deployment
  const { groupId, topicPrefix, sessionTimeoutMs } = config
  /** Its leader runs the replay, and its offsets are how far it is. Deployments that share a GROUP_ID are apart. */
  const groupOf = (id: string): string => `${groupId}.replay.${topicPrefix}${id}`
  const codec = codecs.retries(replayTier.name)
  const source = openReplaySource({
    ...{ kafka, topics, groupId, codecs, log },
    deadLetters: deadLetterSource(deployment),
  })
  return {
    settings,
    topics,
    groupId,
    source,
    ledger: new LedgerPasses(source, topics.deliveries),
    async progress(id) {
      const look = async (admin: Admin) => {
        const all = await admin.listTopics()
        const sources = [topics.calls, topics.deadLetters]
        const read = all.filter((topic) => sources.includes(topic) || tierOfTopic(topics, topic) !== null)
        return commitsOf(admin, groupOf(id), read)
      }
      const needs = partPermissions('console', { topics, tiers: [], groupId })
      const commits = await withAdmin(kafka, look, { needs })
      return commits.map(progressOf).filter((progress) => progress !== null)
    },
    async acquire(id) {
      const lease = await GroupLease.acquire({
        kafka,
        groupId: groupOf(id),
        topic: topics.calls,
        sessionTimeoutMs,
        what: `replay ${id}`,
        busy: `replay ${id}`,
      })
      return {
        check: () => lease.check(),
        release: () => lease.release(),
        commit: (progress) => lease.commit(progress.map(commitOf)),
      }
    },
    async openTopic() {
      await codec.ready()
      return openReplayTopic({ kafka, topics, groupId, codec, log })
    },
    erasures,
    newId: (at) => `${replayIdPrefix}${at.toString(36)}-${randomBytes(4).toString('hex')}`,
    random: () => randomInt(2 ** 32),
    log,
    now: Date.now,
  }
}
