import type { PartitionWrite } from './partition-write.ts'
import type { SequencedBatch, TopicBatches } from './produce-request.ts'

/** How long a broker may wait for its replicas. A broker that died leaves the in-sync set after 9 s at most by default. */
const maxAckMs = 12_000
/** So that the broker's own verdict arrives before the caller's deadline. */
const answerMarginMs = 250

/** How long the broker may wait for its replicas, in ms: as long as the most patient of them can. */
export function ackMs(sent: readonly PartitionWrite[]): number {
  const now = performance.now()
  let ms = 0
  for (const { deadline } of sent)
    ms = Math.max(ms, deadline === null ? maxAckMs : deadline - now - answerMarginMs)
  return Math.max(1, Math.min(maxAckMs, Math.round(ms)))
}

/** The batches by topic, in the order of the first of each. */
export function byTopic(sent: readonly PartitionWrite[]): TopicBatches[] {
  const topics: { topic: string; batches: SequencedBatch[] }[] = []
  for (const { topic, batch, sequence } of sent) {
    const sequenced = { batch, sequence: sequence! }
    const last = topics.findLast((one) => one.topic === topic)
    if (last !== undefined) last.batches.push(sequenced)
    else topics.push({ topic, batches: [sequenced] })
  }
  return topics
}
