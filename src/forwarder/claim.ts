import type { PartitionWork } from './partition-work.ts'
import type { Room } from './room.ts'

/** Whose record it is, and whether it is still his to write. */
export interface Claim {
  /** `unsure`: the group may have given its partition to somebody else. */
  readonly standing: 'ours' | 'unsure' | 'lost'
  /** It was lost before the record was on its way, which was not written: the next owner decides anew. */
  dropped(): void
}

/** Of what nobody else would write. */
export const unclaimed: Claim = { standing: 'ours', dropped() {} }

/** A record that holds room until it is with the broker, and goes with its partition. */
export class RoomClaim implements Claim {
  readonly #partition: PartitionWork
  readonly #room: Room
  readonly #bytes: number

  constructor(partition: PartitionWork, room: Room, bytes: number) {
    this.#partition = partition
    this.#room = room
    this.#bytes = bytes
  }

  get standing(): Claim['standing'] {
    return this.#partition.standing
  }

  dropped(): void {
    this.#room.free(this.#bytes)
  }
}
