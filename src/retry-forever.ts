import { setTimeout as delay } from 'node:timers/promises'

const initialBackOffMs = 200
/** The longest wait between two tries of anything that is tried for ever. */
const maxBackOffMs = 5_000

/** How long to wait after that number of failures in a row, in ms. */
export function backOff(failures: number, initialMs = initialBackOffMs, maxMs = maxBackOffMs): number {
  return Math.min(maxMs, initialMs * 2 ** failures)
}

/** Waits, or less when the signal aborts. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => {})
}

export interface RetryForeverOptions {
  signal: AbortSignal
  /** Called after each failure, before the wait. What it throws ends the tries. */
  onError(error: unknown, retryInMs: number): void | Promise<void>
  initialMs?: number
  maxMs?: number
}

/**
 * Tries `work` until it succeeds, with back-off. Null once the signal has aborted.
 * @param work may report success, after which the next wait is short
 */
export async function retryForever<T>(
  work: (succeeding: () => void) => T | Promise<T>,
  { signal, onError, initialMs, maxMs }: RetryForeverOptions,
): Promise<T | null> {
  let failures = 0
  const succeeding = () => {
    failures = 0
  }
  while (!signal.aborted) {
    try {
      return await work(succeeding)
    } catch (error) {
      if (signal.aborted) return null
      const waitMs = backOff(failures++, initialMs, maxMs)
      await onError(error, waitMs)
      await pause(waitMs, signal)
    }
  }
  return null
}
