import { hash } from 'node:crypto'
import type { Lease } from '../lease.ts'
import type { AnalyticsCall } from '../../core/call/analytics-call.ts'
import { operationalCall, type OperationalEvent } from '../../core/operational/operational-event.ts'
import {
  OperationalFold,
  type FoldTimes,
  type OperationalState,
  type WaitingMail,
} from '../../core/operational/operational-fold.ts'
import { PostriderError, messageOf } from '../../errors.ts'
import { pause } from '../../retry-forever.ts'

/** The same event is the same call, whichever process sends it. */
export function callOf(event: OperationalEvent, consoleUrl: string | null): AnalyticsCall {
  const digest = hash('sha256', `${event.name}\0${event.identity}`, 'base64url')
  return operationalCall(event, `postrider-${digest}`, consoleUrl)
}

export interface OperationalTimes extends FoldTimes {
  /** How often windows and deletions are looked at, in ms. */
  tickMs: number
  /** How often positions are committed while nothing happens, in ms. */
  commitMs: number
  /** How long to wait before asking for the lease again, in ms. */
  retryMs: number
}

export const defaultOperationalTimes: OperationalTimes = {
  windowMs: 60_000,
  endMs: 600_000,
  quietMs: 10_000,
  tickMs: 500,
  commitMs: 5_000,
  retryMs: 15_000,
}

export interface EmitOptions {
  ports: OperationalPorts
  /** Null: nothing is mailed. */
  mails: Mails | null
  times: OperationalTimes
  /** CONSOLE_URL, without a slash at its end. */
  consoleUrl: string | null
  log: { info(message: string): void; warn(message: string): void }
  signal: AbortSignal
}

/** Sends mails by itself, for as long as it takes. */
export interface Mails {
  /** Whether anybody gets any of them. */
  add(calls: readonly WaitingMail[]): boolean
  /** What was not sent to all yet, the oldest first. */
  readonly waiting: WaitingMail[]
}

/** Beyond this many that are not sent, nothing more is read: what waits must fit into a commit. */
const maxUnsent = 50

/**
 * Sends operational events for as long as this process holds the lease, and waits for the lease otherwise. Never rejects:
 * a console works without them.
 */
export async function emitOperationalEvents(options: EmitOptions): Promise<void> {
  const { ports, times, log, signal } = options
  let trouble: string | null = null
  while (!signal.aborted) {
    let lease: EventsLease | null = null
    try {
      lease = await ports.acquire()
      if (trouble !== null) log.info('operational events are sent again')
      trouble = null
      await emitWith(lease, options)
    } catch (error) {
      // Another console has it: as it should be.
      const isElsewhere = error instanceof PostriderError && error.code === 'conflict'
      const reason = isElsewhere ? null : messageOf(error)
      if (reason !== null && reason !== trouble && !signal.aborted)
        log.warn(`operational events are not sent for now: ${reason}`)
      trouble = reason
    } finally {
      await lease?.release()
    }
    if (!signal.aborted) await pause(times.retryMs, signal)
  }
}

/** Returns when the signal aborts; rejects with what ended it before. */
async function emitWith(lease: EventsLease, options: EmitOptions): Promise<void> {
  const { ports, mails, times, signal } = options
  const { positions, state } = await ports.checkpoint()
  const fold = new OperationalFold(times, state, ports.now())
  const flow = new Flow(fold)
  mails?.add(state.mails)
  const stop = () => flow.resume()
  signal.addEventListener('abort', stop, { once: true })
  let reading: EventsReading | null = null
  try {
    // What the process before may not have sent comes first.
    await send(lease, fold, { positions: () => positions, isSubscribed: () => true }, options)
    reading = await ports.read(positions, fold, flow)
    let failure: { error: unknown } | null = null
    reading.ended.catch((error: unknown) => {
      failure = { error }
      flow.resume()
    })
    let committedAt = -Infinity
    while (!signal.aborted) {
      if (failure !== null) throw (failure as { error: unknown }).error
      lease.check()
      fold.elapse(ports.now())
      for (const requestId of fold.deletionsToCheck(ports.now()))
        fold.deletionChecked(requestId, await ports.finishedDeletion(requestId), ports.now())
      if (fold.unsent.length > 0) await send(lease, fold, reading, options)
      else if (ports.now() >= committedAt + times.commitMs) {
        await lease.commit({ positions: reading.positions(), state: stateOf(fold, mails) })
        committedAt = ports.now()
      }
      flow.makeRoom()
      if (fold.unsent.length === 0) await flow.wait(times.tickMs)
    }
  } finally {
    signal.removeEventListener('abort', stop)
    flow.makeRoom(true)
    await reading?.close()
  }
}

/**
 * What is to be sent is committed first, with the positions of what led to it: whoever goes on after a crash sends it
 * again, under the same messageIds, and finds nothing of it a second time.
 */
async function send(
  lease: EventsLease,
  fold: OperationalFold,
  reading: Pick<EventsReading, 'positions' | 'isSubscribed'>,
  { ports, mails, consoleUrl }: EmitOptions,
): Promise<void> {
  const events = [...fold.unsent]
  if (events.length === 0) return
  const calls = events.map((event) => callOf(event, consoleUrl))
  const isSubscribed = reading.isSubscribed()
  mails?.add(calls)
  if (isSubscribed) {
    await lease.commit({ positions: reading.positions(), state: stateOf(fold, mails) })
    await ports.send(calls)
  }
  fold.sent(events)
  await lease.commit({ positions: reading.positions(), state: stateOf(fold, mails) })
}

const stateOf = (fold: OperationalFold, mails: Mails | null): OperationalState => ({
  ...fold.state,
  mails: mails?.waiting ?? [],
})

/** Between what reads and what sends. */
class Flow implements EventsFlow {
  readonly #fold: OperationalFold
  #resume: (() => void) | null = null
  #room: PromiseWithResolvers<void> | null = null

  constructor(fold: OperationalFold) {
    this.#fold = fold
  }

  room(): Promise<void> | null {
    if (this.#fold.unsent.length < maxUnsent) return null
    this.#room ??= Promise.withResolvers()
    return this.#room.promise
  }

  wake(): void {
    if (this.#fold.unsent.length > 0) this.resume()
  }

  resume(): void {
    this.#resume?.()
  }

  /** For so long, or until something is to be sent. */
  wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer)
        this.#resume = null
        resolve()
      }
      const timer = setTimeout(done, ms)
      this.#resume = done
    })
  }

  /** Lets reading go on where there is room, or to its end. */
  makeRoom(isEnding = false): void {
    if (!isEnding && this.#fold.unsent.length >= maxUnsent) return
    this.#room?.resolve()
    this.#room = null
  }
}

/** How far a partition was read: the next offset. */
export interface ReadTo {
  topic: string
  partition: number
  offset: number
}

export interface OperationalCheckpoint {
  positions: ReadTo[]
  state: OperationalState
}

/** Held by the one process that sends operational events. */
export interface EventsLease extends Lease {
  /** Commits positions and state together. Throws `conflict` when another one holds the lease. */
  commit(checkpoint: OperationalCheckpoint): Promise<void>
}

/** What is read on, while it is read. */
export interface EventsReading {
  /** Next offsets of everything that went into the fold; called between two records. */
  positions(): ReadTo[]
  /** Whether any enabled destination gets calls of the built-in source: without one nothing needs to be written. */
  isSubscribed(): boolean
  /** Rejects when something can never be read. */
  ended: Promise<void>
  close(): Promise<void>
}

/** All reject with `kafka_unavailable`, `registry_unavailable` or `setup`. */
export interface OperationalPorts {
  /** Throws `conflict` while another process holds it. */
  acquire(): Promise<EventsLease>
  /** What was committed last; where there was nothing, the ends of everything and no state. */
  checkpoint(): Promise<OperationalCheckpoint>
  /**
   * Reads on from there into the fold, record by record, each together with its position. Awaits `room` before each
   * record that may make events. Calls `wake` after one that did.
   */
  read(from: readonly ReadTo[], fold: OperationalFold, flow: EventsFlow): Promise<EventsReading>
  /** Resolves once all in-sync replicas have the calls. */
  send(calls: readonly AnalyticsCall[]): Promise<void>
  /** What became of a deletion request, once all of its delete calls are settled; null before, and for an unknown one. */
  finishedDeletion(requestId: string): Promise<Record<string, unknown> | null>
  /** Epoch ms. */
  now(): number
}

export interface EventsFlow {
  room(): Promise<void> | null
  wake(): void
}
