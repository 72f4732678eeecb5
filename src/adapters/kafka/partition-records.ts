/**
 * Records of one partition that are encoded already. kafkajs takes them for one message, so that it has little to sort
 * and to copy; `encodeProduce` knows them for what they are.
 */
export abstract class PartitionRecords {
  readonly partition: number
  /** kafkajs wants messages to have one. */
  readonly value = Buffer.alloc(0)

  constructor(partition: number) {
    this.partition = partition
  }

  /** kafkajs's own encoding, which would make one record of them, asks for it first. */
  get timestamp(): never {
    throw new Error('records that are encoded already can only be sent by encodeProduce')
  }

  abstract readonly count: number
  /** Those of `copyTo`. */
  abstract readonly bytes: number
  /** Copies them as they stand in a record batch behind its head (KIP-98), and gives their number of bytes. */
  abstract copyTo(target: Buffer, at: number): number
}
