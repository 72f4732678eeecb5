import type { AssignedPartition } from './assigned-partition.ts'
import type { MemoryBudget } from '../send/memory-budget.ts'

/** Whether the partition that a record came from is still owned, so that the record may be written. */
export interface Claim {
  /** `uncertain`: the group may have assigned its partition to another member. */
  readonly ownership: 'owned' | 'uncertain' | 'lost'
  /** The partition was lost before the record was sent; it is not written, and the next owner decides again. */
  dropped(): void
}

/** For records that no other process would write. */
export const unclaimed: Claim = { ownership: 'owned', dropped() {} }

/** A record that holds part of the memory budget until the broker has it, and is dropped with its partition. */
export class BudgetClaim implements Claim {
  readonly #partition: AssignedPartition
  readonly #budget: MemoryBudget
  readonly #bytes: number

  constructor(partition: AssignedPartition, budget: MemoryBudget, bytes: number) {
    this.#partition = partition
    this.#budget = budget
    this.#bytes = bytes
  }

  get ownership(): Claim['ownership'] {
    return this.#partition.ownership
  }

  dropped(): void {
    this.#budget.free(this.#bytes)
  }
}
