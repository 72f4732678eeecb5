import type { Admin } from 'kafkajs'
import { decodeFinished } from '../../src/core/offset-runs.ts'
import type { Rig } from './rig.ts'

interface Partition {
  position: number
  /** By offset: epoch ms by which a commit held it as finished; 0: none has. */
  seenAt: Float64Array
}

const intervalMs = 50

/**
 * What both consumer groups have committed, looked at over and over: from when on each record counted as finished. A
 * record may be delivered again as long as it did not.
 */
export class CommitWatch {
  readonly #admin: Admin
  readonly #groups: readonly string[]
  readonly #partitions = new Map<string, Partition>()
  readonly rewinds: string[] = []
  looks = 0
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
    // What was committed last.
    await this.#look().catch(() => {})
    await this.#admin.disconnect().catch(() => {})
  }

  /** Epoch ms by which the record was seen to be committed; Infinity if it never was. */
  finishedBy(topic: string, partition: number, offset: number): number {
    return this.#partitions.get(`${topic}/${partition}`)?.seenAt[offset] || Infinity
  }

  position(topic: string, partition: number): number {
    return this.#partitions.get(`${topic}/${partition}`)?.position ?? 0
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
    const answers = await Promise.all(this.#groups.map((groupId) => this.#admin.fetchOffsets({ groupId })))
    const at = Date.now()
    this.looks++
    for (const { topic, partitions } of answers.flat()) {
      for (const { partition, offset, metadata } of partitions) {
        const position = Number(offset)
        if (position >= 0) this.#take(`${topic}/${partition}`, position, metadata, at)
      }
    }
  }

  #take(key: string, position: number, metadata: string | null, at: number): void {
    let known = this.#partitions.get(key)
    if (!known) {
      known = { position: 0, seenAt: new Float64Array(4_096) }
      this.#partitions.set(key, known)
    }
    if (position < known.position) this.rewinds.push(`${key}: ${known.position} → ${position} at ${at}`)
    const runs = decodeFinished(position, metadata)
    const end = Math.max(position, ...runs.map((run) => run.end))
    if (end > known.seenAt.length) {
      const larger = new Float64Array(Math.max(end, known.seenAt.length * 2))
      larger.set(known.seenAt)
      known.seenAt = larger
    }
    const { seenAt } = known
    const mark = (start: number, finish: number) => {
      for (let offset = start; offset < finish; offset++) if (seenAt[offset] === 0) seenAt[offset] = at
    }
    mark(known.position, position)
    for (const run of runs) mark(run.start, run.end)
    known.position = position
  }
}
