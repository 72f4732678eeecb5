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

/** What to do with a batch: drop it, go back, take it, or take it although offsets before it were passed over. */
export type BatchVerdict = 'drop' | 'go_back' | 'take' | 'take_beyond'

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

  /**
   * After a seek the batch that was asked for begins at the sought offset; one with records that begins beyond was
   * on its way already. A batch of nothing but control records does not show where it was asked for.
   */
  verdict(from: number, isEmpty: boolean): BatchVerdict {
    if (this.#state !== 'seeking' && this.#state !== 'reading') return 'drop'
    if (from <= this.#next!) return 'take'
    return this.#state === 'seeking' && isEmpty ? 'take_beyond' : 'go_back'
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
