import type { ErasableCall } from '../../core/erasure/erasures.ts'
import { PostriderError } from '../../errors.ts'
import type { DeadLetterStore, StoredDeadLetter } from './dead-letter-store.ts'

/** The users erased by deletion requests, as far as folded. */
export interface KnownErasures {
  covers(call: ErasableCall): boolean
}

/**
 * The same dead letters without those that a deletion request covers: they are as good as gone, and are neither
 * listed nor shown nor replayed (docs/privacy.md).
 *
 * @param erasures asked before each reading: resolves once all erasures are folded that there are at the call
 */
export function withoutErased(
  store: DeadLetterStore,
  erasures: (signal?: AbortSignal) => Promise<KnownErasures>,
): DeadLetterStore {
  return {
    async *all(options = {}) {
      const known = await erasures(options.signal)
      for await (const stored of store.all(options)) if (!known.covers(stored.owner)) yield stored
    },
    async byId(id, signal) {
      const [known, found] = [await erasures(signal), await store.byId(id, signal)]
      const left = found.filter((stored: StoredDeadLetter) => !known.covers(stored.owner))
      if (left.length > 0) return left
      throw new PostriderError('not_found', `dead letter ${id} is of a user who was deleted: it was erased`)
    },
    async newest(options) {
      const known = await erasures(options.signal)
      return store.newest({
        ...options,
        pick: (stored) => (known.covers(stored.owner) ? null : options.pick(stored)),
      })
    },
  }
}
