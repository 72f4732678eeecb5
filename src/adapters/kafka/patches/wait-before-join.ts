import { silentLogger, type Patch } from './patch.ts'

/** A partition assigner that takes part in the moment before its member joins. */
export interface JoinAware {
  /** What it resolves to is called once the member has joined, or could not. Must not reject. */
  beforeJoin(): Promise<() => void>
}

interface ConsumerGroup {
  assigners: Partial<JoinAware>[]
  joinAndSync(): Promise<void>
}

const file = 'src/consumer/consumerGroup'

/**
 * Once a member has asked to join, the broker accepts no commit from it until all members have joined, and none of the
 * generation before at all. kafkajs asks as soon as it learns of a rebalance; its REBALANCING event waits for nobody.
 * What was finished since the last commit is then done again by the next owner of the partition (tulios/kafkajs issues
 * 28, 922 and 1046).
 *
 * Now an assigner may hold the request back. Assigners are used since each group keeps them as they were given.
 */
export const waitBeforeJoin: Patch = {
  name: 'wait-before-join',
  targets: [
    {
      file,
      members: { 'prototype.joinAndSync': 'function' },
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
        for (const done of after) done?.()
      }
    }
  },
}
