import { subtractRuns, uniteRuns, type OffsetRun } from './offset-runs.ts'
import { stateAfter, type Transitions } from '../transitions.ts'

/**
 * How an assigned partition is read. `readTransitions` says what leads from one state to another:
 *
 * - `restoring`: its committed offsets are not known yet. What is fetched is dropped, and fetched again later.
 * - `seeking`: the consumer was sent to an offset, and no batch has come from there.
 * - `reading`: each batch begins where the one before it ended, or earlier.
 * - `gap`: a batch began beyond. What is fetched is dropped until the consumer is sent back.
 * - `lost`: it is not ours any more. Final.
 */
export type ReadState = 'restoring' | 'seeking' | 'reading' | 'gap' | 'lost'
/** `interrupted`: the next assignment came before it was known where to go back to. */
export type ReadEvent = 'restored' | 'fetched' | 'jumped' | 'went_back' | 'interrupted' | 'lost'

export const readTransitions: Transitions<ReadState, ReadEvent> = {
  restoring: { restored: 'seeking', lost: 'lost' },
  seeking: { fetched: 'reading', jumped: 'gap', lost: 'lost' },
  reading: { fetched: 'reading', jumped: 'gap', lost: 'lost' },
  gap: { went_back: 'seeking', interrupted: 'reading', lost: 'lost' },
  lost: {},
}

/** What to do with a batch. */
export type BatchVerdict = 'drop' | 'go_back' | 'take'

/** Up to where a partition was read, and whether a batch goes on from there. */
export class ReadPosition {
  #state: ReadState = 'restoring'
  /** Where the next batch must begin, or before; null while not known. */
  #next: number | null = null

  get state(): ReadState {
    return this.#state
  }

  get next(): number | null {
    return this.#next
  }

  get isLost(): boolean {
    return this.#state === 'lost'
  }

  /** Its committed offsets are known, so that it can be read and committed. */
  get isRestored(): boolean {
    return this.#state !== 'restoring' && this.#state !== 'lost'
  }

  /** @param from the offset that the batch was asked for by */
  verdict(from: number): BatchVerdict {
    if (this.#state !== 'seeking' && this.#state !== 'reading') return 'drop'
    return from <= this.#next! ? 'take' : 'go_back'
  }

  /** The committed offsets are known, and the consumer is sent here. */
  restored(offset: number): void {
    this.#to('restored')
    this.#next = offset
  }

  /** A batch up to this offset was taken. */
  fetched(to: number): void {
    this.#to('fetched')
    this.#next = Math.max(this.#next!, to)
  }

  /** A batch began beyond what was read so far. */
  jumped(): void {
    this.#to('jumped')
  }

  /** The consumer is sent back to here. */
  wentBack(offset: number): void {
    this.#to('went_back')
    this.#next = offset
  }

  interrupted(): void {
    this.#to('interrupted')
  }

  lost(): void {
    this.#to('lost')
  }

  #to(event: ReadEvent): void {
    this.#state = stateAfter(readTransitions, this.#state, event)
  }
}

/**
 * Whether the partition that a record came from is still owned. `uncertain`: the group may have assigned it to another
 * member, for instance while this process was frozen.
 */
export type Ownership = 'owned' | 'uncertain' | 'lost'

/** A record may be written only while the partition that it came from is owned. */
export interface Claim {
  readonly ownership: Ownership
  /** The partition was lost before the record was sent; it is not written, and the next owner decides again. */
  dropped(): void
}

/** For records that no other process would write. */
export const unclaimed: Claim = { ownership: 'owned', dropped() {} }

/** What `add` says of an offset that is no work: it was added before, or is finished already. */
export const noWork = -1

/**
 * Which offsets of one partition are finished. Offsets are added as they are fetched, ascending; contiguity is
 * over those, since control records and compaction leave holes. The position is the offset to commit: every
 * offset fetched below it is finished.
 *
 * A ring of the offsets between the first unfinished one and the last one fetched; `add` and `finish` take
 * constant time.
 */
export class OffsetTracker {
  #offsets = new Float64Array(256)
  #finished = new Uint8Array(256)
  #mask = 255
  /** Sequence number of the first unfinished offset, and one past that of the last one added. */
  #head = 0
  #tail = 0
  #lastAdded = -1
  /** Every offset below this is finished, by any owner. */
  #floor = 0
  /** Finished runs at or above the floor that have not been added yet, ascending. */
  #known: OffsetRun[] = []
  #finishedAhead = 0
  /** Counts changes of the position or of the finished set, so that a committer sees whether there are any. */
  #changes = 0

  /** The offset to commit; null while nothing is known of the partition. */
  get position(): number | null {
    if (this.#head < this.#tail) return this.#offsets[this.#head & this.#mask]!
    const position = Math.max(this.#lastAdded + 1, this.#floor)
    return position === 0 && this.#lastAdded < 0 ? null : position
  }

  /** Offsets between the first unfinished one and the last one added: what the tracker holds in memory. */
  get size(): number {
    return this.#tail - this.#head
  }

  get unfinished(): number {
    return this.size - this.#finishedAhead
  }

  get changes(): number {
    return this.#changes
  }

  get lastAdded(): number {
    return this.#lastAdded
  }

  /**
   * Takes what a commit says: all below `position` and in `runs` is finished. Called before the first `add` of a
   * partition gained, and again when a partition stays through a rebalance: finished is a fact, so the two are
   * united.
   */
  restore(position: number, runs: readonly OffsetRun[]): void {
    this.#floor = Math.max(this.#floor, position)
    const above = Math.max(this.#lastAdded + 1, this.#floor)
    this.#known = subtractRuns(uniteRuns(this.#known, runs), [{ start: 0, end: above }])
    let next = 0
    for (let sequence = this.#head; sequence < this.#tail; sequence++) {
      const offset = this.#offsets[sequence & this.#mask]!
      while (next < runs.length && runs[next]!.end <= offset) next++
      if (offset < this.#floor || (next < runs.length && offset >= runs[next]!.start)) this.#mark(sequence)
    }
    this.#advance()
    this.#changes++
  }

  /**
   * Adds an offset that was fetched.
   * @returns its sequence number, for `finish`; `noWork` when it was added before or is finished already
   */
  add(offset: number): number {
    if (offset <= this.#lastAdded) return noWork
    this.#lastAdded = offset
    if (this.#tail - this.#head > this.#mask) this.#grow()
    const sequence = this.#tail++
    const slot = sequence & this.#mask
    this.#offsets[slot] = offset
    this.#finished[slot] = 0
    if (this.#knownFinished(offset)) {
      this.finish(sequence)
      return noWork
    }
    return sequence
  }

  /** All below `end` has been fetched: what of it was not added is a hole (control records, compaction). */
  reach(end: number): void {
    if (end <= this.#lastAdded + 1) return
    this.#lastAdded = end - 1
    if (this.#head === this.#tail) this.#changes++
  }

  /** Idempotent: a second `finish` of one sequence number changes nothing. */
  finish(sequence: number): void {
    if (sequence < this.#head || sequence >= this.#tail) return
    if (this.#mark(sequence)) this.#changes++
    if (sequence === this.#head) this.#advance()
  }

  /**
   * The finished runs above the position, ascending: also those that were restored and not fetched again yet, or
   * a second crash would repeat them. A hole belongs to the offset before it.
   */
  finishedRuns(): OffsetRun[] {
    const runs: OffsetRun[] = []
    let left = this.#finishedAhead
    let open: OffsetRun | null = null
    for (let sequence = this.#head; left > 0 && sequence < this.#tail; sequence++) {
      const slot = sequence & this.#mask
      if (this.#finished[slot] === 0) {
        open = null
        continue
      }
      left--
      const offset = this.#offsets[slot]!
      if (open) open.end = offset + 1
      else runs.push((open = { start: offset, end: offset + 1 }))
    }
    for (const { start, end } of this.#known) {
      const from = Math.max(start, this.#lastAdded + 1)
      if (from >= end) continue
      const last = runs[runs.length - 1]
      if (last && last.end === from) last.end = end
      else runs.push({ start: from, end })
    }
    return runs
  }

  #mark(sequence: number): boolean {
    const slot = sequence & this.#mask
    if (this.#finished[slot] === 1) return false
    this.#finished[slot] = 1
    this.#finishedAhead++
    return true
  }

  #advance(): void {
    while (this.#head < this.#tail && this.#finished[this.#head & this.#mask] === 1) {
      this.#head++
      this.#finishedAhead--
    }
  }

  #knownFinished(offset: number): boolean {
    if (offset < this.#floor) return true
    while (this.#known.length > 0 && this.#known[0]!.end <= offset) this.#known.shift()
    return this.#known.length > 0 && offset >= this.#known[0]!.start
  }

  #grow(): void {
    const capacity = (this.#mask + 1) * 2
    const offsets = new Float64Array(capacity)
    const finished = new Uint8Array(capacity)
    for (let sequence = this.#head; sequence < this.#tail; sequence++) {
      offsets[sequence & (capacity - 1)] = this.#offsets[sequence & this.#mask]!
      finished[sequence & (capacity - 1)] = this.#finished[sequence & this.#mask]!
    }
    this.#offsets = offsets
    this.#finished = finished
    this.#mask = capacity - 1
  }
}
