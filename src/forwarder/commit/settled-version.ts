import type { ResultCodes } from '../../core/ledger/result-codes.ts'
import type { PartitionLedger } from './partition-ledger.ts'

/** What a partition has that is not committed yet: an AssignedPartition. */
interface UnsettledPartition {
  readonly ledger: Pick<PartitionLedger, 'mark' | 'hasMarkedHeld'>
}

/**
 * The version of the settings that a heartbeat may show: routing goes by it, and everything that was held under an earlier
 * version is committed. So whoever sees it, from every forwarder, and reads the ledger after that, has all that a pause
 * has held which these settings have ended.
 *
 * Why that is so: routing is switched in one turn, and from then on nothing is held for a pause that is over. What had been
 * held until then lies in the partitions' results, until a commit is acknowledged whose tally names it. So the results
 * that are there at some moment after the switch are marked, and the version is shown once no marked one is left. A
 * partition that was lost without a commit is read again by its next owner, which has a version of its own; one that may
 * come back to this process, with its results, counts as its own.
 */
export class SettledVersion {
  readonly #codes: ResultCodes
  readonly #partitions: () => Iterable<UnsettledPartition>
  #applied = 0
  /** Is shown once everything that was marked is committed. */
  #awaited: number | null = null
  #shown = 0

  constructor(codes: ResultCodes, partitions: () => Iterable<UnsettledPartition>) {
    this.#codes = codes
    this.#partitions = partitions
  }

  get shown(): number {
    return this.#shown
  }

  /** Routing goes by this version from now on. */
  applied(version: number): void {
    this.#applied = version
    this.advance()
  }

  /** To be called after commits. Costs nothing while the newest version is shown. */
  advance(): void {
    while (this.#shown !== this.#applied) {
      if (this.#awaited === null) {
        this.#awaited = this.#applied
        for (const { ledger } of this.#partitions()) ledger.mark()
      }
      for (const { ledger } of this.#partitions()) if (ledger.hasMarkedHeld(this.#codes)) return
      this.#shown = this.#awaited
      this.#awaited = null
    }
  }
}
