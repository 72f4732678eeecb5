// A destination that its users pause and resume by turns, and that gets what it has had once more.
import { setTimeout as delay } from 'node:timers/promises'
import type { SideClient } from './side-client.ts'

export const heldDestination = 'side-held'

/** Times are epoch ms: `from` is when it was first asked for, `to` when it was acknowledged. */
export interface Acknowledged {
  from: number
  to: number
}

/** A replay, as the API lists it. */
export interface ListedReplay {
  id: string
  destinationId: string
  pauseId: string | null
  state: string
}

export interface HoldNotes {
  /** Its settings did not change from then on, but for pauses. Epoch ms. */
  begunAt: number
  /** Each was resumed in the end. */
  pauses: (Acknowledged & { id: string })[]
  /** Of all that came in before `until`. */
  again: (Acknowledged & { id: string; until: number }) | null
  /** Its replays, as they were at the end. */
  replays: ListedReplay[]
}

const lookMs = 500

export class SideHolds {
  readonly notes: HoldNotes = { begunAt: Date.now(), pauses: [], again: null, replays: [] }
  readonly #client: SideClient
  readonly #api: string
  readonly #token: string
  #isPaused = false

  constructor(given: { client: SideClient; consoleUrl: string; token: string }) {
    this.#client = given.client
    this.#api = `${given.consoleUrl}/api/v1`
    this.#token = given.token
  }

  /** Pauses it, or resumes it. */
  async turn(): Promise<void> {
    if (this.#isPaused) return this.#resume()
    const from = Date.now()
    const answer = (await this.#ask('a pause', 'POST', `/destinations/${heldDestination}/pause`, {})) as {
      pause: { id: string }
    } | null
    if (!answer) return
    this.#isPaused = true
    this.notes.pauses.push({ from, to: Date.now(), id: answer.pause.id })
  }

  /** Begins to send everything once more. */
  async sendAgain(): Promise<void> {
    const from = Date.now()
    const terms = {
      destinationId: heldDestination,
      since: new Date(this.notes.begunAt - 60_000).toISOString(),
      only: ['skipped', 'failed', 'delivered'],
    }
    const headers = { 'idempotency-key': 'all-of-side-held' }
    const answer = (await this.#ask('a replay', 'POST', '/replays', terms, headers)) as {
      id: string
      until: string
    } | null
    if (!answer) return
    this.notes.again = { from, to: Date.now(), id: answer.id, until: Date.parse(answer.until) }
  }

  /** Resolves once it is resumed, and all its replays have ended; or the client was stopped. */
  async end(): Promise<void> {
    if (this.#isPaused) await this.#resume()
    const { notes } = this
    for (;;) {
      const answer = (await this.#ask('the replays', 'GET', '/replays?limit=200')) as {
        data: ListedReplay[]
      } | null
      if (!answer) return
      notes.replays = answer.data.filter(({ destinationId }) => destinationId === heldDestination)
      const ended = new Set(
        notes.replays.filter(({ state }) => state !== 'running').map(({ pauseId }) => pauseId),
      )
      const isAgainOver = notes.again === null || ended.has(null)
      if (isAgainOver && notes.pauses.every(({ id }) => ended.has(id))) return
      await delay(lookMs)
    }
  }

  async #resume(): Promise<void> {
    if (await this.#ask('a resume', 'POST', `/destinations/${heldDestination}/resume`)) this.#isPaused = false
  }

  #ask(
    what: string,
    method: 'GET' | 'POST',
    path: string,
    json?: object,
    headers: Record<string, string> = {},
  ): Promise<unknown> {
    return this.#client.send(what, {
      ...{ url: `${this.#api}${path}`, method },
      headers: {
        authorization: `Bearer ${this.#token}`,
        ...(json && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(json && { body: JSON.stringify(json) }),
    })
  }
}
