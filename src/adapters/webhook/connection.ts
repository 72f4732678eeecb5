import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { OutcomeKind } from '../../core/delivery/outcome.ts'
import type { ConnectionCounts } from './connection-counts.ts'
import type { Dial, Dialed, Hangup, TroubledAddresses } from './dial.ts'
import { ClosedByServer } from './failure.ts'
import type { Cancel, Openings } from './openings.ts'
import type { PollPhase, PollWaiter } from './poll-phase.ts'
import { MalformedResponse, ResponseReader, type ResponseHandler } from './response-reader.ts'

/** What a connection carries: one request, and its response. */
export interface CarriedAttempt extends ResponseHandler {
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

/** A larger body is not copied to stand in one buffer with its head. */
const maxCopiedBytes = 16_384

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

/**
 * One connection to an origin, with HTTP/1.1: one request at a time. It connects at the first one.
 *
 * A response belongs to the request that was written before it, and nothing in HTTP/1.1 says which that is. So a request is
 * written only once everything that had come until it was chosen for this connection has been read: after a whole poll
 * phase. What comes before that was not asked for, and ends the connection with the request unwritten.
 *
 * Written by hand, since with undici's client, which is made for any request and any response, a delivery took 30 % more
 * CPU (docs/performance.md).
 */
export class Connection implements Dialed, PollWaiter {
  /** What it carries now; null while it is free. */
  attempt: CarriedAttempt | null = null
  /** Responses so far: the server may close a used connection at the very moment we write. */
  responses = 0
  /** The server's certificate was not trusted; no request was written. */
  untrusted = false
  /** Whole seconds for which it has been free: see WebhookOrigin. */
  idleSeconds = 0
  readonly #origin: URL
  readonly #dial: Dial
  readonly #openings: Openings
  readonly #polls: PollPhase
  readonly #owner: ConnectionOwner
  readonly #steadyNow: () => number
  readonly #counts: ConnectionCounts
  readonly #openedAt: number
  readonly #lifeMs = lifeMs * (1 - jitter * Math.random())
  readonly #reader = new ResponseReader()
  #hangup: Hangup = ignore
  /** Null until it is connected. */
  #socket: Socket | null = null
  #ended = false
  /** The TLS session that was offered to the server. */
  #session: Buffer | null = null
  #cancelOpening: Cancel = ignore
  /** Of a request that is not written yet; `#body` is null when there is none. */
  #head = ''
  #body: Uint8Array | null = null
  /** The request that was written last took two writes. */
  #isLarge = false

  constructor(origin: URL, parts: ConnectionParts, owner: ConnectionOwner) {
    this.#origin = origin
    this.#dial = parts.dial
    this.#openings = parts.openings
    this.#polls = parts.polls
    this.#steadyNow = parts.steadyNow
    this.#counts = parts.counts
    this.#openedAt = parts.steadyNow()
    this.#owner = owner
  }

  /** It has been unused for as long as it is kept. */
  get isOld(): boolean {
    return this.idleSeconds > this.#keptSeconds
  }

  /** It has been used for as long as it may be; `failed`: its last response was a 5xx. */
  mustRetire(failed: boolean): boolean {
    const ageMs = this.#steadyNow() - this.#openedAt
    return ageMs > (failed ? lifeWithFailureMs : this.#lifeMs)
  }

  get #keptSeconds(): number {
    const { keepsSeconds } = this.#reader
    return keepsSeconds === null ? keepSeconds : Math.min(keepSeconds, keepsSeconds - earlierSeconds)
  }

  /**
   * Writes a request of the attempt that it carries: soon, or once it is connected.
   * @param head to the empty line, in Latin-1
   */
  send(head: string, body: Uint8Array): void {
    this.#head = head
    this.#body = body
    if (this.#socket !== null) this.#polls.wait(this)
    else this.#cancelOpening = this.#openings.add(this.#origin.origin, () => this.#open())
  }

  /**
   * Its end says nothing of the endpoint, if it ends before a response: it had served before, or offered a TLS session that
   * the server may dislike.
   */
  get mayEndUnnoticed(): boolean {
    return this.responses > 0 || (this.#socket === null && this.#session !== null)
  }

  /** Closes the socket whatever it is doing. */
  destroy(): void {
    if (this.#ended) return
    this.#ended = true
    this.#cancelOpening()
    this.#hangup()
    // A server may dislike the session that it was offered, and each later one that is offered the same.
    if (this.#socket === null && this.#owner.session === this.#session) this.#owner.session = null
  }

  onRead(data: Buffer): void {
    const { attempt } = this
    if (this.#ended) return
    if (attempt === null || this.#body !== null) {
      this.#end(new ClosedByServer('the server sent something before a request'))
      return
    }
    attempt.onFirstByte()
    let end: number
    try {
      end = this.#reader.read(data, attempt)
    } catch (error) {
      this.#counts.malformed++
      this.#end(error as Error)
      return
    }
    // The attempt may have ended within: its response was too long.
    if (end < 0 || this.#ended) return
    // What follows a response without having been asked for must not be taken for the next one.
    const isClean = end === data.length && !this.#isWriting
    attempt.onEnd(isClean && this.#reader.keepsConnection && this.#keptSeconds > 0)
  }

  /**
   * The request is still on its way out of this process. What is one write keeps its order whatever comes next, so it is
   * not asked about: over TLS Node says that it is written only in a later phase than an answer may come.
   */
  get #isWriting(): boolean {
    return this.#isLarge && this.#socket!.writableLength > 0
  }

  onPolled(): void {
    if (this.#ended) return
    const [head, body] = [this.#head, this.#body!]
    this.#head = ''
    this.#body = null
    if (!this.attempt!.begin()) return
    const socket = this.#socket!
    this.#isLarge = body.length > maxCopiedBytes
    if (this.#isLarge) {
      socket.cork()
      socket.write(head, 'latin1')
      socket.write(body)
      socket.uncork()
      return
    }
    const request = Buffer.allocUnsafe(head.length + body.length)
    request.write(head, 'latin1')
    request.set(body, head.length)
    socket.write(request)
  }

  #open(): void {
    this.#session = this.#owner.session
    this.#hangup = this.#dial(this.#origin, this, { session: this.#session, troubled: this.#owner.troubled })
  }

  onConnected(socket: Socket): void {
    this.#socket = socket
    this.#counts.opened++
    if (socket instanceof TLSSocket && socket.isSessionReused()) this.#counts.resumed++
    this.#polls.wait(this)
  }

  onSession(session: Buffer): void {
    this.#owner.session = session
  }

  onEnded(error: Error, untrusted: boolean): void {
    // A certificate is refused, if at all, before there is a connection.
    this.untrusted = untrusted && this.#socket === null
    this.#end(error)
  }

  /** The connection has ended by itself. */
  #end(error: Error): void {
    if (this.#ended) return
    this.destroy()
    const { attempt } = this
    if (attempt === null) this.#owner.onClosed(this)
    else if (this.#reader.mayEndNow && !(error instanceof MalformedResponse)) attempt.onEnd(false)
    else attempt.onError(error)
  }
}

function ignore(): void {}
