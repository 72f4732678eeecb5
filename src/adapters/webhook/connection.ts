import type { Socket } from 'node:net'
import { TLSSocket, type SecureContext } from 'node:tls'
import type { OutcomeKind } from '../../core/delivery/outcome.ts'
import type { ConnectionCounts } from './connection-counts.ts'
import type { Dial, Dialed, Hangup, TroubledAddresses } from './dial.ts'
import type { HeadTemplate } from './head-template.ts'
import { ClosedByServer, MalformedResponse, type ResponseHandler } from './response.ts'
import { openedAtOnce, openingPerOrigin, openingWait } from '../../core/pacing/limits.ts'

/**
 * The connection is open, or will never be. One whose turn had not come never opens; one that was opening makes room for
 * another. Calling it again does nothing.
 */
type OpeningEnds = () => void

interface Opening {
  /** Must not throw. */
  open: () => void
  /** Since when it waits for its turn, monotonic, in ms. */
  since: number
}

/**
 * Opens connections, a limited number in each turn of the event loop. A receiver that restarts ends a thousand at once, and
 * each request on them goes out again on a new one: opened together they would hold up everything else for a second. Origins
 * take turns, so that another one that needs a connection does not wait behind the thousand. An origin is whatever has
 * connections in common: what is behind one proxy does not wait for what is behind another.
 *
 * While many of an origin are opening, the rest wait for a moment: of a thousand requests most find a connection that
 * another one leaves free before theirs would be open.
 */
export class Openings {
  readonly #steadyNow: () => number
  /** How long one waits, at most, for those that are opening. */
  readonly #waitMs: number
  readonly #waiting = new Map<unknown, Opening[]>()
  /** How many of each origin are opening. */
  readonly #opening = new Map<unknown, number>()
  #left = openedAtOnce
  #isScheduled = false
  #timer: NodeJS.Timeout | undefined

  /**
   * @param steadyNow in ms
   * @param timeoutMs of a request, which a connection is opened within
   */
  constructor(steadyNow: () => number, timeoutMs: number) {
    this.#steadyNow = steadyNow
    this.#waitMs = Math.min(openingWait.ms, timeoutMs * openingWait.ofTimeLimit)
  }

  /** Opens now, or in one of the turns to come. */
  add(origin: unknown, open: () => void): OpeningEnds {
    const opening = { open, since: this.#steadyNow() }
    if (this.#left > 0 && this.#waiting.size === 0 && this.#hasRoom(origin)) this.#open(origin, opening)
    else {
      const queue = this.#waiting.get(origin) ?? []
      queue.push(opening)
      this.#waiting.set(origin, queue)
      this.#nextTurn()
    }
    let hasEnded = false
    return () => {
      if (hasEnded) return
      hasEnded = true
      this.#end(origin, opening)
    }
  }

  #hasRoom(origin: unknown): boolean {
    return (this.#opening.get(origin) ?? 0) < openingPerOrigin
  }

  #open(origin: unknown, { open }: Opening): void {
    this.#left--
    this.#opening.set(origin, (this.#opening.get(origin) ?? 0) + 1)
    this.#nextTurn()
    open()
  }

  #nextTurn(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.#left = openedAtOnce
      this.#openThoseWhoseTurnItIs()
    })
  }

  #openThoseWhoseTurnItIs(): void {
    const now = this.#steadyNow()
    for (const [origin, queue] of this.#waiting) {
      if (this.#left === 0) break
      if (!this.#hasRoom(origin) && now - queue[0]!.since < this.#waitMs) continue
      const first = queue.shift()!
      // One with more goes behind the others.
      this.#waiting.delete(origin)
      if (queue.length > 0) this.#waiting.set(origin, queue)
      this.#open(origin, first)
    }
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#waiting.size === 0) return
    if (this.#left === 0) this.#nextTurn()
    else this.#timer = setTimeout(() => this.#nextTurn(), this.#untilNextMs(now)).unref()
  }

  /** Until the one that has waited longest has waited for too long. */
  #untilNextMs(now: number): number {
    return Math.min(...[...this.#waiting.values()].map(([first]) => first!.since)) + this.#waitMs - now
  }

  #end(origin: unknown, opening: Opening): void {
    const queue = this.#waiting.get(origin)
    const index = queue?.indexOf(opening) ?? -1
    if (index >= 0) {
      queue!.splice(index, 1)
      if (queue!.length === 0) this.#waiting.delete(origin)
      return
    }
    const left = this.#opening.get(origin)! - 1
    if (left > 0) this.#opening.set(origin, left)
    else this.#opening.delete(origin)
    if (queue !== undefined) this.#nextTurn()
  }
}

/** Waits for a PollPhase. */
interface PollWaiter {
  onPolled(): void
}

/**
 * Calls back once the event loop has gone through a whole poll phase, in which whatever lies in the receive buffers of
 * sockets is read. All that wait share two immediates: the first may run in the middle of nothing (right behind the poll
 * phase in which it was set), the second always has a poll phase between it and the first.
 */
export class PollPhase {
  #waiting: PollWaiter[] = []

  wait(waiter: PollWaiter): void {
    if (this.#waiting.push(waiter) > 1) return
    setImmediate(() => {
      const waiting = this.#waiting
      this.#waiting = []
      setImmediate(() => {
        for (const each of waiting) each.onPolled()
      })
    })
  }
}

/** What a connection carries: one request, and its response. */
export interface CarriedAttempt extends ResponseHandler {
  /** That it is on. */
  connection: Connection | null
  /** The request would be written now. False: it is not wanted any more. */
  begin(): boolean
  /** The first byte of a response. */
  onFirstByte(): void
  /** The response is whole; `reusable` says whether the connection can take another request. */
  onEnd(reusable: boolean): void
  /** There will be no response, or no whole one. */
  onError(error: Error): void
  fail(kind: OutcomeKind, detail: string): void
}

export interface ConnectionOwner {
  /** A TLS session that a new connection can take up. */
  session: Buffer | null
  readonly troubled: TroubledAddresses
  /** Null: that of the way out. */
  readonly secureContext: SecureContext | null
  /** The connection begins to open. */
  onOpens(connection: Connection): void
  /** The connection has ended: by the server, by an error. */
  onClosed(connection: Connection): void
}

/** What all connections share. */
export interface ConnectionParts {
  dial: Dial
  /** Opens a connection when its turn has come. */
  openings: Openings
  polls: PollPhase
  /** Monotonic, in ms: connections age by it. */
  steadyNow: () => number
  counts: ConnectionCounts
}

/** An HTTP client: it makes connections that write requests and read responses. */
export type HttpClient = new (origin: URL, parts: ConnectionParts, owner: ConnectionOwner) => Connection

/**
 * How long a connection is used at most, in ms, so that a name that moves is followed: its address is looked up, and vetted,
 * for each new connection. Less a part of it by chance: those that were opened together need not end together.
 */
const lifeMs = 5 * 60_000
const jitter = 0.2
/** The same where the server has just failed: it may be the one that its name does not lead to any more. */
const lifeWithFailureMs = 30_000

/** How long a connection is kept unused, in seconds, unless the server says less. */
const keepSeconds = 15
/** How much earlier than the server says: a request must not meet its end. */
const earlierSeconds = 2

/** A larger body takes a write of its own: it is not copied to stand in one buffer with its head. */
const maxCopiedBytes = 16_384

/** What came before a request cannot be its response. */
const unasked = 'the server sent something before a request'

/**
 * One connection to an origin, with HTTP/1.1: one request at a time. It connects at the first one.
 *
 * A response belongs to the request that was written before it, and nothing in HTTP/1.1 says which that is. So a request is
 * written only once everything that had come until it was chosen for this connection has been read: after a whole poll
 * phase. What comes before that was not asked for, and ends the connection with the request unwritten.
 *
 * How a connection is opened, how long it lives and when it is written to is the same for all clients; who writes the
 * request and reads the response is not.
 */
export abstract class Connection implements Dialed, PollWaiter {
  /** What it carries now; null while it is free. */
  attempt: CarriedAttempt | null = null
  /** Responses so far: the server may close a used connection at the very moment we write. */
  responses = 0
  /** The server's certificate was not trusted; no request was written. */
  untrusted = false
  waitsForProxy = false
  /** Whole seconds for which it has been free: see WebhookOrigin. */
  idleSeconds = 0
  abstract readonly readsStream: boolean
  /** Null until it is connected. */
  protected socket: Socket | null = null
  protected hasEnded = false
  /** The request that it carries was handed to `write`. */
  protected isWritten = false
  /** Its body is too large for one write with its head. */
  protected isLarge = false
  protected readonly origin: URL
  protected readonly counts: ConnectionCounts
  readonly #dial: Dial
  readonly #openings: Openings
  readonly #polls: PollPhase
  readonly #owner: ConnectionOwner
  readonly #steadyNow: () => number
  readonly #openedAt: number
  readonly #lifeMs = lifeMs * (1 - jitter * Math.random())
  #hangup: Hangup = ignore
  /** The TLS session that was offered to the server. */
  #session: Buffer | null = null
  #endOpening: OpeningEnds = ignore
  #template: HeadTemplate | null = null
  #fields: readonly string[] = []
  #body: Uint8Array | null = null

  constructor(origin: URL, parts: ConnectionParts, owner: ConnectionOwner) {
    this.origin = origin
    this.counts = parts.counts
    this.#dial = parts.dial
    this.#openings = parts.openings
    this.#polls = parts.polls
    this.#steadyNow = parts.steadyNow
    this.#openedAt = parts.steadyNow()
    this.#owner = owner
  }

  /** For how long the server keeps it unused, in seconds; null: it does not say. */
  protected abstract get serverKeepsSeconds(): number | null

  /** The end of the connection would be the regular end of the response that is being read. */
  protected abstract get mayEndNow(): boolean

  /** Asks the attempt whether the request is wanted still, and if so writes it. */
  protected abstract write(template: HeadTemplate, fields: readonly string[], body: Uint8Array): void

  /** For a client that reads no stream. */
  abstract onRead(data: Buffer): void

  /** It has been unused for as long as it is kept. */
  get isOld(): boolean {
    return this.idleSeconds > this.keptSeconds
  }

  /** It has been used for as long as it may be; `failed`: its last response was a 5xx. */
  mustRetire(failed: boolean): boolean {
    const ageMs = this.#steadyNow() - this.#openedAt
    return ageMs > (failed ? lifeWithFailureMs : this.#lifeMs)
  }

  protected get keptSeconds(): number {
    const seconds = this.serverKeepsSeconds
    return seconds === null ? keepSeconds : Math.min(keepSeconds, seconds - earlierSeconds)
  }

  /**
   * The request is still on its way out of this process. What is one write keeps its order whatever comes next, so it is
   * not asked about: over TLS Node says that it is written only in a later phase than an answer may come.
   */
  protected get isWriting(): boolean {
    return this.isLarge && this.socket!.writableLength > 0
  }

  /**
   * Writes a request of the attempt that it carries: soon, or once it is connected.
   * @param fields of this request alone: names and values by turns
   */
  send(template: HeadTemplate, fields: readonly string[], body: Uint8Array): void {
    this.isWritten = false
    this.#template = template
    this.#fields = fields
    this.#body = body
    if (this.socket !== null) this.#polls.wait(this)
    else this.#endOpening = this.#openings.add(this.#owner, () => this.#open())
  }

  /** What it carries goes out on this connection, which is free: its own has not begun to open. */
  moveTo(other: Connection): void {
    const attempt = this.attempt!
    this.attempt = null
    attempt.connection = other
    other.attempt = attempt
    other.send(this.#template!, this.#fields, this.#body!)
  }

  /**
   * Its end says nothing of the endpoint, if it ends before a response: it had served before, or offered a TLS session that
   * the server may dislike.
   */
  get mayEndUnnoticed(): boolean {
    return this.responses > 0 || (this.socket === null && this.#session !== null)
  }

  /** Closes the socket whatever it is doing. */
  destroy(): void {
    if (this.hasEnded) return
    this.hasEnded = true
    this.#endOpening()
    this.#hangup()
    // A server may dislike the session that it was offered, and each later one that is offered the same.
    if (this.socket === null && this.#owner.session === this.#session) this.#owner.session = null
  }

  onPolled(): void {
    if (this.hasEnded) return
    const [template, fields, body] = [this.#template!, this.#fields, this.#body!]
    this.#template = null
    this.#fields = []
    this.#body = null
    this.isWritten = true
    this.isLarge = body.length > maxCopiedBytes
    this.write(template, fields, body)
  }

  #open(): void {
    this.#owner.onOpens(this)
    this.#session = this.#owner.session
    const { troubled, secureContext } = this.#owner
    this.#hangup = this.#dial(this.origin, this, { session: this.#session, troubled, secureContext })
  }

  onConnected(socket: Socket): void {
    this.#endOpening()
    this.socket = socket
    this.counts.opened++
    if (socket instanceof TLSSocket && socket.isSessionReused()) this.counts.resumed++
    this.#polls.wait(this)
  }

  onSession(session: Buffer): void {
    this.#owner.session = session
  }

  onEnded(error: Error, untrusted: boolean): void {
    // A certificate is refused, if at all, before there is a connection.
    this.untrusted = untrusted && this.socket === null
    this.end(error)
  }

  protected endUnasked(): void {
    this.end(new ClosedByServer(unasked))
  }

  /** The connection has ended by itself. */
  protected end(error: Error): void {
    if (this.hasEnded) return
    this.destroy()
    if (error instanceof MalformedResponse) this.counts.malformed++
    const { attempt } = this
    if (attempt === null) this.#owner.onClosed(this)
    else if (this.mayEndNow && !(error instanceof MalformedResponse)) attempt.onEnd(false)
    else attempt.onError(error)
  }
}

function ignore(): void {}
