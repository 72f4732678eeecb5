import { signal, type Signal } from '@preact/signals'
import { ApiFailure, linesOf, send } from '../api/request.ts'
import { membersOf } from './json-text.ts'

/** Calls that are held; older ones are forgotten. */
export const maxHeld = 500
/** How often what came in is shown, in ms. */
const showMs = 200
const againMs = 3_000

export interface TailFilters {
  type: string
  event: string
  user: string
}

export interface TailState {
  /** `waiting`: it broke off, and is tried again. `ended`: trying again would not help. */
  is: 'connecting' | 'open' | 'waiting' | 'ended'
  isPaused: boolean
  /** The newest first. */
  calls: readonly TailedCall[]
  /** Since it began, or was cleared. */
  came: number
  /** Matched, and were not sent to this page: beyond the rate, or because it read too slowly. */
  leftOut: number
  shownPerSecond: number | null
  /** Came while it was paused, and are not held. */
  whilePaused: number
  failure: ApiFailure | null
}

const empty = { calls: [], came: 0, leftOut: 0, whilePaused: 0 }

interface LeftOut {
  sampled?: { leftOut: number; shownPerSecond: number }
  dropped?: { leftOut: number }
  error?: { code: string; message: string }
}

/** The calls of one source as they come in, until it is closed. */
export class Tail {
  readonly state: Signal<TailState> = signal({
    ...empty,
    is: 'connecting',
    isPaused: false,
    shownPerSecond: null,
    failure: null,
  })
  readonly #closing = new AbortController()
  /** Not shown yet, the oldest first. */
  #arrived: TailedCall[] = []
  #count = 0
  #timer: number | undefined

  constructor(source: string, filters: TailFilters) {
    void this.#run(source, filters)
  }

  close(): void {
    this.#closing.abort()
    window.clearTimeout(this.#timer)
  }

  pause(isPaused: boolean): void {
    this.#show()
    this.#change({ isPaused })
  }

  clear(): void {
    this.#arrived = []
    this.#change(empty)
  }

  #change(changes: Partial<TailState>): void {
    this.state.value = { ...this.state.peek(), ...changes }
  }

  async #run(source: string, filters: TailFilters): Promise<void> {
    const { signal } = this.#closing
    while (!signal.aborted) {
      try {
        const response = await send('GET /sources/{id}/tail', {
          id: source,
          query: { ...filters },
          headers: { Accept: 'application/x-ndjson' },
          signal,
        })
        this.#change({ is: 'open', failure: null })
        for await (const line of linesOf(response)) this.#take(line)
        this.#change({ is: 'waiting' })
      } catch (error) {
        if (signal.aborted) return
        const canRetry = !(error instanceof ApiFailure) || ![400, 401, 403, 404].includes(error.status)
        this.#change({
          is: canRetry ? 'waiting' : 'ended',
          // A stream that breaks off rejects with what the browser makes of it.
          failure: error instanceof ApiFailure ? error : null,
        })
        if (!canRetry) return
      }
      await new Promise((resolve) => window.setTimeout(resolve, againMs))
    }
  }

  #take(line: string): void {
    const text = callTextOf(line)
    if (text === null) return this.#note(JSON.parse(line) as LeftOut)
    if (this.state.peek().isPaused) {
      this.#change({ whilePaused: this.state.peek().whilePaused + 1 })
      return
    }
    this.#arrived.push(tailedCall(text, ++this.#count))
    // A page in the background has its timers slowed down, and must not hold more for it.
    if (this.#arrived.length >= maxHeld / 2) this.#show()
    else this.#timer ??= window.setTimeout(() => this.#show(), showMs)
  }

  #note({ sampled, dropped, error }: LeftOut): void {
    if (error) throw new ApiFailure(503, error)
    const leftOut = (sampled?.leftOut ?? 0) + (dropped?.leftOut ?? 0)
    if (leftOut === 0) return
    const state = this.state.peek()
    this.#change({
      leftOut: state.leftOut + leftOut,
      shownPerSecond: sampled?.shownPerSecond ?? state.shownPerSecond,
    })
  }

  #show(): void {
    window.clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#arrived.length === 0) return
    const { calls, came } = this.state.peek()
    const arrived = this.#arrived.reverse()
    this.#arrived = []
    this.#change({ calls: [...arrived, ...calls].slice(0, maxHeld), came: came + arrived.length })
  }
}

/** A call of a tail. Its free-form maps are the text that was sent. */
export interface TailedCall {
  /** For this page only. */
  key: number
  /** The whole call, as the API sent it. */
  text: string
  messageId: string
  type: string
  receivedAt: string | null
  user: string | null
  /** What it is about, by its type: an event, a page, a group, the id before. */
  what: string | null
  /** Of `properties` or `traits`, what fits on a line. */
  preview: string
  fault: string | null
}

const previewLength = 200

/** @param text a JSON object, as the API's `call` */
export function tailedCall(text: string, key: number): TailedCall {
  const call = JSON.parse(text) as Record<string, string | undefined>
  const { messageId = '', type = 'unknown', receivedAt = null, userId, anonymousId, fault = null } = call
  const about = { group: call.groupId, alias: call.previousId }[type]
  const members = membersOf(text)
  const map = members.get('properties') ?? members.get('traits') ?? ''
  return {
    key,
    text,
    messageId,
    type,
    receivedAt,
    user: userId ?? anonymousId ?? null,
    what: call.event ?? call.name ?? about ?? null,
    preview: map === '{}' ? '' : map.slice(0, previewLength),
    fault,
  }
}

/** The text of a line's `call`; null of a line that has none. */
export function callTextOf(line: string): string | null {
  const [begin, end] = ['{"call":', '}']
  return line.startsWith(begin) ? line.slice(begin.length, line.lastIndexOf(end)) : null
}
