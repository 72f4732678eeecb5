import { silentLogger, type Patch } from './patch.ts'

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
  joinAndSync(): Promise<void>
  commitOffsets: CommitOffsets
}

const file = 'src/consumer/consumerGroup'

/**
 * Once a member has asked to join, the broker accepts no commit from it until all members have joined, and none of the
 * generation before at all. kafkajs asks as soon as it learns of a rebalance; its REBALANCING event does not wait for listeners.
 * What was finished since the last commit is then done again by the next owner of the partition (tulios/kafkajs issues
 * 28, 922 and 1046).
 *
 * Now an assigner may hold the request back, and learns how to commit once it has joined. Assigners are used since each group keeps them as they were given.
 */
export const waitBeforeJoin: Patch = {
  name: 'wait-before-join',
  targets: [
    {
      file,
      members: { 'prototype.joinAndSync': 'function', 'prototype.commitOffsets': 'function' },
      fields: { args: [{ logger: silentLogger, assigners: [] }], kinds: { assigners: 'array' } },
    },
  ],
  install(load) {
    const { prototype } = load(file) as { prototype: ConsumerGroup }
    const { joinAndSync } = prototype
    prototype.joinAndSync = async function (this: ConsumerGroup) {
      const waits = this.assigners.map((assigner) => assigner.beforeJoin?.())
      const after = await Promise.all(waits)
      try {
        await joinAndSync.call(this)
      } finally {
        const commit: CommitOffsets = (offsets) => this.commitOffsets(offsets)
        for (const done of after) done?.(commit)
      }
    }
  },
}
