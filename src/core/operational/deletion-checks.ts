import type { DeliveryEvent, DispositionLabel } from '../ledger/delivery-event.ts'

/** `delete-<request id>-<hash>`: the messageId of a delete call (core/erasure/deletion.ts). */
const deleteCallId = /^delete-(.+)-[\w-]{27}$/

/** What ends a delivery; everything else goes on. */
const final: ReadonlySet<DispositionLabel> = new Set(['delivered', 'dead_lettered', 'skipped', 'erased'])

/**
 * Which deletion requests may be finished: some of their delete calls were delivered, or finally were not, and nothing
 * more happened for a while. Whether they are has to be looked up, which reads much, and so is not done for each call.
 */
export class DeletionChecks {
  /** By request, when the last of its calls was settled, epoch ms by this process's clock. */
  readonly #settledAt = new Map<string, number>()
  readonly #quietMs: number

  constructor(quietMs: number, requestIds: Iterable<string> = [], now = 0) {
    this.#quietMs = quietMs
    for (const id of requestIds) this.#settledAt.set(id, now)
  }

  get requestIds(): Iterable<string> {
    return this.#settledAt.keys()
  }

  take({ type, messageId, disposition }: DeliveryEvent, now: number): void {
    if (type !== 'disposition' || disposition === null || !final.has(disposition)) return
    const requestId = messageId === null ? undefined : deleteCallId.exec(messageId)?.[1]
    if (requestId !== undefined) this.#settledAt.set(requestId, now)
  }

  due(now: number): string[] {
    return [...this.#settledAt].filter(([, at]) => now >= at + this.#quietMs).map(([id]) => id)
  }

  /** It was looked up: it is finished, or another of its calls will be settled. */
  checked(requestId: string): void {
    this.#settledAt.delete(requestId)
  }
}
