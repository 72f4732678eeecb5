import http from 'node:http'
import https from 'node:https'
import { urlToHttpOptions } from 'node:url'
import { readAnswer } from './answer.ts'
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
  readonly #writeKey: string
  readonly #timeoutMs: number
  readonly #client: typeof http | typeof https
  readonly #agent: http.Agent
  readonly #options: http.RequestOptions

  constructor({ endpoint, writeKey, timeoutMs }: { endpoint: URL; writeKey: string; timeoutMs: number }) {
    this.name = endpoint.origin + endpoint.pathname
    this.#writeKey = writeKey
    this.#timeoutMs = timeoutMs
    this.#client = endpoint.protocol === 'https:' ? https : http
    this.#agent = new this.#client.Agent({ keepAlive: true, maxSockets: 1 })
    this.#options = {
      ...urlToHttpOptions(endpoint),
      method: 'POST',
      agent: this.#agent,
      headers: {
        Authorization: `Basic ${Buffer.from(`${writeKey}:`).toString('base64')}`,
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
      const settle = (result: SendResult): void => {
        clearTimeout(timer)
        signal.removeEventListener('abort', onAbort)
        resolve(result)
      }
      const giveUp = (message: string): void => {
        settle({ kind: 'unavailable', message, retryAfterMs: null })
        request.destroy()
      }
      const onAbort = () => giveUp('given up')
      const timer = setTimeout(
        () => giveUp(`no complete answer within ${this.#timeoutMs} ms`),
        this.#timeoutMs,
      )
      signal.addEventListener('abort', onAbort)
      request.on('error', (error) => giveUp(networkReason(error)))
      request.on('response', (response) => {
        const chunks: Buffer[] = []
        let length = 0
        response.on('data', (chunk: Buffer) => {
          length += chunk.length
          if (length > maxAnswerBytes) giveUp(`${response.statusCode} with an endless answer`)
          else chunks.push(chunk)
        })
        response.on('error', (error) => giveUp(networkReason(error)))
        response.on('end', () => {
          // An answer that did not wait for the body: a server that reads no further would hold the connection.
          if (!request.writableFinished) request.destroy()
          const answer = {
            status: response.statusCode ?? 0,
            retryAfter: response.headers['retry-after'],
            body: Buffer.concat(chunks).toString(),
          }
          settle(this.#withoutKey(readAnswer(answer, batch.items.length, Date.now())))
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
    const clean = (text: string) => text.replaceAll(this.#writeKey, '…')
    if ('message' in result) return { ...result, message: clean(result.message) }
    if (result.rejected.length === 0) return result
    const rejected = result.rejected.map((item) => ({
      ...item,
      code: clean(item.code),
      message: clean(item.message),
    }))
    return { ...result, rejected }
  }
}

/** A refused connection to a name with several addresses comes as an AggregateError without a message. */
function networkReason(error: Error & { code?: string }): string {
  return error.message || error.code || error.name
}
