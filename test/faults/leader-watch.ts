import { setTimeout as delay } from 'node:timers/promises'
import type { Disturbance } from './cluster.ts'
import type { Rig } from './rig.ts'

/** Between these two looks (epoch ms) a partition got another leader, or has lost an in-sync replica. */
interface Move {
  after: number
  by: number
  what: 'leader moved' | 'replica lost'
}

interface Seen {
  leader: number
  isr: readonly number[]
  at: number
  moves: Move[]
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
  readonly #partitions = new Map<string, Seen>()
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
    return moves.find(({ after, by }) => isBetween(after, by))?.what ?? null
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      const askedAt = Date.now()
      try {
        const found = await this.#rig.state.partitions()
        for (const { topic, partition, leader, isr } of found)
          this.#see(`${topic}/${partition}`, leader, isr, askedAt)
      } catch {
        // No broker answers: the next look will tell.
      }
      await delay(intervalMs)
    }
  }

  #see(key: string, leader: number, isr: readonly number[], at: number): void {
    const seen = this.#partitions.get(key)
    if (!seen) {
      this.#partitions.set(key, { leader, isr, at, moves: [] })
      return
    }
    const between = { after: seen.at, by: Date.now() }
    if (seen.leader !== leader) {
      this.moves++
      seen.moves.push({ ...between, what: 'leader moved' })
    } else if (seen.isr.some((id) => !isr.includes(id))) {
      seen.moves.push({ ...between, what: 'replica lost' })
    }
    seen.leader = leader
    seen.isr = isr
    seen.at = at
  }
}
