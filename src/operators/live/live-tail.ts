import type { AnalyticsCall } from '../../core/call/analytics-call.ts'
import {
  isShown,
  type TailFilter,
  TailSample,
  type NotShown,
  maxCallsPerSecond,
} from '../../core/live-tail/tail.ts'
import { PostriderError } from '../../errors.ts'
import { callText } from '../why/describe.ts'

/** Reads calls as they come in, from the moment at which it was opened. */
export interface LiveCalls {
  /** Resolves when closed; rejects when it can never be read. */
  ended: Promise<void>
  close(): Promise<void>
}

export type TailLine =
  | { kind: 'call'; call: AnalyticsCall }
  /** Calls that match and are not shown. */
  | { kind: 'left_out'; leftOut: NotShown }
  /** Nothing came for a while, and the tail goes on. */
  | { kind: 'waiting' }

/** Where the lines of a tail go. */
export interface TailSink {
  /** False: what is written has not been read yet, and no more should be kept. */
  hasRoom(): boolean
  write(line: TailLine): void
}

export interface LiveTailOptions {
  /** Resolves once it is decided where it begins; calls that come in later reach `onCall`, in their order by user. */
  open(onCall: (call: AnalyticsCall) => void): Promise<LiveCalls>
  /** How often a tail that has nothing to show says so, in ms. */
  waitingMs?: number
}

const reportMs = 1_000

interface Tail {
  filter: TailFilter
  sink: TailSink
  sample: TailSample
  writtenAt: number
  end: PromiseWithResolvers<void>
}

/** One reader, and the tails that it serves. It is opened for the first of them, and closed after the last. */
interface SharedReader {
  tails: Set<Tail>
  opened: Promise<LiveCalls>
}

/**
 * Live tails of sources. All of them share one reader of the calls' topic; nobody waits for a tail: what a slow reader
 * has no room for is left out and counted.
 */
export class LiveTail {
  readonly #options: LiveTailOptions
  #reader: SharedReader | null = null
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(options: LiveTailOptions) {
    this.#options = options
  }

  /**
   * Begins a tail: calls that come in from now on go to its sink. What it resolves to ends when the signal aborts, and
   * rejects when the topic can never be read, or this is closed. Throws what opening the reader throws.
   */
  async begin(filter: TailFilter, sink: TailSink, signal: AbortSignal): Promise<{ ended: Promise<void> }> {
    const tail: Tail = {
      filter,
      sink,
      sample: new TailSample(),
      writtenAt: performance.now(),
      end: Promise.withResolvers(),
    }
    tail.end.promise.catch(() => {})
    const reader = (this.#reader ??= this.#newReader())
    reader.tails.add(tail)
    const leave = () => this.#leave(reader, tail)
    try {
      const { ended } = await reader.opened
      ended.catch(tail.end.reject)
    } catch (error) {
      leave()
      throw error
    }
    if (this.#isClosed) tail.end.reject(closed())
    if (signal.aborted) tail.end.resolve()
    const stop = () => tail.end.resolve()
    signal.addEventListener('abort', stop, { once: true })
    const ended = tail.end.promise.finally(() => {
      signal.removeEventListener('abort', stop)
      leave()
    })
    // It may end before its caller awaits it.
    ended.catch(() => {})
    return { ended }
  }

  /** Ends all tails. Idempotent. */
  async close(): Promise<void> {
    this.#isClosed = true
    const reader = this.#reader
    for (const { end } of reader?.tails ?? []) end.reject(closed())
    await reader?.opened.then((calls) => calls.close()).catch(() => {})
  }

  #newReader(): SharedReader {
    const tails = new Set<Tail>()
    const opened = this.#options.open((call) => {
      for (const tail of tails) show(tail, call)
    })
    opened.catch(() => {})
    this.#timer = setInterval(() => this.#report(tails), reportMs)
    return { tails, opened }
  }

  #leave(reader: SharedReader, tail: Tail): void {
    if (!reader.tails.delete(tail) || reader.tails.size > 0) return
    // A tail that begins meanwhile opens another one.
    if (this.#reader === reader) {
      this.#reader = null
      clearInterval(this.#timer)
    }
    reader.opened.then((calls) => calls.close()).catch(() => {})
  }

  #report(tails: Iterable<Tail>): void {
    const { waitingMs = 15_000 } = this.#options
    const now = performance.now()
    for (const tail of tails) {
      if (!tail.sink.hasRoom()) continue
      const leftOut = tail.sample.takeLeftOut()
      if (leftOut !== null) write(tail, { kind: 'left_out', leftOut })
      else if (now - tail.writtenAt >= waitingMs) write(tail, { kind: 'waiting' })
    }
  }
}

const closed = () =>
  new PostriderError('kafka_unavailable', 'the tail has ended, because what it reads from was closed')

function show(tail: Tail, call: AnalyticsCall): void {
  if (!isShown(tail.filter, call)) return
  if (tail.sample.shows(tail.sink.hasRoom(), performance.now())) write(tail, { kind: 'call', call })
}

function write(tail: Tail, line: TailLine): void {
  tail.writtenAt = performance.now()
  tail.sink.write(line)
}

/** A line of NDJSON, without its end. */
export function tailText(line: TailLine): string {
  switch (line.kind) {
    case 'call':
      return `{"call":${callText(line.call)}}`
    case 'left_out': {
      const { sampled, dropped } = line.leftOut
      return JSON.stringify({
        ...(sampled > 0 && { sampled: { leftOut: sampled, shownPerSecond: maxCallsPerSecond } }),
        ...(dropped > 0 && { dropped: { leftOut: dropped } }),
      })
    }
    case 'waiting':
      return JSON.stringify({ waiting: new Date().toISOString() })
  }
}
