import type { RecentIds } from '../core/recent-ids.ts'
import type { Lot } from './ports.ts'

/** What is known of a call by its source and messageId. */
export type Seen = Lot | 'written' | null

/**
 * Tells which calls came before. A call is remembered only once it is acknowledged; one that is under way lends its
 * lot, so that its duplicate waits for the same answer. What failed is forgotten, and may come again.
 */
export class RecentCalls {
  readonly #written: RecentIds
  readonly #underWay = new Map<string, Lot>()
  readonly #keysOf = new Map<Lot, string[]>()

  constructor(written: RecentIds) {
    this.#written = written
  }

  /** Source ids have no line's end in them. */
  static key(sourceId: string, messageId: string): string {
    return `${sourceId}\n${messageId}`
  }

  seen(key: string): Seen {
    return this.#underWay.get(key) ?? (this.#written.has(key) ? 'written' : null)
  }

  /** The call is in this lot, whose end decides. */
  begin(key: string, lot: Lot): void {
    this.#underWay.set(key, lot)
    const keys = this.#keysOf.get(lot)
    if (keys) {
      keys.push(key)
    } else {
      this.#keysOf.set(lot, [key])
      void lot.written.then((written) => this.#end(lot, written))
    }
  }

  /** A call that is known to lie in Kafka. */
  remember(key: string): void {
    this.#written.add(key)
  }

  #end(lot: Lot, written: boolean): void {
    const keys = this.#keysOf.get(lot)!
    this.#keysOf.delete(lot)
    for (const key of keys) {
      this.#underWay.delete(key)
      if (written) this.#written.add(key)
    }
  }
}
