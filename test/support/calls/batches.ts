import type { TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { post, track } from './collectors.ts'

const batchSize = 20
const againMs = 100

/**
 * Sends batches to a collector as an SDK does: what is not answered 200 is sent again, with the same messageIds, until
 * it is.
 */
export class Batches {
  /** Of calls that were answered 200. */
  readonly taken: string[] = []
  /** Of each request: its status, and how long it took in ms. A connection that broke has status 0. */
  readonly answers: { status: number; tookMs: number }[] = []
  readonly #url: string
  readonly #signal: AbortSignal
  #next = 0

  /** Sends nothing any more after the test. */
  constructor({ signal }: Pick<TestContext, 'signal'>, url: string) {
    this.#url = url
    this.#signal = signal
  }

  /** Sends one batch until it is answered 200. */
  async send(): Promise<void> {
    const ids = Array.from({ length: batchSize }, () => `m${this.#next++}`)
    const batch = ids.map((id) => track(id, { userId: `u-${id}` }))
    for (;;) {
      this.#signal.throwIfAborted()
      const began = performance.now()
      const status = await post({ url: this.#url }, '/v1/batch', { batch }).then(
        (answer) => answer.status,
        () => 0,
      )
      this.answers.push({ status, tookMs: performance.now() - began })
      if (status === 200) break
      await delay(againMs)
    }
    this.taken.push(...ids)
  }

  /** Sends one batch after another on each connection, until stopped; resolves once all were answered 200. */
  run(connections: number, isOver: () => boolean, pauseMs: number): Promise<void> {
    const loop = async () => {
      while (!isOver()) {
        await this.send()
        await delay(pauseMs)
      }
    }
    return Promise.all(Array.from({ length: connections }, loop)).then(() => {})
  }
}
