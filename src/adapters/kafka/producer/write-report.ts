import { PostriderError } from '../../../errors.ts'
import type { PartitionBatch, AppendPlace } from './partition-write.ts'
import type { ProduceFailure } from './produce-errors.ts'

export interface WriteLimits {
  /** By `performance.now()`: what is not acknowledged by then has failed. Without one it is tried for ever. */
  deadline?: number
}

/** Records of one partition that all in-sync replicas have. */
export interface AcknowledgedBatch extends AppendPlace {
  batch: PartitionBatch
}

/** Records of one partition of which nothing is known, or that the broker has refused for good. */
export interface FailedBatch {
  batch: PartitionBatch
  failure: ProduceFailure
}

export interface WriteReport {
  acknowledged: AcknowledgedBatch[]
  failed: FailedBatch[]
}

/** Each record is either acknowledged or reported as failed: anything else is a bug by which records are lost. */
export function miscount(
  topic: string,
  records: number,
  { acknowledged, failed }: WriteReport,
): Error | null {
  let accounted = 0
  for (const { batch } of acknowledged) accounted += batch.count
  for (const { batch } of failed) accounted += batch.count
  if (accounted === records) return null
  return new PostriderError(
    'invariant',
    `a bug: of ${records} records for ${topic} ${accounted} are accounted for by Kafka's answers`,
  )
}
