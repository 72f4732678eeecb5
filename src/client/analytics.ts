import type {
  AliasCall,
  ClientCallType,
  GroupCall,
  IdentifyCall,
  PageCall,
  ScreenCall,
  TrackCall,
} from './calls.ts'
import { CallQueue, Turnstile } from './call-queue.ts'
import { debugFrom } from './debug.ts'
import type { Debug } from './debug.ts'
import { deliverBatch } from './deliver-batch.ts'
import { AnalyticsError } from './errors.ts'
import type { DeliveryError, UndeliveredCall } from './errors.ts'
import { longestTimeoutMs, readOptions } from './options.ts'
import type { AnalyticsOptions, ClientSettings } from './options.ts'
import { envelopeBytes, maxBatchBytes } from './transport.ts'
import { maxCallBytes, writeCall } from './write-call.ts'
import type { WrittenCall } from './write-call.ts'

const maxItemBytes = maxBatchBytes - envelopeBytes
/** For a transport to close its connections after the last send. */
const transportCloseMs = 1_000

/** What `close()` could not do. */
export interface CloseResult {
  /** Calls that were taken and given up after `close()` was called; `onError` got them too. */
  undelivered: readonly UndeliveredCall[]
}

/**
 * Takes calls and sends them in the background, in batches, in their order. No method ever rejects, so none has
 * to be awaited: what goes wrong with a call is thrown at the call, what goes wrong later goes to `onError`.
 *
 * It holds its timer and its connection only while calls wait: then a process stays alive until they are
 * delivered or given up. An idle client keeps no process alive, and none after `close()`. What waits when
 * `process.exit()` is called is lost: await `close()` before.
 *
 * The life of its sending:
 *
 *     idle ──a call──▶ gathering ──flushAt, flushAfter, 500 KB, flush, close──▶ sending ──┐
 *       ▲                  ▲                                                     │  ▲     │ more is due
 *       └──nothing waits───┴──────────────── a few wait ─────────────────────────┘  └─────┘
 *
 * While one batch is being sent, with all of its retries, later calls gather: so one user's calls keep their order.
 */
export class Analytics {
  readonly #settings: ClientSettings
  readonly #debug: Debug | null
  readonly #queue: CallQueue
  readonly #turnstile = new Turnstile(() => this.#queue.roomFor(maxCallBytes))
  readonly #givingUp = new AbortController()
  #isSending = false
  /** Why the newest attempt failed; null when it succeeded. */
  #lastFault: string | null = null
  #timer: NodeJS.Timeout | null = null
  /** By performance.now(). */
  #lastFlushAt = performance.now()
  /** Counts of calls so far; calls are settled in the order in which they were taken. */
  #accepted = 0
  #begun = 0
  #settled = 0
  /** Up to this count of accepted calls a flush was asked for. */
  #flushTo = 0
  #flushWaiters: { upTo: number; resolve(): void }[] = []
  #closed: Promise<CloseResult> | null = null
  #undelivered: UndeliveredCall[] = []

  /**
   * `writeKey` is the source's; a Kafka transport names the source itself and takes an empty one. Throws
   * AnalyticsError `invalid_option`.
   */
  constructor(writeKey: string, options: AnalyticsOptions = {}) {
    this.#settings = readOptions(writeKey, options)
    this.#queue = new CallQueue(this.#settings.limits)
    this.#debug = debugFrom(process.env.DEBUG)
    this.#debug?.(`sends to ${this.#settings.transport.name}`)
  }

  /** Each of these throws AnalyticsError `invalid_call`, `message_too_large`, `queue_full`, `closed`. */
  identify(call: IdentifyCall): void {
    this.#accept('identify', call)
  }

  track(call: TrackCall): void {
    this.#accept('track', call)
  }

  page(call: PageCall): void {
    this.#accept('page', call)
  }

  screen(call: ScreenCall): void {
    this.#accept('screen', call)
  }

  group(call: GroupCall): void {
    this.#accept('group', call)
  }

  alias(call: AliasCall): void {
    this.#accept('alias', call)
  }

  /**
   * Resolves when there is room for a call of any size, for as many waiters as there is room for. After `close()`
   * at once: the next call says so.
   */
  ready(): Promise<void> {
    if (this.#closed !== null) return Promise.resolve()
    const ready = this.#turnstile.wait()
    if (this.#turnstile.someWait) this.#requestFlush()
    return ready
  }

  /** Resolves once every call that was taken before is delivered, or was named in `onError`. Sends without delay. */
  flush(): Promise<void> {
    if (this.#settled >= this.#accepted) return Promise.resolve()
    this.#requestFlush()
    const upTo = this.#accepted
    return new Promise((resolve) => this.#flushWaiters.push({ upTo, resolve }))
  }

  /**
   * Takes no more calls, delivers those that it has, and lets go of its connections; the process can then end. What
   * is not delivered within `timeout` (ms; the option `closeTimeout` unless given) is given up, goes to `onError`
   * and is in the result. The first call's timeout counts, later calls get the same promise.
   */
  close({ timeout = this.#settings.closeTimeoutMs }: { timeout?: number } = {}): Promise<CloseResult> {
    this.#closed ??= this.#close(timeout)
    return this.#closed
  }

  async #close(timeoutMs: number): Promise<CloseResult> {
    const { transport } = this.#settings
    this.#debug?.(`closes within ${timeoutMs} ms`)
    const deadline = setTimeout(() => this.#givingUp.abort(), Math.min(timeoutMs, longestTimeoutMs))
    // A caller that waits for room is refused at its next call.
    this.#turnstile.letAllIn()
    await this.flush()
    clearTimeout(deadline)
    await within(transportCloseMs, async () => transport.close()).catch((error: unknown) =>
      this.#debug?.(`closing ${transport.name}: ${String(error)}`),
    )
    this.#debug?.(`closed, ${this.#undelivered.length} calls undelivered`)
    return { undelivered: this.#undelivered }
  }

  #accept(type: ClientCallType, given: object): void {
    if (this.#closed !== null)
      throw new AnalyticsError('closed', `${type}: the client is closed and takes no more calls`)
    // Before the work of writing the call, for there may be many while a collector is away.
    if (this.#queue.isFull) throw this.#queueFull(type)
    const call = writeCall(type, given, Date.now())
    if (!this.#queue.offer(call)) throw this.#queueFull(type)
    this.#accepted++
    this.#debug?.(`took ${type} ${call.messageId}, ${call.bytes} bytes${leftOut(call)}`)
    if (this.#isSending) return
    if (this.#isDue) this.#startSending()
    else this.#timer ??= setTimeout(() => this.#startSending(), this.#untilDueMs)
  }

  #queueFull(type: ClientCallType): AnalyticsError {
    this.#requestFlush()
    const { calls, bytes } = this.#settings.limits
    return new AnalyticsError(
      'queue_full',
      `${type}: the queue is full (at most ${calls} calls and ${bytes} bytes); await ready() before the call`,
    )
  }

  get #untilDueMs(): number {
    return Math.max(0, this.#lastFlushAt + this.#settings.flushAfterMs - performance.now())
  }

  /** Whether what waits is to be sent without waiting for more. */
  get #isDue(): boolean {
    const { waiting, waitingBytes } = this.#queue
    if (waiting === 0) return false
    return (
      waiting >= this.#settings.flushAt ||
      this.#begun < this.#flushTo ||
      // They fill a request.
      waitingBytes + waiting > maxItemBytes ||
      this.#untilDueMs === 0
    )
  }

  #requestFlush(): void {
    this.#flushTo = this.#accepted
    if (this.#isDue) this.#startSending()
  }

  /** After the caller's own work, so that calls made in one go make one batch. */
  #startSending(): void {
    if (this.#isSending) return
    this.#isSending = true
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    queueMicrotask(() => void this.#send())
  }

  async #send(): Promise<void> {
    const { transport, policy, flushAt } = this.#settings
    const { signal } = this.#givingUp
    do {
      const isBatching = flushAt > 1 || signal.aborted
      const batch = this.#queue.take(isBatching ? Infinity : 1, maxItemBytes)
      this.#begun += batch.length
      this.#lastFlushAt = performance.now()
      const by = { transport, policy, debug: this.#debug, signal, lastFault: this.#lastFault }
      const { failures, lastFault } = await deliverBatch(batch, by)
      this.#lastFault = lastFault
      for (const failure of failures) this.#report(failure)
      this.#queue.settle(batch)
      this.#settled += batch.length
      this.#wakeFlushed()
      this.#turnstile.letIn()
    } while (this.#isDue)
    this.#isSending = false
    if (this.#queue.waiting > 0) this.#timer = setTimeout(() => this.#startSending(), this.#untilDueMs)
  }

  #report(failure: DeliveryError): void {
    this.#debug?.(failure.message)
    if (this.#closed !== null) this.#undelivered.push(...failure.calls)
    // Neither what it throws nor what it rejects with, if it is async, may end the process.
    const onError = async () => this.#settings.onError(failure)
    onError().catch((error: unknown) => console.error('postrider: onError failed:', error))
  }

  #wakeFlushed(): void {
    let done = 0
    while (done < this.#flushWaiters.length && this.#flushWaiters[done]!.upTo <= this.#settled) done++
    for (const { resolve } of this.#flushWaiters.splice(0, done)) resolve()
  }
}

const maxNameLength = 40

/** Of fields that are not sent, the names: nothing else of a call gets into the log. */
const leftOut = ({ notTaken }: WrittenCall): string =>
  notTaken.length === 0
    ? ''
    : `; unknown fields, not sent: ${notTaken.map((name) => JSON.stringify(name.slice(0, maxNameLength))).join(', ')}`

/** Rejects when the work takes longer. */
async function within(ms: number, work: () => Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const deadline = new Promise<void>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`not done within ${ms} ms`)), ms)
  })
  try {
    await Promise.race([work(), deadline])
  } finally {
    clearTimeout(timer)
  }
}
