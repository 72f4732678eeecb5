import type { Admin, Kafka } from 'kafkajs'
import type { ReplayedRecord, ReplayTopic } from '../../../console/replays/replay-source.ts'
import { replayTier, type TopicNames } from '../../../core/topics.ts'
import type { EncodedRecord } from '../../../forwarder/settle/record-sink.ts'
import type { RecordCodec } from '../../schema-registry/record-codec.ts'
import type { KeyedRetryDelivery } from '../../schema-registry/delivery-fields.ts'
import { LastingAdmin } from '../admin/with-admin.ts'
import { commitsOf } from '../group/committed-offsets.ts'
import { Brokers } from '../link/brokers.ts'
import type { ProducerLog } from '../producer/failing-writes.ts'
import { encodeRecord } from '../producer/plain-record.ts'
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

/** Writes to the replays' topic, and back to the topics of what never became a delivery. */
export function openReplayTopic({ kafka, topics, groupId, codec, log }: ReplayTopicOptions): ReplayTopic {
  const topic = topics.retry(replayTier.name)
  const sink = new KafkaSink(kafka, log, () => {})
  const encoder = new RecordEncoder(codec)
  const encode = (record: ReplayedRecord): EncodedRecord => {
    if (!('delivery' in record)) return encodeRecord(record)
    const { key, delivery, headers } = record
    return encoder.encode(key, { ...delivery, key }, headers)
  }
  const admin = new LastingAdmin(kafka)
  const brokers = new Brokers(kafka)
  const lagOf = async (asked: Admin): Promise<number> => {
    const commits = await commitsOf(asked, `${groupId}.retries`, [topic])
    const ranges = await topicRanges(brokers, [topic])
    return ranges.reduce((sum, { partition, low, high }) => {
      const position = commits.find((commit) => commit.partition === partition)?.position ?? low
      return sum + Math.max(0, high - Math.max(position, low))
    }, 0)
  }
  return {
    async append(records) {
      const tooLarge: ReplayedRecord[] = []
      const byTopic = Map.groupBy(records, (record) => ('delivery' in record ? topic : record.topic))
      for (const [to, its] of byTopic) {
        const encoded = new Map(its.map((record) => [encode(record), record]))
        for (const each of await sink.append(to, [...encoded.keys()])) tooLarge.push(encoded.get(each)!)
      }
      return tooLarge
    },
    lag: () => admin.use(lagOf),
    close() {
      sink.close()
      brokers.close()
      void admin.close()
    },
  }
}
