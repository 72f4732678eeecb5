import { setTimeout as delay } from 'node:timers/promises'
import type { Rig } from '../rig.ts'

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

/** Who leads each partition, and who lost a replica: what a record that lies in Kafka twice may come from. */
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

  /** What happened to the partition and to the brokers between the two times (epoch ms), or just before or behind. */
  eventsOf(topic: string, partition: number, first: number, second: number): string[] {
    const isBetween = (from: number, to: number) => from <= second + slackMs && to >= first - slackMs
    const done = this.#rig.cluster.disturbances.filter(({ from, to }) => isBetween(from, to))
    const moves = this.#partitions.get(`${topic}/${partition}`)?.moves ?? []
    return [
      ...done.map(({ broker, what }) => `broker ${broker} ${what}`),
      ...moves.filter(({ after, by }) => isBetween(after, by)).map(({ what }) => what),
    ]
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
