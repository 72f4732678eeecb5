import { HashChains, type Chained } from '../core/hash-chains.ts'
import type { RecentIds } from '../core/call/recent-ids.ts'
import type { CallBatchPart } from './call-batch-sink.ts'

/** What is known of a call by its source and messageId. */
export type Seen = CallBatchPart | 'written' | null

/** A call that is in flight. */
interface InFlightCall extends Chained<InFlightCall> {
  readonly scope: number
  readonly messageId: string
  readonly part: CallBatchPart
}

/**
 * Tells which calls came before. A call is remembered only once it is acknowledged; one that is in flight lends its
 * part of a batch, so that its duplicate waits for the same answer. What failed is forgotten, and may come again.
 */
export class RecentCalls {
  readonly #written: RecentIds
  /** A number for each source id; there are as many as there ever were while this process ran. */
  readonly #scopes = new Map<string, number>()
  readonly #inFlight = new HashChains<InFlightCall>()
  /** Of the batch that was filled last. */
  #lastEnded: Promise<void> | null = null
  #lastCalls: InFlightCall[] = []

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
    let call = this.#inFlight.first(hash)
    while (call !== null && (call.hash !== hash || call.messageId !== messageId || call.scope !== scope))
      call = call.chained
    return call?.part ?? (this.#written.has(scope, messageId, hash) ? 'written' : null)
  }

  /** The call, which was not seen before, is in this part of a batch, whose end decides. */
  begin(scope: number, messageId: string, hash: number, part: CallBatchPart): void {
    const call: InFlightCall = { scope, messageId, hash, part, chained: null }
    this.#inFlight.add(call)
    this.#callsUntil(part.ended).push(call)
  }

  /** A call that is known to lie in Kafka. */
  remember(sourceId: string, messageId: string): void {
    const scope = this.scopeOf(sourceId)
    this.#written.add(scope, messageId, this.hashOf(scope, messageId))
  }

  /** Batches are filled one after another: a list for each time that one is gone on with. */
  #callsUntil(ended: Promise<void>): InFlightCall[] {
    if (ended !== this.#lastEnded) {
      const calls: InFlightCall[] = []
      this.#lastEnded = ended
      this.#lastCalls = calls
      void ended.then(() => this.#end(ended, calls))
    }
    return this.#lastCalls
  }

  #end(ended: Promise<void>, calls: readonly InFlightCall[]): void {
    if (this.#lastEnded === ended) {
      this.#lastEnded = null
      this.#lastCalls = []
    }
    for (const call of calls) {
      this.#inFlight.remove(call)
      if (call.part.isWritten) this.#written.add(call.scope, call.messageId, call.hash)
    }
  }
}
