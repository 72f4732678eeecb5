import type { Erasure } from './erasures.ts'

/** A deletion request as `webhooks.erasures` tells of it. */
export interface RecordedDeletion {
  requestId: string
  /** When it was requested, and when the broker got the first of its erasures; epoch milliseconds. */
  at: number
  appendedAt: number
  /** Erasures that it has, and how many of them are there: fewer where it was cut off before it was accepted. */
  total: number
  written: number
  /** By source, in the order of the request. */
  sources: ReadonlyMap<string, { users: number; destinationIds: readonly string[] }>
  /** Its delete calls are all written. */
  finished: boolean
}

/** What nobody of ours ever requested: then copies are not told apart. */
const mostCounted = 50_000_000

interface Entry {
  requestId: string
  at: number
  appendedAt: number
  total: number
  written: number
  sources: Map<string, { users: number; destinationIds: readonly string[] }>
  finished: boolean
  /** A bit for each number that was seen: a producer may append twice. Null where nothing is numbered. */
  seen: Uint8Array | null
}

/** The fold of `webhooks.erasures` by request. Holds a bit an erasure, and no user. */
export class DeletionBook {
  readonly #entries = new Map<string, Entry>()

  /** @param appendedAt when the broker got it, epoch milliseconds */
  take(erasure: Erasure, appendedAt: number): void {
    const { requestId, sourceId, number, at, total, destinationIds, finished } = erasure
    let entry = this.#entries.get(requestId)
    if (!entry) {
      const counted = number > 0 && total > 0 && total <= mostCounted
      const seen = counted ? new Uint8Array((total >> 3) + 1) : null
      entry = { requestId, at, appendedAt, total, written: 0, sources: new Map(), finished: false, seen }
      this.#entries.set(requestId, entry)
    }
    if (finished) {
      entry.finished = true
      return
    }
    if (entry.seen) {
      const [byte, bit] = [number >> 3, 1 << (number & 7)]
      if (byte >= entry.seen.length || entry.seen[byte]! & bit) return
      entry.seen[byte]! |= bit
    }
    entry.written++
    if (!entry.seen) entry.total = entry.written
    const source = entry.sources.get(sourceId)
    if (source) source.users++
    else entry.sources.set(sourceId, { users: 1, destinationIds })
  }

  get(requestId: string): RecordedDeletion | undefined {
    return this.#entries.get(requestId)
  }

  /** The oldest first. */
  all(): RecordedDeletion[] {
    return [...this.#entries.values()].sort((a, b) => a.at - b.at || (a.requestId < b.requestId ? -1 : 1))
  }
}
