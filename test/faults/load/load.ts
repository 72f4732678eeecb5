import type { Producer } from 'kafkajs'
import { someCall } from '../../support/calls/calls.ts'
import type { Rig } from '../rig.ts'
import { orderedSource } from './destinations.ts'
import { blockSize, type Traffic } from './traffic.ts'

const users = 5_000
/** At the ordered source, each with a few calls in a row. */
const [orderedUsers, inARow] = [24, 4]
const tickMs = 100
/** After an outage it catches up, at this many times its rate. */
const catchUp = 2.5
/** The next attempt after a write that failed. */
const againMs = 500

/** The properties of a call, whichever way it goes. */
export const propertiesOf = (seq: number) => ({
  n: seq,
  plan: 'pro',
  items: [{ sku: `sku-${seq % 97}`, price: 12.5 }],
})
/** @param source of the call */
export const userOf = (seq: number, source: string): string =>
  source === orderedSource ? `in-line-${Math.floor(seq / inARow) % orderedUsers}` : `user-${seq % users}`

/**
 * Writes the numbered calls that go that way to the calls topic, at a rate. A write that fails is repeated until it is
 * acknowledged, so a call may lie there twice: the topic tells.
 */
export class Load {
  readonly #rig: Rig
  readonly #traffic: Traffic
  /** Of all ways together: what this one's share is, the traffic says. */
  readonly #rate: number
  readonly #producer: Producer
  #stopped = false
  #running: Promise<void> | null = null

  constructor(rig: Rig, traffic: Traffic, rate: number) {
    this.#rig = rig
    this.#traffic = traffic
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
    const max = Math.max(1, Math.ceil((this.#rate * catchUp * tickMs) / 1_000 / blockSize))
    for (let next = 0; !this.#stopped;) {
      const due = Math.floor((((performance.now() - began) / 1_000) * this.#rate) / blockSize)
      const blocks: number[] = []
      for (; next < due && blocks.length < max; next++)
        if (this.#traffic.wayOf(next) === 'kafka') blocks.push(next)
      if (blocks.length > 0) await this.#write(blocks)
      await new Promise((resolve) => setTimeout(resolve, tickMs))
    }
  }

  async #write(blocks: readonly number[]): Promise<void> {
    const messages = blocks.flatMap((block) =>
      Array.from({ length: blockSize }, (_, index) => this.#message(block * blockSize + index)),
    )
    for (;;) {
      try {
        await this.#producer.send({ topic: this.#rig.topics.calls, acks: -1, messages })
        for (const block of blocks) this.#traffic.acknowledge(block)
        return
      } catch {
        for (const block of blocks) this.#traffic.sendAgain(block)
        await new Promise((resolve) => setTimeout(resolve, againMs))
      }
    }
  }

  #message(seq: number): { key: string; value: Buffer; headers: { seq: string } } {
    const headers = { seq: String(seq) }
    const source = this.#traffic.sourceOf(seq)
    const key = userOf(seq, source)
    const kind = this.#traffic.kindOf(seq)
    if (kind === 'poison') return { key, value: Buffer.from(`no Avro ${seq}`), headers }
    const value = this.#rig.codecs.calls.encode(
      someCall({
        messageId: `m${seq}`,
        sourceId: kind === 'stranger' ? 'nobody' : source,
        userId: key,
        timestamp: Date.now(),
        receivedAt: Date.now(),
        properties: JSON.stringify(propertiesOf(seq)),
      }),
    )
    return { key, value, headers }
  }
}
