import type { DeadLetter } from '../../core/delivery/delivery.ts'
import type { ErasableCall } from '../../core/erasure/erasures.ts'
import { PostriderError } from '../../errors.ts'

type HeaderValue = Uint8Array | string | (Uint8Array | string)[] | undefined

/** A record of a topic as it lies there. `timestamp` is the broker's, in epoch milliseconds. */
export interface StoredRecord {
  partition: number
  offset: number
  key: Uint8Array | null
  value: Uint8Array | null
  headers: Record<string, HeaderValue>
  timestamp: number
}

/** A record of the dead letter topic. */
export interface StoredDeadLetter {
  /** `<partition>-<offset>`: stable, and there for every record, a delivery's or not. */
  id: string
  record: StoredRecord
  /** Null when the record itself cannot be read. */
  deadLetter: DeadLetter | null
  /** Why it cannot be read. */
  problem: string | null
  /** Epoch milliseconds; when it was written, where that is all that is known. */
  failedAt: number
  /** The call whose user a deletion request may cover. */
  owner: ErasableCall
}

/** Null where the id is a delivery's. */
export function deadLetterPlace(id: string): { partition: number; offset: number } | null {
  const place = /^(\d{1,5})-(\d{1,15})$/.exec(id)
  return place && { partition: Number(place[1]), offset: Number(place[2]) }
}

export const noDeadLetter = (topic: string, what: string): PostriderError =>
  new PostriderError(
    'not_found',
    `${topic} holds no dead letter ${what}; \`postrider dead-letters list\` shows what it holds`,
  )

export interface DeadLetterReadOptions {
  /** Epoch milliseconds: what failed before may be left out. */
  since?: number | null
  signal?: AbortSignal
  /** Called once, before the first: about how many there are to look at. */
  onRange?: (total: number) => void
}

/** The dead letter topic. All reject with `kafka_unavailable`, `registry_unavailable` or `setup`. */
export interface DeadLetterStore {
  /** Every dead letter there is now, in order within a partition. */
  all(options?: DeadLetterReadOptions): AsyncIterable<StoredDeadLetter>
  /**
   * The dead letters of that id, oldest first: one for a `<partition>-<offset>`; for a delivery id all that the
   * delivery ever came to. Throws `not_found`.
   */
  byId(id: string, signal?: AbortSignal): Promise<StoredDeadLetter[]>
  /** Those that `pick` makes something of, the newest first. */
  newest<T>(options: NewestOptions<T>): Promise<{ deadLetters: T[]; next: PageStart | null }>
}

/** By partition, the offset behind those that are still to come. */
export type PageStart = ReadonlyMap<number, number>

export interface NewestOptions<T> {
  limit: number
  /** `next` of the page before; null for the first one. */
  before: PageStart | null
  /** Epoch milliseconds: what failed before may be left out. */
  since: number | null
  pick: (stored: StoredDeadLetter) => T | null
  signal?: AbortSignal
}
