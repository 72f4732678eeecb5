import type { EncodedRecord } from '../../../forwarder/settle/record-publisher.ts'
import { writeRecordHead } from './record-bytes.ts'
import { sizeOfVarint } from './varint.ts'
import type { PartitionBatch } from '../producer/partition-batch.ts'

/** Attributes and timestamp delta. */
const fixedHeadBytes = 2

/** Records of one partition, each in its block. */
export class RecordList implements PartitionBatch {
  readonly partition: number
  readonly #records: EncodedRecord[] = []
  #bytes = 0

  constructor(partition: number) {
    this.partition = partition
  }

  get records(): readonly EncodedRecord[] {
    return this.#records
  }

  get count(): number {
    return this.#records.length
  }

  get bytes(): number {
    return this.#bytes
  }

  append(record: EncodedRecord): void {
    const size = sizeBehindLength(record, this.#records.length)
    this.#bytes += sizeOfVarint(size) + size
    this.#records.push(record)
  }

  copyTo(target: Buffer, at: number): number {
    const begin = at
    for (let index = 0; index < this.#records.length; index++) {
      const record = this.#records[index]!
      at = writeRecordHead(target, at, sizeBehindLength(record, index), index)
      at += record.block.copy(target, at, record.start, record.end)
    }
    return at - begin
  }
}

const sizeBehindLength = ({ start, end }: EncodedRecord, index: number): number =>
  fixedHeadBytes + sizeOfVarint(index) + end - start
