import type { ViolationCount } from '../../core/ledger/delivery-event.ts'
import type { Violation } from '../../core/tracking-plan/plan-check.ts'

/** Violations that are told apart between two reports; the rest of a source's are counted as `other`. */
const maxKeys = 200
/** Calls that are named for each: the newest, the newest first. */
const maxSamples = 10

/** Whose calls violate which plan, and what is done about it. */
export type CheckedBy = Pick<ViolationCount, 'sourceId' | 'planId' | 'mode'>

/** Counts violations between two reports, in bounded memory whatever senders write. */
export class ViolationCounts {
  #counts = new Map<string, ViolationCount>()

  get isEmpty(): boolean {
    return this.#counts.size === 0
  }

  /** @param now epoch ms */
  add(by: CheckedBy, violations: readonly Violation[], messageId: string, now: number): void {
    for (const violation of violations) {
      const count = this.#countOf(by, violation)
      count.count++
      count.lastAt = Math.max(count.lastAt, now)
      const { messageIds } = count
      if (messageIds[0] !== messageId) messageIds.unshift(messageId)
      if (messageIds.length > maxSamples) messageIds.pop()
    }
  }

  /** What was counted since the last call. */
  take(): ViolationCount[] {
    const taken = [...this.#counts.values()]
    this.#counts = new Map()
    return taken
  }

  #countOf(by: CheckedBy, violation: Violation): ViolationCount {
    const key = keyOf(by, violation)
    const known = this.#counts.get(key)
    if (known) return known
    const isOther = this.#counts.size >= maxKeys && violation.rule !== 'other'
    if (isOther) return this.#countOf(by, { event: 'other', path: '', rule: 'other' })
    const made = { ...by, ...violation, count: 0, lastAt: 0, messageIds: [] }
    this.#counts.set(key, made)
    return made
  }
}

const keyOf = ({ sourceId, planId, mode }: CheckedBy, { event, path, rule }: Violation): string =>
  JSON.stringify([sourceId, planId, mode, event, path, rule])
