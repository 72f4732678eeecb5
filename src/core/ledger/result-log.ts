import { isInRuns, type OffsetRun } from '../offsets/offset-runs.ts'
import { resized } from '../resized.ts'

/**
 * A fold over results: counts by code, and how many records were finished. A tally has few of the codes that there are
 * with a thousand destinations, so they are no list.
 */
export interface ResultSums {
  byCode: Map<number, number>
  records: number
}

export function addCode(byCode: Map<number, number>, code: number, count: number): void {
  byCode.set(code, (byCode.get(code) ?? 0) + count)
}

export const noSums = (): ResultSums => ({ byCode: new Map(), records: 0 })

/**
 * What became of the deliveries of one partition's records, and how those of their attempts ended that decided nothing,
 * until a commit that holds the records has been acknowledged: offset, code (see ResultCodes), and whether it was the
 * record's last. Twelve bytes each.
 */
export class ResultLog {
  #offsets = new Float64Array(256)
  /** The code, doubled, and one more where the record is finished with it. */
  #codes = new Uint32Array(256)
  #length = 0
  /** How many of the results, from the first on, the last `mark` found. */
  #marked = 0

  get length(): number {
    return this.#length
  }

  add(offset: number, code: number, last: boolean): void {
    if (this.#length === this.#offsets.length) this.#resize(this.#length * 2)
    this.#offsets[this.#length] = offset
    this.#codes[this.#length] = code * 2 + (last ? 1 : 0)
    this.#length++
  }

  /** Adds up the results of the offsets within the runs. */
  sum(runs: readonly OffsetRun[], sums: ResultSums): void {
    for (let index = 0; index < this.#length; index++) {
      if (!isInRuns(runs, this.#offsets[index]!)) continue
      const code = this.#codes[index]!
      addCode(sums.byCode, code >>> 1, 1)
      sums.records += code & 1
    }
  }

  /** Where results with one of these codes lie within the runs: offsets by code, in no order. */
  offsetsWith(codes: ReadonlySet<number>, runs: readonly OffsetRun[]): Map<number, number[]> {
    const found = new Map<number, number[]>()
    for (let index = 0; index < this.#length; index++) {
      const code = this.#codes[index]! >>> 1
      if (!codes.has(code) || !isInRuns(runs, this.#offsets[index]!)) continue
      const list = found.get(code)
      if (list) list.push(this.#offsets[index]!)
      else found.set(code, [this.#offsets[index]!])
    }
    return found
  }

  /** Remembers what is here now. */
  mark(): void {
    this.#marked = this.#length
  }

  /** Whether there is still any of what was here at the last `mark` with such a code. */
  hasMarked(isWanted: (code: number) => boolean): boolean {
    for (let index = 0; index < this.#marked; index++) if (isWanted(this.#codes[index]! >>> 1)) return true
    return false
  }

  /** A log of its own of the offsets within the runs. All of it counts as marked. */
  only(runs: readonly OffsetRun[]): ResultLog {
    const log = new ResultLog()
    for (let index = 0; index < this.#length; index++) {
      const code = this.#codes[index]!
      if (isInRuns(runs, this.#offsets[index]!)) log.add(this.#offsets[index]!, code >>> 1, (code & 1) === 1)
    }
    log.mark()
    return log
  }

  /** Forgets the offsets within the runs. */
  drop(runs: readonly OffsetRun[]): void {
    let kept = 0
    const marked = this.#marked
    for (let index = 0; index < this.#length; index++) {
      if (index === marked) this.#marked = kept
      if (isInRuns(runs, this.#offsets[index]!)) continue
      this.#offsets[kept] = this.#offsets[index]!
      this.#codes[kept] = this.#codes[index]!
      kept++
    }
    if (marked === this.#length) this.#marked = kept
    this.#length = kept
    if (this.#offsets.length > 4_096 && kept * 8 < this.#offsets.length)
      this.#resize(this.#offsets.length / 4)
  }

  #resize(capacity: number): void {
    this.#offsets = resized(this.#offsets, capacity)
    this.#codes = resized(this.#codes, capacity)
  }
}
