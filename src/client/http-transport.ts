import http from 'node:http'
import https from 'node:https'
import { urlToHttpOptions } from 'node:url'
import { messageOf } from '../errors.ts'
import { batchBody, type Batch, type SendResult, type Transport, type RejectedItem } from './transport.ts'
import { version } from './version.ts'
import { parseRetryAfter } from '../core/delivery/retry-after.ts'

/** 5xx that will be the same the next time: not implemented, HTTP version, network login. */
const finalServerErrors = [501, 505, 511]
const retriedClientErrors = [408, 425, 429]

const longestMessage = 300

/** What a collector's answer to a batch of `calls` calls means. `now` is in epoch milliseconds. */
export function readAnswer(
  answer: { status: number; retryAfter: string | undefined; body: string },
  calls: number,
  now: number,
): SendResult {
  const { status, retryAfter } = answer
  const body = jsonObject(answer.body)
  const rejected = rejectedItems(body, calls)
  // Anything may answer 200 where no collector is: only its own words count.
  if (status === 200 && body?.success === true) {
    // Not all that were rejected are named: the others come again, and those that were accepted are known by their ids.
    if (rejected !== null && body.moreRejected !== undefined) return { kind: 'rejected', rejected }
    return { kind: 'accepted', rejected: rejected ?? [] }
  }
  if (status === 400 && rejected !== null) return { kind: 'rejected', rejected }
  const message = `HTTP ${status}${describe(body)}`
  if (status < 300)
    return { kind: 'unavailable', message: `${message}: not a collector's answer`, retryAfterMs: null }
  if (retriedClientErrors.includes(status) || (status >= 500 && !finalServerErrors.includes(status))) {
    const retryAfterMs = retryAfter === undefined ? null : parseRetryAfter(retryAfter, now)
    return { kind: 'unavailable', message, retryAfterMs }
  }
  return { kind: 'refused', message: status < 400 ? `${message}: redirects are not followed` : message }
}

type JsonObject = Record<string, unknown>

function jsonObject(text: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as JsonObject) : null
  } catch {
    return null
  }
}

/** Null unless there is at least one, and each names another call of the batch. */
function rejectedItems(body: JsonObject | null, calls: number): RejectedItem[] | null {
  if (!Array.isArray(body?.rejected) || body.rejected.length === 0) return null
  const items = new Map<number, RejectedItem>()
  for (const item of body.rejected as unknown[]) {
    const { index, code, message } = (item ?? {}) as JsonObject
    if (!Number.isInteger(index) || (index as number) < 0 || (index as number) >= calls) return null
    items.set(index as number, { index: index as number, code: line(code), message: line(message) })
  }
  return [...items.values()].sort((a, b) => a.index - b.index)
}

function describe(body: JsonObject | null): string {
  const words = [body?.code, body?.message].map(line).filter((word) => word !== '')
  return words.length === 0 ? '' : ` ${words.join(': ')}`
}

const line = (value: unknown): string =>
  typeof value === 'string' ? value.replace(/[\s\p{Cc}]+/gu, ' ').slice(0, longestMessage) : ''

/** The connection on which an error came. */
export interface UsedConnection {
  hasTls: boolean
  /** Not one that was kept open from an earlier request: a server may close those at any time. */
  isNew: boolean
}

interface NetworkError extends Error {
  code?: string
  /** One for each address of a name. */
  errors?: readonly Error[]
}

const untrusted =
  /^(?:DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_GET_ISSUER_CERT|UNABLE_TO_GET_ISSUER_CERT_LOCALLY|UNABLE_TO_VERIFY_LEAF_SIGNATURE|CERT_UNTRUSTED)$/
/** What OpenSSL makes of an answer that is not TLS. */
const notTls = /wrong version number|packet length too long|unknown protocol|http request/

/** Why a request got no answer, in one line, with what to do where that is known. */
export function networkReason(error: NetworkError, { hasTls, isNew }: UsedConnection): string {
  const { code = '', errors = [] } = error
  if (errors.length > 0) return [...new Set(errors.map(messageOf))].join(', ')
  if (untrusted.test(code))
    return `the server's certificate is not trusted (${code}); NODE_EXTRA_CA_CERTS names a file with more authorities`
  if (code === 'EPROTO' || code.startsWith('ERR_SSL_')) {
    // write EPROTO 80ACC765AD7F0000:error:0A00010B:SSL routines:ssl3_get_record:wrong version number:../deps/…
    const reason = /SSL routines:[^:]*:([^:]+)/.exec(error.message)?.[1] ?? messageOf(error)
    return notTls.test(reason)
      ? `no TLS at this port (${reason}); check the port, or use http://`
      : `TLS failed: ${reason}`
  }
  if (code === 'ECONNRESET' && isNew && !hasTls)
    return `the connection was closed without an answer (${messageOf(error)}); check the port, or use https:// if it takes only TLS`
  return error.message === '' && code !== '' ? code : messageOf(error)
}

/** No collector answers more, even if it rejects every call of a batch. */
const maxAnswerBytes = 1_048_576

/**
 * Sends batches to a collector over one connection that stays open while there is work. node:http and not `fetch`:
 * half the CPU a request (bench/workloads/client.ts), a connection that can be closed, and an idle one keeps no process alive.
 */
export class HttpTransport implements Transport {
  readonly name: string
  /** The write key, and as Basic authentication writes it. */
  readonly #secrets: readonly string[]
  readonly #timeoutMs: number
  readonly #client: typeof http | typeof https
  readonly #agent: http.Agent
  readonly #options: http.RequestOptions

  constructor({ endpoint, writeKey, timeoutMs }: { endpoint: URL; writeKey: string; timeoutMs: number }) {
    this.#secrets = [writeKey, Buffer.from(`${writeKey}:`).toString('base64')]
    this.name = this.#withoutSecrets(endpoint.origin + endpoint.pathname)
    this.#timeoutMs = timeoutMs
    this.#client = endpoint.protocol === 'https:' ? https : http
    this.#agent = new this.#client.Agent({ keepAlive: true, maxSockets: 1 })
    this.#options = {
      ...urlToHttpOptions(endpoint),
      method: 'POST',
      agent: this.#agent,
      headers: {
        Authorization: `Basic ${this.#secrets[1]}`,
        'Content-Type': 'application/json',
        'User-Agent': `postrider-client/${version}`,
      },
    }
  }

  send(batch: Batch, signal: AbortSignal): Promise<SendResult> {
    const body = Buffer.from(batchBody(batch))
    return new Promise((resolve) => {
      const request = this.#client.request({
        ...this.#options,
        headers: { ...(this.#options.headers as http.OutgoingHttpHeaders), 'Content-Length': body.length },
      })
      const startedAt = performance.now()
      const settle = (result: SendResult): void => {
        clearTimeout(timer)
        signal.removeEventListener('abort', onAbort)
        resolve(this.#withoutKey(result))
      }
      const giveUp = (message: string): void => {
        settle({ kind: 'unavailable', message, retryAfterMs: null })
        request.destroy()
      }
      const waitedFor = (): string =>
        request.socket?.connecting === false ? 'no complete answer' : 'no connection'
      const onAbort = () => giveUp(`${waitedFor()} after ${Math.round(performance.now() - startedAt)} ms`)
      const timer = setTimeout(() => giveUp(`${waitedFor()} within ${this.#timeoutMs} ms`), this.#timeoutMs)
      signal.addEventListener('abort', onAbort)
      request.on('error', (error) =>
        giveUp(networkReason(error, { hasTls: this.#client === https, isNew: !request.reusedSocket })),
      )
      request.on('response', (response) => {
        const chunks: Buffer[] = []
        let length = 0
        response.on('data', (chunk: Buffer) => {
          length += chunk.length
          if (length > maxAnswerBytes) giveUp(`HTTP ${response.statusCode} with an endless answer`)
          else chunks.push(chunk)
        })
        response.on('error', (error) => giveUp(`an answer that ends too early: ${messageOf(error)}`))
        response.on('end', () => {
          // An answer that did not wait for the body: a server that reads no further would hold the connection.
          if (!request.writableFinished) request.destroy()
          const answer = {
            status: response.statusCode ?? 0,
            retryAfter: response.headers['retry-after'],
            body: Buffer.concat(chunks).toString(),
          }
          settle(readAnswer(answer, batch.items.length, Date.now()))
        })
      })
      request.end(body)
    })
  }

  async close(): Promise<void> {
    this.#agent.destroy()
  }

  /** Whatever answers may repeat what it was sent; the key must not get into errors and logs that way. */
  #withoutKey(result: SendResult): SendResult {
    const clean = (text: string) => this.#withoutSecrets(text)
    if ('message' in result) return { ...result, message: clean(result.message) }
    if (result.rejected.length === 0) return result
    const rejected = result.rejected.map((item) => ({
      ...item,
      code: clean(item.code),
      message: clean(item.message),
    }))
    return { ...result, rejected }
  }

  #withoutSecrets(text: string): string {
    return this.#secrets.reduce((cleaned, secret) => cleaned.replaceAll(secret, '…'), text)
  }
}
