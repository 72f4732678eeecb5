import type { Intake } from './intake.ts'
import type { Block, PartitionWork } from './partition-work.ts'

/** Records taken in one turn of the event loop: answers and heartbeats come in between. */
const turn = 128
/** A head that is not due is looked at again so often, in ms: the clock that it is due by can be set. */
const lookAgainMs = 1_000
/**
 * A partition whose head is not due rests for so long at least, in ms: then all that came due meanwhile is taken in one
 * go. Woken for each single one, a process that has little else to do takes half as much CPU again for it.
 */
const leastRestMs = 100

/**
 * Takes records from partitions in turns, one each, as long as there is room for them. A partition whose head
 * must wait is set aside until whoever it waits for wakes it.
 */
export class Taker {
  readonly #intakeOf: (partition: PartitionWork) => Intake
  readonly #whenRoomy: (partition: PartitionWork) => void
  readonly #took: (partition: PartitionWork) => void
  readonly #hasPlenty: () => boolean
  readonly #ready: PartitionWork[] = []
  #scheduled = false
  #stopped = false

  /**
   * @param whenRoomy the partition waits for the dispatcher to have room
   * @param took a record of the partition was taken
   * @param hasPlenty nothing is to be taken in this turn of the event loop, for there is enough to do
   */
  constructor(
    intakeOf: (partition: PartitionWork) => Intake,
    whenRoomy: (partition: PartitionWork) => void,
    took: (partition: PartitionWork) => void,
    hasPlenty: () => boolean,
  ) {
    this.#intakeOf = intakeOf
    this.#whenRoomy = whenRoomy
    this.#took = took
    this.#hasPlenty = hasPlenty
  }

  stop(): void {
    this.#stopped = true
    this.#ready.length = 0
  }

  /** There is something new to take, or what the head waited for has come. */
  wake(partition: PartitionWork): void {
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
      if (!this.#hasPlenty()) this.#takeTurn()
      if (this.#ready.length > 0) this.#schedule()
    })
  }

  #takeTurn(): void {
    for (let left = turn; left > 0 && this.#ready.length > 0; left--) {
      const partition = this.#ready.shift()!
      partition.queued = false
      if (!partition.alive || partition.block || partition.buffered === 0) continue
      const block = this.#intakeOf(partition).take(partition)
      if (block) {
        this.#setAside(partition, block)
        continue
      }
      this.#took(partition)
      if (partition.buffered > 0) {
        partition.queued = true
        this.#ready.push(partition)
      }
    }
  }

  #setAside(partition: PartitionWork, block: Block): void {
    partition.block = block
    switch (block.kind) {
      case 'endpoint':
        block.endpoint.wait(partition)
        return
      case 'full':
        this.#whenRoomy(partition)
        return
      case 'turn':
        setImmediate(() => {
          if (partition.block === block) this.wake(partition)
        })
        return
      case 'until': {
        const ms = Math.max(block.at - Date.now(), leastRestMs)
        partition.blockedTimer = setTimeout(() => this.wake(partition), Math.min(ms, lookAgainMs))
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
