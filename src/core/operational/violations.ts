import type { ViolationCount } from '../ledger/delivery-event.ts'
import { type OperationalEvent, timeText } from './operational-event.ts'

/** Violations of one event and path at one source that were not reported yet. */
export interface ViolationWindow extends Omit<ViolationCount, 'lastAt' | 'messageIds'> {
  /** When the first of them was counted, epoch ms by the counting process's clock. */
  openedAt: number
  /** When the last one was found, epoch ms. */
  until: number
}

/** Open at once; the rest is counted together. What is open has to fit into a commit. */
const maxOpen = 50

/**
 * Counts violations of tracking plans by source, event and path. As with failures, the first one opens a window, and at its
 * end one event says how many there were.
 */
export class ViolationWindows {
  readonly #open = new Map<string, ViolationWindow>()
  readonly #lengthMs: number

  constructor(lengthMs: number, open: Iterable<ViolationWindow> = []) {
    this.#lengthMs = lengthMs
    for (const each of open) this.#open.set(keyOf(each), { ...each })
  }

  get open(): Iterable<ViolationWindow> {
    return this.#open.values()
  }

  /** @param now epoch ms */
  take(violations: readonly ViolationCount[], now: number): void {
    for (const { lastAt, messageIds: _, count, ...violation } of violations) {
      const window = this.#windowOf(violation, now)
      window.count += count
      window.until = Math.max(window.until, lastAt)
    }
  }

  /** What the windows that have ended come to. */
  due(now: number): OperationalEvent[] {
    const events: OperationalEvent[] = []
    for (const [key, window] of this.#open) {
      const { sourceId, planId, mode, event, path, rule, count, openedAt, until } = window
      if (now < openedAt + this.#lengthMs) continue
      this.#open.delete(key)
      events.push({
        name: 'Plan Violated',
        identity: `${key}/${openedAt}`,
        at: until,
        destination: null,
        properties: {
          ...{ source: sourceId, plan: planId, event, path, rule, mode, count },
          until: timeText(until),
        },
      })
    }
    return events
  }

  #windowOf(
    violation: Omit<ViolationCount, 'count' | 'lastAt' | 'messageIds'>,
    now: number,
  ): ViolationWindow {
    const known = this.#open.get(keyOf(violation))
    if (known) return known
    const isOther = this.#open.size >= maxOpen && violation.rule !== 'other'
    if (isOther) return this.#windowOf({ ...violation, event: 'other', path: '', rule: 'other' }, now)
    const opened = { ...violation, count: 0, openedAt: now, until: 0 }
    this.#open.set(keyOf(violation), opened)
    return opened
  }
}

const keyOf = ({ sourceId, event, path }: Pick<ViolationCount, 'sourceId' | 'event' | 'path'>): string =>
  JSON.stringify([sourceId, event, path])
