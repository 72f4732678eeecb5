import type { DeadLetter, DeadLetterReason } from '../delivery/delivery.ts'
import { builtInSourceId } from './built-in-source.ts'
import { timeText, type OperationalEvent, type ShownResponse } from './operational-event.ts'

/** Dead letters of one destination and reason that were not reported yet. */
export interface FailureWindow {
  /** Null for records that never became a delivery. */
  destinationId: string | null
  reason: DeadLetterReason
  /** When the first of them was counted, epoch ms by the counting process's clock. */
  openedAt: number
  /** When the first and the last of them failed, epoch ms. */
  since: number
  until: number
  count: number
  /** Of the last one that had a response. */
  lastResponse: ShownResponse | null
}

/**
 * Counts dead letters by destination and reason. The first one opens a window; at its end one event says how many there
 * were, so there is at most one a window's length, however many fail.
 */
export class FailureWindows {
  readonly #open = new Map<string, FailureWindow>()
  readonly #lengthMs: number

  constructor(lengthMs: number, open: Iterable<FailureWindow> = []) {
    this.#lengthMs = lengthMs
    for (const each of open) this.#open.set(keyOf(each.destinationId, each.reason), { ...each })
  }

  get open(): Iterable<FailureWindow> {
    return this.#open.values()
  }

  /**
   * Dead letters of operational events are left out: with two subscribers that are both down, the failures of each would
   * be news for the other, for ever.
   *
   * @param now epoch ms
   */
  take({ delivery, reason, failedAt }: DeadLetter, now: number): void {
    if (delivery?.sourceId === builtInSourceId) return
    const destinationId = delivery?.destinationId ?? null
    const key = keyOf(destinationId, reason)
    let window = this.#open.get(key)
    if (!window) {
      const opened = { openedAt: now, since: failedAt, until: failedAt, count: 0, lastResponse: null }
      this.#open.set(key, (window = { destinationId, reason, ...opened }))
    }
    window.count++
    window.since = Math.min(window.since, failedAt)
    window.until = Math.max(window.until, failedAt)
    const last = delivery?.lastResponse
    if (last) window.lastResponse = { status: last.status, detail: `status ${last.status}` }
  }

  /** What the windows that have ended come to. */
  due(now: number): OperationalEvent[] {
    const events: OperationalEvent[] = []
    for (const [key, window] of this.#open) {
      const { destinationId, reason, openedAt, since, until, count, lastResponse } = window
      if (now < openedAt + this.#lengthMs) continue
      this.#open.delete(key)
      events.push({
        name: 'Deliveries Failed',
        identity: `${key}/${openedAt}`,
        at: until,
        destination: destinationId,
        properties: { reason, count, since: timeText(since), until: timeText(until), lastResponse },
      })
    }
    return events
  }
}

const keyOf = (destinationId: string | null, reason: string): string => `${destinationId ?? ''}/${reason}`
