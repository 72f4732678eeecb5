import type { Admin, Kafka } from 'kafkajs'
import type { ReplayTopic } from '../../../console/replays/replay-source.ts'
import { replayTier, type TopicNames } from '../../../core/topics.ts'
import type { RecordCodec } from '../../schema-registry/record-codec.ts'
import type { KeyedRetryDelivery } from '../../schema-registry/delivery-fields.ts'
import { LastingAdmin } from '../admin/with-admin.ts'
import { commitsOf } from '../group/committed-offsets.ts'
import type { ProducerLog } from '../producer/failing-writes.ts'
import { topicRanges } from '../read/topic-offsets.ts'
import { RecordEncoder } from '../wire/record-encoder.ts'
import { KafkaSink } from '../write/record-sink.ts'

export interface ReplayTopicOptions {
  kafka: Kafka
  topics: TopicNames
  /** Of the forwarders' calls. */
  groupId: string
  /** Ready. */
  codec: RecordCodec<KeyedRetryDelivery>
  log: ProducerLog
}

/** Writes to the replays' topic. */
export function openReplayTopic({ kafka, topics, groupId, codec, log }: ReplayTopicOptions): ReplayTopic {
  const topic = topics.retry(replayTier.name)
  const sink = new KafkaSink(kafka, log, () => {})
  const encoder = new RecordEncoder(codec)
  const admin = new LastingAdmin(kafka)
  const lagOf = async (asked: Admin): Promise<number> => {
    const commits = await commitsOf(asked, `${groupId}.retries`, [topic])
    const ranges = await topicRanges(asked, [topic])
    return ranges.reduce((sum, { partition, low, high }) => {
      const position = commits.find((commit) => commit.partition === partition)?.position ?? low
      return sum + Math.max(0, high - Math.max(position, low))
    }, 0)
  }
  return {
    async append(records) {
      const encoded = new Map(
        records.map((record) => {
          const { key, delivery, headers } = record
          return [encoder.encode(key, { ...delivery, key }, headers), record]
        }),
      )
      return (await sink.append(topic, [...encoded.keys()])).map((tooLarge) => encoded.get(tooLarge)!)
    },
    lag: () => admin.use(lagOf),
    close() {
      sink.close()
      void admin.close()
    },
  }
}
