import type { Socket } from 'node:net'
import { Client, errors, type Dispatcher } from 'undici'
import { Connection } from '../connection.ts'
import type { HeadTemplate } from '../head-template.ts'
import {
  ClosedByServer,
  isEncoding,
  keepAliveOf,
  MalformedResponse,
  maxInterims,
  maxPartBytes,
  maxRawBytes,
  NotHttp,
  ResponseTooLong,
  saysClose,
  tooLongHeader,
  tooLongResponse,
  tooManyInterims,
} from '../response.ts'

/**
 * undici's own limit. Every header beyond it makes undici create an error, for all that it reads at once: thousands, which
 * took 0.4 s. So it is as much as is read at once, and what is not whole by then is ended here.
 */
const undicisMaxHeader = 65_536

/** undici closes a connection that is unused for as long as that by itself; WebhookOrigin does so earlier. */
const undicisKeepMs = 60_000

/**
 * Has undici's Client write requests and read responses. One Client stands for one connection: it is given its socket once,
 * and gets no other.
 */
export class UndiciConnection extends Connection implements Dispatcher.DispatchHandler {
  override readonly readsStream = true
  #client: Client | null = null
  #serverKeepsSeconds: number | null = null
  #isLast = false
  #interims = 0
  #hasHead = false
  /** Why the socket has ended, in our words. */
  #socketError: Error | null = null
  /** Of all that has come on the socket, what belongs to earlier responses. */
  #bytesBefore = 0

  protected override get serverKeepsSeconds(): number | null {
    return this.#serverKeepsSeconds
  }

  /** undici knows, and then tells of a whole response. */
  protected override readonly mayEndNow = false

  override onRead(): void {}

  /** Once undici has a request, it tells what comes for it, and its end too, which may be that of the response. */
  override onEnded(error: Error, untrusted: boolean): void {
    if (!(error instanceof errors.UndiciError)) this.#socketError = error
    if (this.attempt !== null && this.isWritten) return
    // undici has read what nobody asked for.
    if (error instanceof errors.UndiciError) this.endUnasked()
    else super.onEnded(error, untrusted)
  }

  protected override write(template: HeadTemplate, fields: readonly string[], body: Uint8Array): void {
    if (this.socket!.readableLength > 0) {
      this.endUnasked()
      return
    }
    this.#interims = 0
    this.#hasHead = false
    this.#bytesBefore = this.socket!.bytesRead
    this.#client ??= this.#clientOn(this.socket!)
    const headers = [...template.first, ...fields, ...template.own]
    const { method, path } = template
    this.#client.dispatch({ method: method as Dispatcher.HttpMethod, path, headers, body }, this)
  }

  /** undici's limits do not hold for extensions of chunks, nor for all interim responses together. */
  #bound(socket: Socket): void {
    // undici has refused it already, and says why in a moment.
    if (socket.destroyed) return
    const bytes = socket.bytesRead - this.#bytesBefore
    if (this.attempt === null || !this.isWritten) {
      // undici ends the connection for what nobody asked for, but not for empty lines.
      if (bytes > maxRawBytes) this.endUnasked()
      return
    }
    if (bytes > maxRawBytes) this.end(new ResponseTooLong(tooLongResponse))
    else if (!this.#hasHead && bytes > maxPartBytes * (this.#interims > 0 ? 2 : 1))
      this.end(new MalformedResponse(tooLongHeader))
  }

  #clientOn(socket: Socket): Client {
    let isGiven = false
    return new Client(this.origin.origin, {
      connect: (_options, callback) => {
        const isFirst = !isGiven
        isGiven = true
        // Not from within: undici is not ready for it.
        queueMicrotask(() => {
          if (!isFirst) callback(new ClosedByServer('closed'), null)
          else {
            callback(null, socket)
            // After undici's listener, which reads.
            socket.on('readable', () => this.#bound(socket))
          }
        })
      },
      pipelining: 1,
      allowH2: false,
      maxHeaderSize: undicisMaxHeader,
      keepAliveTimeout: undicisKeepMs,
      // The deadline is ours, over everything from look-up to the last byte; undici's own timers are per phase.
      headersTimeout: 0,
      bodyTimeout: 0,
    })
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.hasEnded || !this.attempt!.begin()) controller.abort(new Error('not wanted any more'))
  }

  onResponseStarted(): void {
    if (!this.hasEnded) this.attempt!.onFirstByte()
  }

  onResponseStart(
    _controller: unknown,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    if (this.hasEnded) return
    if (status < 200) {
      if (++this.#interims > maxInterims) this.end(new MalformedResponse(tooManyInterims))
      return
    }
    this.#hasHead = true
    const keepAlive = listOf(headers['keep-alive'])
    const { seconds, isLast } = keepAliveOf(keepAlive)
    this.#serverKeepsSeconds = seconds
    // llhttp does not see a close that has a tab behind it.
    this.#isLast = isLast || saysClose(listOf(headers.connection))
    const retryAfter = headers['retry-after']
    this.attempt!.onHead(
      status,
      (Array.isArray(retryAfter) ? retryAfter[0] : retryAfter) ?? null,
      isEncoding(listOf(headers['content-encoding'])),
      headers,
    )
  }

  onResponseData(_controller: unknown, chunk: Buffer): void {
    if (!this.hasEnded) this.attempt!.onBody(chunk)
  }

  onResponseEnd(_controller: unknown, trailers: Record<string, string | string[] | undefined>): void {
    // llhttp heeds it there as well, and would refuse the next response.
    this.#isLast ||= saysClose(listOf(trailers.connection))
    // undici ends a connection that cannot be used again, or on which more has come, right after this.
    queueMicrotask(() => {
      if (this.hasEnded) return
      const { destroyed, readableLength } = this.socket!
      const isClean = !destroyed && readableLength === 0 && !this.isWriting
      this.attempt!.onEnd(isClean && !this.#isLast && this.keptSeconds > 0)
    })
  }

  onResponseError(_controller: unknown, error: Error): void {
    const own = inOurWords(error, this.#interims === 0)
    this.end(own instanceof ClosedByServer ? (this.#socketError ?? own) : own)
  }
}

/** llhttp has not come as far as `HTTP/1.`. */
const saysNotHttp = /^(?:Expected HTTP\/|Invalid major version|Expected dot)/

/** `isFirst`: not even an interim response came before. */
function inOurWords(error: Error & { code?: string }, isFirst: boolean): Error {
  if (error instanceof errors.HTTPParserError) {
    // The reason is one of llhttp's own texts, and holds nothing of the response.
    const reason = /\(([^)]*)/.exec(error.message)?.[1]
    if (isFirst && reason && saysNotHttp.test(reason)) return new NotHttp()
    return new MalformedResponse(`the response is malformed${reason ? ` (${reason})` : ''}`)
  }
  if (error instanceof errors.ResponseContentLengthMismatchError)
    return new MalformedResponse('the response is longer or shorter than its Content-Length')
  if (error instanceof errors.HeadersOverflowError) return new MalformedResponse(tooLongHeader)
  if (error.message === 'bad upgrade') return new MalformedResponse('the response switches protocols')
  if (error.message === 'bad response') return new MalformedResponse('undici takes no interim response 100')
  if (error instanceof errors.SocketError || error instanceof errors.InformationalError)
    return new ClosedByServer(error.message)
  return error
}

/** Lower case, as one list. */
const listOf = (field: string | string[] | undefined): string =>
  (Array.isArray(field) ? field.filter((each) => each !== '').join() : (field ?? '')).toLowerCase()
