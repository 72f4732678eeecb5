import type { Patch } from './patch.ts'

interface OffsetManager {
  autoCommit: boolean
  cluster: {
    fetchTopicsOffset(topics: unknown[]): Promise<{ partitions: { offset: string }[] }[]>
  }
  topicConfigurations: Record<string, object>
  resolvedOffsets: Record<string, Record<number, string>>
  setDefaultOffset(at: { topic: string; partition: number }): Promise<void>
}

const file = 'src/consumer/offsetManager'

/**
 * Where the next offset to fetch is out of range, since retention has removed it, kafkajs commits `earliest` (-2) in
 * place of the group's offset, even with `autoCommit: false`. Which offsets were finished, and from where on records are
 * missing, is then recorded nowhere. tulios/kafkajs pull request 1136 (from 1133) fixed it and was reverted by 1142.
 *
 * Now a consumer that does not commit by itself reads on at the log's start (`fromBeginning: true`) and commits nothing.
 */
export const keepCommitWhenOutOfRange: Patch = {
  name: 'keep-commit-when-out-of-range',
  targets: [
    {
      file,
      members: { 'prototype.setDefaultOffset': 'function' },
      fields: {
        args: [{ cluster: {}, memberAssignment: {}, autoCommit: false, topicConfigurations: {} }],
        kinds: {
          autoCommit: 'boolean',
          cluster: 'object',
          topicConfigurations: 'object',
          resolvedOffsets: 'object',
        },
      },
    },
    { file: 'src/cluster', members: { 'prototype.fetchTopicsOffset': 'function' } },
  ],
  install(load) {
    const { prototype } = load(file) as { prototype: OffsetManager }
    const commitDefault = prototype.setDefaultOffset
    prototype.setDefaultOffset = async function (this: OffsetManager, at) {
      if (this.autoCommit) return commitDefault.call(this, at)
      const { topic, partition } = at
      const asked = { topic, partitions: [{ partition }], ...this.topicConfigurations[topic] }
      const [found] = await this.cluster.fetchTopicsOffset([asked])
      this.resolvedOffsets[topic]![partition] = found!.partitions[0]!.offset
    }
  },
}
