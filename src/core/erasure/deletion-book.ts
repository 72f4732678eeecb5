import type { Erasure } from './erasures.ts'

/** A deletion request as `webhooks.erasures` records it. */
export interface RecordedDeletion {
  requestId: string
  /** When it was requested, and when the broker got the first of its erasures; epoch milliseconds. */
  at: number
  appendedAt: number
  /** Who requested it; null where that is not recorded. */
  actor: string | null
  /** Erasures that it has, and how many of them are there: fewer where it was cut off before it was accepted. */
  total: number
  written: number
  /** Of how many erasures, from the first on, the delete calls are written. */
  notified: number
  /** By source, in the order of the request. */
  sources: ReadonlyMap<string, { users: number; destinationIds: readonly string[] }>
}

/**
 * - `finished`: every user is erased and every delete call written
 * - `interrupted`: every user is erased, delete calls are missing
 * - `cut_off`: it ended before all of its users were erased
 */
export type DeletionState = (typeof deletionStates)[number]
export const deletionStates = ['finished', 'interrupted', 'cut_off'] as const

/** What retention took away was finished or can be finished no more: it does not count as missing. */
export function deletionState({ total, written, notified }: RecordedDeletion): DeletionState {
  if (notified >= total) return 'finished'
  return written < total ? 'cut_off' : 'interrupted'
}

/** Whether delete calls of erasures that are there may be missing. */
export const isUnfinished = ({ written, notified }: RecordedDeletion): boolean => notified < written

/** For a request that is not ours: then copies are not distinguished. */
const maxCounted = 50_000_000

interface Entry extends RecordedDeletion {
  sources: Map<string, { users: number; destinationIds: readonly string[] }>
  /** A bit for each number that was seen: a producer may append twice. Null where nothing is numbered. */
  seen: Uint8Array | null
}

/** The fold of `webhooks.erasures` by request. Holds a bit an erasure, and no user. */
export class DeletionBook {
  readonly #entries = new Map<string, Entry>()

  /**
   * False for a copy, and for what is no erasure.
   *
   * @param appendedAt when the broker got it, epoch milliseconds
   */
  take(erasure: Erasure, appendedAt: number): boolean {
    const { requestId, sourceId, number, at, total, destinationIds, finished, actor } = erasure
    let entry = this.#entries.get(requestId)
    if (!entry) {
      const counted = number > 0 && total > 0 && total <= maxCounted
      const seen = counted ? new Uint8Array((total >> 3) + 1) : null
      entry = { requestId, at, appendedAt, actor, total, written: 0, notified: 0, sources: new Map(), seen }
      this.#entries.set(requestId, entry)
    }
    if (finished) {
      entry.notified = Math.max(entry.notified, number > 0 ? number - 1 : entry.written)
      return false
    }
    if (entry.seen) {
      const [byte, bit] = [number >> 3, 1 << (number & 7)]
      if (byte >= entry.seen.length || entry.seen[byte]! & bit) return false
      entry.seen[byte]! |= bit
    }
    entry.written++
    if (!entry.seen) entry.total = entry.written
    const source = entry.sources.get(sourceId)
    if (source) source.users++
    else entry.sources.set(sourceId, { users: 1, destinationIds })
    return true
  }

  get(requestId: string): RecordedDeletion | undefined {
    const entry = this.#entries.get(requestId)
    return entry && entry.written > 0 ? entry : undefined
  }

  /** The oldest first. Those of which retention has left no erasure are gone. */
  all(): RecordedDeletion[] {
    return [...this.#entries.values()]
      .filter(({ written }) => written > 0)
      .sort((a, b) => a.at - b.at || (a.requestId < b.requestId ? -1 : 1))
  }
}
