import { setTimeout as delay } from 'node:timers/promises'
import type { Disturbance } from './cluster.ts'
import type { Rig } from './rig.ts'

/** Between these two looks (epoch ms) a partition got another leader, or lost it. */
interface Move {
  after: number
  by: number
}

const intervalMs = 200
/** A request is on its way for a moment before its records are written, and clocks are read in whole ms. */
const slackMs = 500

/**
 * Who leads each partition. A record that lies in Kafka twice is explained by an answer that was lost: its partition got
 * another leader meanwhile, or something was done to a broker that leads or follows it.
 */
export class LeaderWatch {
  readonly #rig: Rig
  readonly #partitions = new Map<string, { leader: number; at: number; moves: Move[] }>()
  moves = 0
  #stopped = false
  #running: Promise<void> = Promise.resolve()

  constructor(rig: Rig) {
    this.#rig = rig
  }

  start(): void {
    this.#running = this.#run()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await this.#running
  }

  /** Why a record that was written at the first time may have been written again at the second one; null: no reason. */
  causeOf(topic: string, partition: number, first: number, second: number): string | null {
    const isBetween = (from: number, to: number) => from <= second + slackMs && to >= first - slackMs
    const done = this.#rig.cluster.disturbances.find(
      ({ what, from, to }: Disturbance) => what !== 'started' && isBetween(from, to),
    )
    if (done) return done.what
    const moves = this.#partitions.get(`${topic}/${partition}`)?.moves ?? []
    return moves.some(({ after, by }) => isBetween(after, by)) ? 'leader moved' : null
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      const askedAt = Date.now()
      try {
        const found = await this.#rig.state.partitions()
        for (const { topic, partition, leader } of found) this.#see(`${topic}/${partition}`, leader, askedAt)
      } catch {
        // No broker answers: the next look will tell.
      }
      await delay(intervalMs)
    }
  }

  #see(key: string, leader: number, at: number): void {
    const seen = this.#partitions.get(key)
    if (!seen) {
      this.#partitions.set(key, { leader, at, moves: [] })
      return
    }
    if (seen.leader !== leader) {
      this.moves++
      seen.moves.push({ after: seen.at, by: Date.now() })
      seen.leader = leader
    }
    seen.at = at
  }
}
