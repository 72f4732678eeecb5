import type { RecentIds } from '../core/recent-ids.ts'
import type { Lot } from './ports.ts'

/** What is known of a call by its source and messageId. */
export type Seen = Lot | 'written' | null

/** The calls of one source. */
interface Source {
  /** What tells its ids from those of others. */
  scope: number
  underWay: Map<string, Lot>
}

/** The calls of a lot that is under way, in three lists of one length: an object for each would be garbage. */
interface LotCalls {
  sources: Source[]
  messageIds: string[]
  hashes: number[]
}

/**
 * Tells which calls came before. A call is remembered only once it is acknowledged; one that is under way lends its
 * lot, so that its duplicate waits for the same answer. What failed is forgotten, and may come again.
 */
export class RecentCalls {
  readonly #written: RecentIds
  /** By id. There are as many as there ever were sources while this process ran. */
  readonly #sources = new Map<string, Source>()
  readonly #lots = new Map<Lot, LotCalls>()
  #lastLot: Lot | null = null
  #lastCalls: LotCalls | null = null

  constructor(written: RecentIds) {
    this.#written = written
  }

  /** The calls of a source, to be asked one by one. */
  of(sourceId: string): RecentOfSource {
    let source = this.#sources.get(sourceId)
    if (source === undefined) {
      source = { scope: this.#sources.size, underWay: new Map() }
      this.#sources.set(sourceId, source)
    }
    return new RecentOfSource(this, this.#written, source)
  }

  /** The lists of a lot, whose end decides what becomes of its calls. */
  callsOf(lot: Lot): LotCalls {
    if (lot === this.#lastLot) return this.#lastCalls!
    let calls = this.#lots.get(lot)
    if (calls === undefined) {
      calls = { sources: [], messageIds: [], hashes: [] }
      this.#lots.set(lot, calls)
      void lot.written.then((written) => this.#end(lot, written))
    }
    this.#lastLot = lot
    this.#lastCalls = calls
    return calls
  }

  #end(lot: Lot, written: boolean): void {
    const { sources, messageIds, hashes } = this.#lots.get(lot)!
    this.#lots.delete(lot)
    if (this.#lastLot === lot) this.#lastLot = this.#lastCalls = null
    for (let index = 0; index < messageIds.length; index++) {
      const { scope, underWay } = sources[index]!
      const messageId = messageIds[index]!
      underWay.delete(messageId)
      if (written) this.#written.add(scope, messageId, hashes[index]!)
    }
  }
}

export class RecentOfSource {
  readonly #all: RecentCalls
  readonly #written: RecentIds
  readonly #source: Source

  constructor(all: RecentCalls, written: RecentIds, source: Source) {
    this.#all = all
    this.#written = written
    this.#source = source
  }

  /** What `seen` and `begin` want beside the id, worked out once. */
  hashOf(messageId: string): number {
    return this.#written.hashOf(this.#source.scope, messageId)
  }

  seen(messageId: string, hash: number): Seen {
    const { scope, underWay } = this.#source
    return underWay.get(messageId) ?? (this.#written.has(scope, messageId, hash) ? 'written' : null)
  }

  /** The call is in this lot, whose end decides. */
  begin(messageId: string, hash: number, lot: Lot): void {
    this.#source.underWay.set(messageId, lot)
    const { sources, messageIds, hashes } = this.#all.callsOf(lot)
    sources.push(this.#source)
    messageIds.push(messageId)
    hashes.push(hash)
  }

  /** A call that is known to lie in Kafka. */
  remember(messageId: string): void {
    this.#written.add(this.#source.scope, messageId, this.hashOf(messageId))
  }
}
