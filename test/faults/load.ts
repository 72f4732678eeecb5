import type { Producer } from 'kafkajs'
import { someCall } from '../support/calls.ts'
import { sources } from './destinations.ts'
import { Random } from './random.ts'
import type { Rig } from './rig.ts'

/** What a record of the calls topic is. */
export type RecordKind = 'call' | 'poison' | 'stranger'

const users = 5_000
const tickMs = 100
/** After an outage it catches up, at this many times its rate. */
const catchUp = 2.5
const poisonShare = 0.002
const strangerShare = 0.002

/** The source of each call, by its number alone. */
export function sourceOf(seed: number, seq: number): string {
  let share = new Random(seed + seq * 7_919).next()
  for (const { id, share: part } of sources) {
    share -= part
    if (share < 0) return id
  }
  return sources[0]!.id
}

/** Mostly calls; some records are no calls at all, some are of a source that nobody knows. */
export function kindOf(seed: number, seq: number): RecordKind {
  const share = new Random(seed + seq * 104_729 + 1).next()
  return share < poisonShare ? 'poison' : share < poisonShare + strangerShare ? 'stranger' : 'call'
}

/**
 * Writes numbered calls to the calls topic at a rate. A write that fails is repeated until it is acknowledged, so a
 * call may lie there twice: the topic tells.
 */
export class Load {
  readonly #rig: Rig
  readonly #seed: number
  readonly #rate: number
  readonly #producer: Producer
  #stopped = false
  #running: Promise<void> | null = null
  /** Calls that were acknowledged: all below this number. */
  acknowledged = 0

  constructor(rig: Rig, seed: number, rate: number) {
    this.#rig = rig
    this.#seed = seed
    this.#rate = rate
    this.#producer = rig.producer()
  }

  async start(): Promise<void> {
    await this.#producer.connect()
    this.#running = this.#run()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await this.#running
    await this.#producer.disconnect().catch(() => {})
  }

  async #run(): Promise<void> {
    const began = performance.now()
    while (!this.#stopped) {
      const due = Math.floor(((performance.now() - began) / 1_000) * this.#rate)
      const most = Math.ceil((this.#rate * catchUp * tickMs) / 1_000)
      const count = Math.min(due - this.acknowledged, most)
      if (count > 0) await this.#write(count)
      await new Promise((resolve) => setTimeout(resolve, tickMs))
    }
  }

  async #write(count: number): Promise<void> {
    const messages = Array.from({ length: count }, (_, index) => this.#message(this.acknowledged + index))
    for (;;) {
      try {
        await this.#producer.send({ topic: this.#rig.topics.calls, acks: -1, messages })
        this.acknowledged += count
        return
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 500))
      }
    }
  }

  #message(seq: number): { key: string; value: Buffer; headers: { seq: string } } {
    const headers = { seq: String(seq) }
    const key = `user-${seq % users}`
    const kind = kindOf(this.#seed, seq)
    if (kind === 'poison') return { key, value: Buffer.from(`no Avro ${seq}`), headers }
    const value = this.#rig.codecs.calls.encode(
      someCall({
        messageId: `m${seq}`,
        sourceId: kind === 'stranger' ? 'nobody' : sourceOf(this.#seed, seq),
        userId: key,
        timestamp: Date.now(),
        receivedAt: Date.now(),
        properties: JSON.stringify({ n: seq, plan: 'pro', items: [{ sku: `sku-${seq % 97}`, price: 12.5 }] }),
      }),
    )
    return { key, value, headers }
  }
}
