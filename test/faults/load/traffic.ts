import { sources } from './destinations.ts'
import { Random } from '../random.ts'

/** What a record of the calls topic is. */
export type RecordKind = 'call' | 'poison' | 'stranger'
/** How a call gets there: by the runner's own producer, or by HTTP through a collector. */
export type Way = 'kafka' | 'http'

/** Calls are sent in blocks of this size, which take the same way: by HTTP each is one batch. */
export const blockSize = 20

const poisonShare = 0.002
const strangerShare = 0.002

/** What each numbered call is: all of it follows from the seed and the number. Who has been acknowledged is kept too. */
export class Traffic {
  readonly #seed: number
  readonly #httpShare: number
  readonly #shares: readonly { id: string; share: number }[]
  #acknowledged = new Uint8Array(1_024)
  #again = new Uint8Array(1_024)
  #blocks = 0
  /** Calls that were acknowledged, by the way that they went. */
  readonly counts: Record<Way, number> = { kafka: 0, http: 0 }

  /** @param only all calls are of this source, instead of the usual mixture */
  constructor(seed: number, { httpShare, only = null }: { httpShare: number; only?: string | null }) {
    this.#seed = seed
    this.#httpShare = httpShare
    this.#shares = only === null ? sources : [{ id: only, share: 1 }]
  }

  wayOf(block: number): Way {
    return this.#drawn(block, 15_485_863, 2) < this.#httpShare ? 'http' : 'kafka'
  }

  /** A request to a collector has one write key, hence one source. */
  sourceOf(seq: number): string {
    const block = Math.floor(seq / blockSize)
    let share = this.wayOf(block) === 'http' ? this.#drawn(block, 7_919, 0) : this.#drawn(seq, 7_919, 0)
    for (const { id, share: part } of this.#shares) {
      share -= part
      if (share < 0) return id
    }
    return this.#shares[0]!.id
  }

  /** Mostly calls; of those that the runner writes some are no calls at all, some are of a source that nobody knows. */
  kindOf(seq: number): RecordKind {
    if (this.wayOf(Math.floor(seq / blockSize)) === 'http') return 'call'
    const share = this.#drawn(seq, 104_729, 1)
    return share < poisonShare ? 'poison' : share < poisonShare + strangerShare ? 'stranger' : 'call'
  }

  acknowledge(block: number): void {
    this.#acknowledged = withRoomFor(this.#acknowledged, block)
    this.#acknowledged[block] = 1
    this.#blocks = Math.max(this.#blocks, block + 1)
    this.counts[this.wayOf(block)] += blockSize
  }

  /** It was not acknowledged, whatever became of it, and is sent once more. */
  sendAgain(block: number): void {
    this.#again = withRoomFor(this.#again, block)
    this.#again[block] = 1
  }

  isAcknowledged(seq: number): boolean {
    return this.#acknowledged[Math.floor(seq / blockSize)] === 1
  }

  /** Whether it was sent more than once: then it may lie in Kafka as often. */
  wasSentAgain(seq: number): boolean {
    return this.#again[Math.floor(seq / blockSize)] === 1
  }

  /** All acknowledged calls have lower numbers. */
  get end(): number {
    return this.#blocks * blockSize
  }

  get acknowledged(): number {
    return this.counts.kafka + this.counts.http
  }

  #drawn(number: number, factor: number, offset: number): number {
    return new Random(this.#seed + number * factor + offset).next()
  }
}

function withRoomFor(array: Uint8Array<ArrayBuffer>, index: number): Uint8Array<ArrayBuffer> {
  if (index < array.length) return array
  const larger = new Uint8Array(Math.max(index + 1, array.length * 2))
  larger.set(array)
  return larger
}
