import { minRestMs, recordsPerTurn } from '../../core/pacing/limits.ts'
import type { Planner } from '../plan/planner.ts'
import type { Block, AssignedPartition } from './assigned-partition.ts'

/** How often a head that is not due is checked again, in ms: the system clock can be set. */
const recheckMs = 1_000
/**
 * Takes records from partitions round-robin, one each, while there is room for them. A partition whose head
 * must wait is set aside until what it waits for wakes it.
 */
export class PartitionScheduler {
  readonly #plannerOf: (partition: AssignedPartition) => Planner
  readonly #onFull: (partition: AssignedPartition) => void
  readonly #hasPlenty: () => boolean
  readonly #ready: AssignedPartition[] = []
  #scheduled = false
  #stopped = false

  /**
   * @param onFull the partition waits for the memory budget to have room
   * @param hasPlenty nothing is taken in this turn of the event loop, because enough requests already wait
   */
  constructor(
    plannerOf: (partition: AssignedPartition) => Planner,
    onFull: (partition: AssignedPartition) => void,
    hasPlenty: () => boolean,
  ) {
    this.#plannerOf = plannerOf
    this.#onFull = onFull
    this.#hasPlenty = hasPlenty
  }

  stop(): void {
    this.#stopped = true
    this.#ready.length = 0
  }

  /** There are new records, or what the head waited for has happened. */
  wake(partition: AssignedPartition): void {
    partition.block = null
    if (partition.blockedTimer) clearTimeout(partition.blockedTimer)
    partition.blockedTimer = null
    if (partition.queued || this.#stopped) return
    partition.queued = true
    this.#ready.push(partition)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      if (!this.#hasPlenty()) this.#runTurn()
      if (this.#ready.length > 0) this.#schedule()
    })
  }

  #runTurn(): void {
    for (let left = recordsPerTurn; left > 0 && this.#ready.length > 0; left--) {
      const partition = this.#ready.shift()!
      partition.queued = false
      if (!partition.alive || partition.block || partition.buffered === 0) continue
      const block = this.#plannerOf(partition).planNext(partition)
      if (block) {
        this.#setAside(partition, block)
        continue
      }
      partition.owner.finished(partition)
      if (partition.buffered > 0) {
        partition.queued = true
        this.#ready.push(partition)
      }
    }
  }

  #setAside(partition: AssignedPartition, block: Block): void {
    partition.block = block
    switch (block.kind) {
      case 'endpoint':
        block.endpoint.wait(partition)
        return
      case 'full':
        this.#onFull(partition)
        return
      case 'turn':
        setImmediate(() => {
          if (partition.block === block) this.wake(partition)
        })
        return
      case 'until': {
        const ms = Math.max(block.at - Date.now(), minRestMs)
        partition.blockedTimer = setTimeout(() => this.wake(partition), Math.min(ms, recheckMs))
        partition.owner.waits(partition, ms)
        return
      }
      case 'pending': {
        const again = () => {
          if (partition.block === block) this.wake(partition)
        }
        block.settled.then(again, again)
      }
    }
  }
}
