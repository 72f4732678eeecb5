import { methodPatch } from './patch.ts'

interface OffsetManager {
  autoCommit: boolean
  cluster: {
    fetchTopicsOffset(topics: unknown[]): Promise<{ partitions: { offset: string }[] }[]>
  }
  topicConfigurations: Record<string, object>
  resolvedOffsets: Record<string, Record<number, string>>
}

interface Place {
  topic: string
  partition: number
}

/**
 * Where the next offset to fetch is out of range, since retention has removed it, kafkajs commits `earliest` (-2) in
 * place of the group's offset, even with `autoCommit: false`. Now a consumer that does not commit by itself reads on at
 * the log's start (`fromBeginning: true`) and commits nothing.
 */
export const keepCommitWhenOutOfRange = methodPatch({
  name: 'keep-commit-when-out-of-range',
  file: 'src/consumer/offsetManager',
  method: 'setDefaultOffset',
  fields: {
    autoCommit: 'boolean',
    cluster: 'object',
    topicConfigurations: 'object',
    resolvedOffsets: 'object',
  },
  madeWith: { cluster: {}, memberAssignment: {}, autoCommit: false, topicConfigurations: {} },
  elsewhere: [{ file: 'src/cluster', members: { 'prototype.fetchTopicsOffset': 'function' } }],
  async instead(this: OffsetManager, commitDefault: (at: Place) => Promise<void>, at: Place) {
    if (this.autoCommit) return commitDefault.call(this, at)
    const { topic, partition } = at
    const asked = { topic, partitions: [{ partition }], ...this.topicConfigurations[topic] }
    const [found] = await this.cluster.fetchTopicsOffset([asked])
    this.resolvedOffsets[topic]![partition] = found!.partitions[0]!.offset
  },
})
