import { setTimeout as delay } from 'node:timers/promises'
import type { Findings } from '../evidence/findings.ts'
import { propertiesOf, userOf } from './load.ts'
import { blockSize, type Traffic } from './traffic.ts'

/** What a collector said to the requests of a run. Times in ms. */
export interface Answers {
  requests: number
  /** By status; `none` where the connection broke, or nobody listened. */
  byStatus: Record<string, number>
  slowestMs: number
  /** That took longer than is promised, a line each. */
  late: string[]
  /** Calls that a 200 named as rejected: none is wrong. */
  rejected: string[]
}

const tickMs = 50
const catchUp = 2.5
/** As many requests at once as a handful of SDKs would send. */
const maxAtOnce = 24
const firstWaitMs = 200
const maxWaitMs = 2_000
/** After that nobody would wait: as long as it takes to see that it hangs. */
const giveUpMs = 60_000

/**
 * Sends the numbered calls that go that way to a collector in batches, as an SDK does: one that is not answered 200 is
 * sent again, with the same messageIds, until it is.
 */
export class HttpLoad {
  readonly answers: Answers = { requests: 0, byStatus: {}, slowestMs: 0, late: [], rejected: [] }
  readonly #url: string
  readonly #traffic: Traffic
  readonly #rate: number
  /** An answer must come within, in ms. */
  readonly #boundMs: number
  readonly #sending = new Set<Promise<void>>()
  #stopped = false
  #gaveUp = false
  #running: Promise<void> | null = null

  constructor(given: { url: string; traffic: Traffic; rate: number; boundMs: number }) {
    this.#url = given.url
    this.#traffic = given.traffic
    this.#rate = given.rate
    this.#boundMs = given.boundMs
  }

  start(): void {
    this.#running = this.#run()
  }

  /** No more batches; resolves to those that were not answered 200 within `withinMs`. */
  async stop(withinMs: number): Promise<number> {
    this.#stopped = true
    await this.#running
    await Promise.race([Promise.all(this.#sending), delay(withinMs, undefined, { ref: false })])
    this.#gaveUp = true
    return this.#sending.size
  }

  async #run(): Promise<void> {
    const began = performance.now()
    const max = Math.max(1, Math.ceil((this.#rate * catchUp * tickMs) / 1_000 / blockSize))
    for (let next = 0; !this.#stopped;) {
      const due = Math.floor((((performance.now() - began) / 1_000) * this.#rate) / blockSize)
      for (let begun = 0; next < due && begun < max && this.#sending.size < maxAtOnce; next++) {
        if (this.#traffic.wayOf(next) !== 'http') continue
        begun++
        const sending = this.#send(next).finally(() => this.#sending.delete(sending))
        this.#sending.add(sending)
      }
      await delay(tickMs)
    }
  }

  async #send(block: number): Promise<void> {
    const body = this.#body(block)
    for (let waitMs = firstWaitMs; !this.#gaveUp; waitMs = Math.min(waitMs * 2, maxWaitMs)) {
      if ((await this.#post(block, body)) === 200) return this.#traffic.acknowledge(block)
      this.#traffic.sendAgain(block)
      await delay(waitMs)
    }
  }

  async #post(block: number, body: string): Promise<number | null> {
    const { answers } = this
    const began = performance.now()
    const key = `key-of-${this.#traffic.sourceOf(block * blockSize)}`
    let status: number | null = null
    try {
      const response = await fetch(`${this.#url}/v1/batch`, {
        method: 'POST',
        headers: { authorization: `Basic ${btoa(`${key}:`)}`, 'content-type': 'application/json' },
        body,
        signal: AbortSignal.timeout(giveUpMs),
      })
      const text = await response.text()
      status = response.status
      if (status === 200 && text !== '{"success":true}') answers.rejected.push(text.slice(0, 300))
    } catch {
      // It is away, or went away.
    }
    const tookMs = Math.round(performance.now() - began)
    const name = status === null ? 'none' : String(status)
    answers.requests++
    answers.byStatus[name] = (answers.byStatus[name] ?? 0) + 1
    answers.slowestMs = Math.max(answers.slowestMs, tookMs)
    if (tookMs > this.#boundMs)
      answers.late.push(`${name} after ${tookMs} ms at ${Date.now()}, the batch of call ${block * blockSize}`)
    return status
  }

  #body(block: number): string {
    const timestamp = new Date().toISOString()
    const source = this.#traffic.sourceOf(block * blockSize)
    const batch = Array.from({ length: blockSize }, (_, index) => {
      const seq = block * blockSize + index
      return {
        ...{ type: 'track', event: 'Order Completed', messageId: `m${seq}`, timestamp },
        userId: userOf(seq, source),
        properties: propertiesOf(seq),
      }
    })
    // Without `sentAt`: by it times are corrected, by another amount each time that the batch is sent.
    return JSON.stringify({ batch })
  }
}

export function judgeAnswers({ late, rejected, byStatus }: Answers, findings: Findings): void {
  for (const each of late) findings.add('late answers of the collector', each)
  for (const each of rejected) findings.add('calls that the collector rejects', each)
  // 429 and 503 say that it cannot take them now; nothing else is wrong with them.
  for (const [status, count] of Object.entries(byStatus))
    if (!['200', '429', '503', 'none'].includes(status))
      findings.add('wrong answers of the collector', `${count} times ${status}`)
}
