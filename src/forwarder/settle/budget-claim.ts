import type { Claim, Ownership } from '../../core/offsets/ownership.ts'
import type { AssignedPartition } from '../consume/assigned-partition.ts'
import type { MemoryBudget } from '../send/memory-budget.ts'

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

  get ownership(): Ownership {
    return this.#partition.ownership
  }

  dropped(): void {
    this.#budget.free(this.#bytes)
  }
}
