import { isInRuns } from '../offsets/finished-offsets.ts'
import type { OffsetRun } from '../offsets/offset-runs.ts'
import { resized } from '../resized.ts'
import { dispositionLabels, type DispositionLabel } from './delivery-event.ts'
import type { DestinationCounts } from './tally.ts'

const labelCount = dispositionLabels.length
const labelIndex = Object.fromEntries(dispositionLabels.map((label, index) => [label, index])) as Record<
  DispositionLabel,
  number
>
const fieldOf = {
  delivered: 'delivered',
  retried: 'retried',
  deferred: 'deferred',
  dead_lettered: 'deadLettered',
  skipped: 'skipped',
  erased: 'erased',
} as const satisfies Record<DispositionLabel, keyof DestinationCounts>

/** Numbers what a delivery can come to, by destination: small numbers are all that the hot path keeps of a result. */
export class ResultCodes {
  readonly #indexes = new Map<string | null, number>()
  readonly #destinations: (string | null)[] = []

  /** @param destinationId null for a record without one */
  code(destinationId: string | null, label: DispositionLabel): number {
    let index = this.#indexes.get(destinationId)
    if (index === undefined) {
      index = this.#destinations.length
      this.#indexes.set(destinationId, index)
      this.#destinations.push(destinationId)
    }
    return index * labelCount + labelIndex[label]
  }

  /** Counts by code, as in a tally: by destination, ordered by its name. */
  named(counts: ReadonlyMap<number, number>): DestinationCounts[] {
    const byDestination = new Map<number, DestinationCounts>()
    for (const [code, count] of counts) {
      const index = Math.floor(code / labelCount)
      let entry = byDestination.get(index)
      if (!entry) byDestination.set(index, (entry = noCounts(this.#destinations[index]!)))
      entry[fieldOf[dispositionLabels[code % labelCount]!]] += count
    }
    return [...byDestination.values()].sort((a, b) =>
      (a.destinationId ?? '') < (b.destinationId ?? '') ? -1 : 1,
    )
  }
}

export const noCounts = (destinationId: string | null): DestinationCounts => ({
  destinationId,
  delivered: 0,
  retried: 0,
  deferred: 0,
  deadLettered: 0,
  skipped: 0,
  erased: 0,
})

/**
 * A fold over results: counts by code, and how many records were finished. A tally has few of the codes that there are
 * with a thousand destinations, so they are no list.
 */
export interface ResultSums {
  byCode: Map<number, number>
  records: number
}

export const noSums = (): ResultSums => ({ byCode: new Map(), records: 0 })

/**
 * What became of the deliveries of one partition's records, until a commit that holds the records has been
 * acknowledged: offset, code, and whether it was the record's last. Twelve bytes a delivery.
 */
export class ResultLog {
  #offsets = new Float64Array(256)
  /** The code, doubled, and one more where the record is finished with it. */
  #codes = new Uint32Array(256)
  #length = 0

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
      sums.byCode.set(code >> 1, (sums.byCode.get(code >> 1) ?? 0) + 1)
      sums.records += code & 1
    }
  }

  /** A log of its own of the offsets within the runs. */
  only(runs: readonly OffsetRun[]): ResultLog {
    const log = new ResultLog()
    for (let index = 0; index < this.#length; index++) {
      const code = this.#codes[index]!
      if (isInRuns(runs, this.#offsets[index]!)) log.add(this.#offsets[index]!, code >> 1, (code & 1) === 1)
    }
    return log
  }

  /** Forgets the offsets within the runs. */
  drop(runs: readonly OffsetRun[]): void {
    let kept = 0
    for (let index = 0; index < this.#length; index++) {
      if (isInRuns(runs, this.#offsets[index]!)) continue
      this.#offsets[kept] = this.#offsets[index]!
      this.#codes[kept] = this.#codes[index]!
      kept++
    }
    this.#length = kept
    if (this.#offsets.length > 4_096 && kept * 8 < this.#offsets.length)
      this.#resize(this.#offsets.length / 4)
  }

  #resize(capacity: number): void {
    this.#offsets = resized(this.#offsets, capacity)
    this.#codes = resized(this.#codes, capacity)
  }
}
