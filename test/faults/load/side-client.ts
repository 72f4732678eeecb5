import { setTimeout as delay } from 'node:timers/promises'
import type { Findings } from '../evidence/findings.ts'

export interface SideRequest {
  url: string
  method: 'GET' | 'POST' | 'PATCH'
  headers: Record<string, string>
  body?: string
}

const firstWaitMs = 500
const maxWaitMs = 4_000
/**
 * A sync, a deletion or a replay may wait for brokers, and a replay reads millions of dead letters after an hour; after
 * that it is asked for again. Less than the 300 s after which fetch gives up by itself.
 */
const giveUpMs = 280_000
/** The part is away, or what it needs is; or what was begun before still holds the place. */
const isForLater = (status: number): boolean => [409, 429, 502, 503, 504].includes(status)

/** Sends requests until they are answered with success. */
export class SideClient {
  readonly #findings: Findings
  readonly #stopping = new AbortController()
  /** By status; `none` where there was no answer. */
  readonly byStatus: Record<string, number> = {}

  constructor(findings: Findings) {
    this.#findings = findings
  }

  /** From here on nothing is tried again. */
  stop(): void {
    this.#stopping.abort()
  }

  /** Resolves to the answer's JSON; null when it was refused for good (a finding), or `stop` came first. */
  async send(what: string, { url, method, headers, body }: SideRequest): Promise<unknown> {
    const { signal } = this.#stopping
    for (let waitMs = firstWaitMs; !signal.aborted; waitMs = Math.min(waitMs * 2, maxWaitMs)) {
      const answer = await fetch(url, {
        ...{ method, headers, ...(body !== undefined && { body }) },
        signal: AbortSignal.any([signal, AbortSignal.timeout(giveUpMs)]),
      })
        .then(async (response) => ({ status: response.status, text: await response.text() }))
        .catch(() => null)
      const name = answer === null ? 'none' : String(answer.status)
      this.byStatus[name] = (this.byStatus[name] ?? 0) + 1
      if (answer !== null && answer.status < 300) return JSON.parse(answer.text) as unknown
      if (answer !== null && !isForLater(answer.status)) {
        this.#findings.add('side work refused', `${what}: ${answer.status} ${answer.text.slice(0, 500)}`)
        return null
      }
      await delay(waitMs, undefined, { signal }).catch(() => {})
    }
    return null
  }
}
