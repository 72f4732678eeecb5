import type { DeliveryEvent } from '../core/delivery-event.ts'
import type { Outgoing } from './hand-over.ts'
import type { EncodedRecord } from './ports.ts'
import type { Room } from './room.ts'

export interface LedgerRecordParts {
  topic: string
  room: Room
  log: { error(fields: object, message: string): void }
}

/** An event in the bytes that are to be written of it. Nobody else would write it. */
export class LedgerRecord implements Outgoing {
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

  /** Of memory. */
  get bytes(): number {
    return this.end - this.start
  }

  get standing(): 'ours' {
    return 'ours'
  }

  dropped(): void {}

  done(): void {
    this.#parts.room.release(this.bytes)
  }

  tooLarge(): void {
    const { topic, room, log } = this.#parts
    const { type, messageId } = this
    room.release(this.bytes)
    log.error({ topic, type, messageId }, 'the ledger refuses a record')
  }
}
