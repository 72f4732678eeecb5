import type { RecentIds } from '../core/recent-ids.ts'
import type { Lot } from './ports.ts'

/** What is known of a call by its source and messageId. */
export type Seen = Lot | 'written' | null

/** A call that is under way. */
interface UnderWay {
  readonly scope: number
  readonly messageId: string
  readonly hash: number
  readonly lot: Lot
  /** Another one with the same hash. */
  next: UnderWay | undefined
}

/**
 * Tells which calls came before. A call is remembered only once it is acknowledged; one that is under way lends its
 * lot, so that its duplicate waits for the same answer. What failed is forgotten, and may come again.
 */
export class RecentCalls {
  readonly #written: RecentIds
  /** A number for each source id; there are as many as there ever were while this process ran. */
  readonly #scopes = new Map<string, number>()
  /** By hash: of texts the engine would work out hashes of its own. */
  readonly #underWay = new Map<number, UnderWay>()
  readonly #lots = new Map<Lot, UnderWay[]>()
  #lastLot: Lot | null = null
  #lastCalls: UnderWay[] = []

  constructor(written: RecentIds) {
    this.#written = written
  }

  /** What the other methods want for a source. */
  scopeOf(sourceId: string): number {
    let scope = this.#scopes.get(sourceId)
    if (scope === undefined) {
      scope = this.#scopes.size
      this.#scopes.set(sourceId, scope)
    }
    return scope
  }

  /** What `seen` and `begin` want beside the id, worked out once. */
  hashOf(scope: number, messageId: string): number {
    return this.#written.hashOf(scope, messageId)
  }

  seen(scope: number, messageId: string, hash: number): Seen {
    let call = this.#underWay.get(hash)
    while (call !== undefined && (call.messageId !== messageId || call.scope !== scope)) call = call.next
    return call?.lot ?? (this.#written.has(scope, messageId, hash) ? 'written' : null)
  }

  /** The call, which was not seen before, is in this lot, whose end decides. */
  begin(scope: number, messageId: string, hash: number, lot: Lot): void {
    const call: UnderWay = { scope, messageId, hash, lot, next: this.#underWay.get(hash) }
    this.#underWay.set(hash, call)
    this.#callsOf(lot).push(call)
  }

  /** A call that is known to lie in Kafka. */
  remember(sourceId: string, messageId: string): void {
    const scope = this.scopeOf(sourceId)
    this.#written.add(scope, messageId, this.hashOf(scope, messageId))
  }

  #callsOf(lot: Lot): UnderWay[] {
    if (lot === this.#lastLot) return this.#lastCalls
    let calls = this.#lots.get(lot)
    if (calls === undefined) {
      calls = []
      this.#lots.set(lot, calls)
      void lot.written.then((written) => this.#end(lot, written))
    }
    this.#lastLot = lot
    this.#lastCalls = calls
    return calls
  }

  #end(lot: Lot, written: boolean): void {
    const calls = this.#lots.get(lot)!
    this.#lots.delete(lot)
    if (this.#lastLot === lot) {
      this.#lastLot = null
      this.#lastCalls = []
    }
    for (const call of calls) {
      this.#forget(call)
      if (written) this.#written.add(call.scope, call.messageId, call.hash)
    }
  }

  #forget(call: UnderWay): void {
    const first = this.#underWay.get(call.hash)!
    if (first === call) {
      if (call.next === undefined) this.#underWay.delete(call.hash)
      else this.#underWay.set(call.hash, call.next)
      return
    }
    let before = first
    while (before.next !== call) before = before.next!
    before.next = call.next
  }
}
