import { methodPatch } from './patch.ts'

/** Commits once, under the generation of the call; rejects when the coordinator refuses. */
export type CommitOffsets = (offsets: {
  topics: { topic: string; partitions: { partition: number; offset: string; metadata?: string }[] }[]
}) => Promise<void>

/** A partition assigner that takes part in the moment before its member joins. */
export interface JoinAware {
  /**
   * What it resolves to is called once the member has joined, or could not, with the way to commit, which kafkajs
   * gives out with batches only: a member that has nothing to fetch may have something to commit. Must not reject.
   */
  beforeJoin(): Promise<(commit: CommitOffsets) => void>
}

interface ConsumerGroup {
  assigners: Partial<JoinAware>[]
  commitOffsets: CommitOffsets
}

/**
 * Once a member has asked to join, the broker accepts no commit from it until all members have joined, and none of the
 * generation before at all. kafkajs asks as soon as it learns of a rebalance; its REBALANCING event does not wait for
 * listeners. What was finished since the last commit is then done again by the next owner of the partition
 * (tulios/kafkajs issues 28, 922 and 1046).
 *
 * Now an assigner may hold the request back, and learns how to commit once it has joined. Assigners are used since each
 * group keeps them as they were given.
 */
export const waitBeforeJoin = methodPatch({
  name: 'wait-before-join',
  file: 'src/consumer/consumerGroup',
  method: 'joinAndSync',
  calls: ['commitOffsets'],
  fields: { assigners: 'array' },
  madeWith: { assigners: [] },
  async instead(this: ConsumerGroup, joinAndSync: () => Promise<void>) {
    const waits = this.assigners.map((assigner) => assigner.beforeJoin?.())
    const after = await Promise.all(waits)
    try {
      await joinAndSync.call(this)
    } finally {
      const commit: CommitOffsets = (offsets) => this.commitOffsets(offsets)
      for (const done of after) done?.(commit)
    }
  },
})
