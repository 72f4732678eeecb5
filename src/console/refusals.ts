import { leadingCode, type Fault } from '../core/settings/fault.ts'
import { PostriderError } from '../errors.ts'

/** A command that was refused: `usage`, `not_found` or `conflict`, with every fault in the message. */
export class SettingsRefused extends PostriderError {
  override name = 'SettingsRefused'
  readonly faults: readonly Fault[]

  constructor(faults: readonly Fault[]) {
    super(leadingCode(faults), faults.map(({ message }) => message).join('; '))
    this.faults = faults
  }
}

/** An Idempotency-Key came with another request before. */
export class RequestKeyReused extends PostriderError {
  override name = 'RequestKeyReused'

  constructor() {
    super('conflict', 'this Idempotency-Key came with another request before: a new request needs a new key')
  }
}
