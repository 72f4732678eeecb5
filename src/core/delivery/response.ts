import type { OutcomeKind } from './outcome.ts'

/** How much of a response is read before its status decides anyway, in bytes. */
export const maxResponseBytes = 64 * 1024
/** How much of a failed response's body is kept for people, in bytes. */
export const keptResponseBytes = 2 * 1024

/**
 * The outcome of a final status (200 and above; docs/delivery.md). A status outside the known
 * classes counts as a 5xx (RFC 9110, section 15).
 */
export function outcomeKindOf(status: number): OutcomeKind {
  if (status >= 200 && status < 300) return 'success'
  if (status >= 300 && status < 400) return 'redirect'
  if (status === 410) return 'gone'
  if (status === 429) return 'status_429'
  if (status >= 400 && status < 500) return 'status_4xx'
  return 'status_5xx'
}
