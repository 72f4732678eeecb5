import kafkajs, { type Admin } from 'kafkajs'
import type { Rig } from '../rig.ts'

const { AssignerProtocol } = kafkajs

/** Between these two looks (epoch ms) a partition got another owner. */
interface Move {
  after: number
  by: number
}

interface Seen {
  memberId: string
  at: number
  moves: Move[]
}

const intervalMs = 100

/**
 * Who owns each partition, as the groups' coordinator sees it. Whatever comes twice came from two owners: one that
 * keeps its partition repeats nothing.
 */
export class OwnerWatch {
  readonly #admin: Admin
  readonly #groups: string[]
  readonly #partitions = new Map<string, Seen>()
  moves = 0
  #stopped = false
  #running: Promise<void> | null = null

  constructor(rig: Rig) {
    const { groupId } = rig.config
    this.#groups = [groupId, `${groupId}.retries`]
    this.#admin = rig.kafka.admin({ retry: { retries: 0 } })
  }

  start(): void {
    this.#running = this.#run()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await this.#running
    await this.#admin.disconnect().catch(() => {})
  }

  /** Whether it can have got another owner from the one time to the other. */
  movedBetween(topic: string, partition: number, from: number, to: number): boolean {
    const moves = this.#partitions.get(`${topic}/${partition}`)?.moves ?? []
    return moves.some(({ after, by }) => after <= to && by >= from)
  }

  async #run(): Promise<void> {
    let connected = false
    while (!this.#stopped) {
      try {
        if (!connected) await this.#admin.connect()
        connected = true
        await this.#look()
      } catch {
        // The broker is away: the next look will tell.
        connected = false
        await this.#admin.disconnect().catch(() => {})
      }
      await new Promise((resolve) => setTimeout(resolve, intervalMs))
    }
  }

  async #look(): Promise<void> {
    const askedAt = Date.now()
    const { groups } = await this.#admin.describeGroups(this.#groups)
    const answeredAt = Date.now()
    for (const { state, members } of groups) {
      if (state !== 'Stable') continue
      for (const { memberId, memberAssignment } of members) {
        const assigned = AssignerProtocol.MemberAssignment.decode(memberAssignment)?.assignment ?? {}
        for (const [topic, partitions] of Object.entries(assigned))
          for (const partition of partitions)
            this.#take(`${topic}/${partition}`, memberId, askedAt, answeredAt)
      }
    }
  }

  #take(key: string, memberId: string, askedAt: number, answeredAt: number): void {
    const seen = this.#partitions.get(key)
    if (!seen) {
      this.#partitions.set(key, { memberId, at: askedAt, moves: [] })
      return
    }
    if (seen.memberId !== memberId) {
      this.moves++
      seen.moves.push({ after: seen.at, by: answeredAt })
      seen.memberId = memberId
    }
    seen.at = askedAt
  }
}
