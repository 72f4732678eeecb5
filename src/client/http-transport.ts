import http from 'node:http'
import https from 'node:https'
import { urlToHttpOptions } from 'node:url'
import { messageOf } from '../errors.ts'
import { readAnswer } from './answer.ts'
import { networkReason } from './network-reason.ts'
import { batchBody } from './transport.ts'
import type { Batch, SendResult, Transport } from './transport.ts'
import { version } from './version.ts'

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
