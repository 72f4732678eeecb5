/** Records of one partition that are encoded already and go into one record batch (KIP-98). */
export interface PartitionBatch {
  readonly partition: number
  /** Number of records; at least one, for Kafka takes no empty batch. */
  readonly count: number
  /** What `copyTo` writes. */
  readonly bytes: number
  /** Copies the records as they follow the head of a record batch, and returns the number of bytes. */
  copyTo(target: Buffer, at: number): number
}
