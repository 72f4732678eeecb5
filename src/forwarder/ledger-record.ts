import type { DeliveryEvent } from '../core/delivery-event.ts'
import type { Outgoing } from './hand-over.ts'
import type { Room } from './room.ts'

export interface LedgerRecordParts {
  topic: string
  room: Room
  log: { error(fields: object, message: string): void }
}

/** An event in the bytes that are to be written of it. Nobody else would write it. */
export class LedgerRecord implements Outgoing {
  readonly type: DeliveryEvent['type']
  readonly key: string | null
  readonly value: Buffer
  readonly #parts: LedgerRecordParts

  constructor(parts: LedgerRecordParts, type: DeliveryEvent['type'], key: string | null, value: Buffer) {
    this.#parts = parts
    this.type = type
    this.key = key
    this.value = value
  }

  get standing(): 'ours' {
    return 'ours'
  }

  dropped(): void {}

  done(): void {
    this.#parts.room.release(this.value.length)
  }

  tooLarge(): void {
    const { topic, room, log } = this.#parts
    room.release(this.value.length)
    log.error({ topic, type: this.type, key: this.key }, 'the ledger refuses a record')
  }
}
