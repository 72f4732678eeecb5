import type { DeliveryEvent } from '../../core/ledger/delivery-event.ts'
import type { Log } from '../log.ts'
import type { OutgoingRecord } from '../settle/record-publisher.ts'
import type { EncodedRecord } from '../settle/record-sink.ts'
import type { MemoryBudget } from '../send/memory-budget.ts'

export interface LedgerRecordParts {
  topic: string
  budget: MemoryBudget
  log: Pick<Log, 'error'>
}

/** An encoded ledger event. No other process would write it. */
export class LedgerRecord implements OutgoingRecord {
  readonly type: DeliveryEvent['type']
  readonly messageId: string | null
  readonly block: Buffer
  readonly start: number
  readonly end: number
  readonly #parts: LedgerRecordParts

  constructor(
    parts: LedgerRecordParts,
    { type, messageId }: Pick<DeliveryEvent, 'type' | 'messageId'>,
    { block, start, end }: EncodedRecord,
  ) {
    this.#parts = parts
    this.type = type
    this.messageId = messageId
    this.block = block
    this.start = start
    this.end = end
  }

  /** Of the memory budget. */
  get bytes(): number {
    return this.end - this.start
  }

  get ownership(): 'owned' {
    return 'owned'
  }

  dropped(): void {}

  done(): void {
    this.#parts.budget.releaseBytes(this.bytes)
  }

  tooLarge(): void {
    const { topic, budget, log } = this.#parts
    const { type, messageId } = this
    budget.releaseBytes(this.bytes)
    log.error({ topic, type, messageId }, 'the ledger refuses a record')
  }
}
