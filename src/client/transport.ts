/** What is sent in one piece: calls as JSON texts, in their order, at most 500 KB with what goes around them. */
export interface Batch {
  items: readonly string[]
  /** Epoch milliseconds, by this machine's clock: of this attempt, not of the first. */
  sentAt: number
}

/** One call of a batch, by its place from 0, that is not valid. */
export interface RejectedItem {
  index: number
  code: string
  message: string
}

export type SendResult =
  /** Everything but the rejected is safe. */
  | { kind: 'accepted'; rejected: readonly RejectedItem[] }
  /** These are not valid; the others are to be sent again without them. */
  | { kind: 'rejected'; rejected: readonly RejectedItem[] }
  /** The whole batch, and trying again would not help. */
  | { kind: 'refused'; message: string }
  /** Try again, not before `retryAfterMs` if there is one. The batch may have arrived all the same. */
  | { kind: 'unavailable'; message: string; retryAfterMs: number | null }

/** Where batches go. One at a time is sent. */
export interface Transport {
  /** For people, without anything secret. */
  readonly name: string
  /**
   * Resolves in bounded time. What it rejects with counts as `unavailable`. The answer is not awaited any more
   * once the signal is aborted.
   */
  send(batch: Batch, signal: AbortSignal): Promise<SendResult>
  /** Leaves no handle open. Called once, after the last send. */
  close(): Promise<void>
}
