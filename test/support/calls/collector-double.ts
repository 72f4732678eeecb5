import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { readTrackingCall } from '../../../src/core/call/tracking-call.ts'
import { until } from '../until.ts'

/** How the double answers one request. Anything that is not `take` answers so before it takes a call. */
export type Answer =
  | 'take'
  /** The connection ends before anything is taken. */
  | 'reset'
  /** Everything is taken, then the connection ends without an answer. */
  | 'lose_answer'
  /** Taken, and never answered. */
  | 'hang'
  | { status: number; headers?: Record<string, string>; body?: string }
  /** As `take`, once the promise resolves. */
  | { after: Promise<unknown> }

export interface Item extends Record<string, unknown> {
  type: string
  messageId: string
}

export interface ReceivedRequest {
  at: number
  method: string
  path: string
  headers: IncomingMessage['headers']
  bytes: number
  sentAt: string
  items: Item[]
}

/**
 * An HTTP server that does to `/v1/batch` what the contract says of a collector: checks key, sizes and calls, takes
 * each messageId once, and names what it rejects. Nothing behind it; what it takes is in `taken`.
 */
export interface CollectorDouble {
  url: string
  requests: ReceivedRequest[]
  /** Each call once, by messageId, in the order of arrival. */
  taken: Map<string, Item>
  /** Whatever broke the contract; empty when the client is right. */
  faults: string[]
  /** For the next requests, one each; afterwards it takes what comes. */
  answer(...next: Answer[]): void
  /** For every request, when nothing else was said. */
  always: Answer
  /** Calls with such an event are rejected. */
  rejectedEvents: Set<unknown>
  /** With which status rejected calls are named. With 400 the others are not taken either. */
  rejectedStatus: 200 | 400
  /** Connections that are open. */
  connections(): Promise<number>
  received(requests: number): Promise<void>
}

export const writeKey = 'key-of-shop'

export async function collectorDouble(t: TestContext, port = 0): Promise<CollectorDouble> {
  const answers: Answer[] = []
  const server = createServer((request, response) => {
    void handle(request, response).catch((error: unknown) => double.faults.push(String(error)))
  })
  // Longer than any test: a connection that ends was closed by the client.
  server.keepAliveTimeout = 600_000
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const double: CollectorDouble = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: [],
    taken: new Map(),
    faults: [],
    answer: (...next) => void answers.push(...next),
    always: 'take',
    rejectedEvents: new Set(),
    rejectedStatus: 200,
    connections: () =>
      new Promise((resolve, reject) =>
        server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
      ),
    received: (requests) => until(() => double.requests.length >= requests, 10_000, `${requests} requests`),
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer)
    } catch {
      // The client gave up.
      return
    }
    const body = Buffer.concat(chunks)
    const { batch, sentAt } = JSON.parse(body.toString()) as { batch: Item[]; sentAt: string }
    double.requests.push({
      at: performance.now(),
      method: request.method!,
      path: request.url!,
      headers: request.headers,
      bytes: body.length,
      sentAt,
      items: batch,
    })
    const expected = `Basic ${Buffer.from(`${writeKey}:`).toString('base64')}`
    if (request.headers.authorization !== expected) double.faults.push('wrong authorization')
    if (body.length > 500 * 1_024) double.faults.push(`a body of ${body.length} bytes`)
    if (batch.length === 0) double.faults.push('an empty batch')
    const answer = answers.shift() ?? double.always
    if (answer === 'reset') return void request.socket.destroy()
    if (typeof answer === 'object' && 'status' in answer) {
      response.writeHead(answer.status, { 'Content-Type': 'application/json', ...answer.headers })
      return void response.end(answer.body ?? `{"success":false,"code":"some_code","message":"some message"}`)
    }
    if (typeof answer === 'object') await answer.after
    const rejected = take(batch)
    if (answer === 'hang') return
    if (answer === 'lose_answer') return void request.socket.destroy()
    const status = rejected.length > 0 ? double.rejectedStatus : 200
    response.writeHead(status, { 'Content-Type': 'application/json' })
    response.end(JSON.stringify({ success: status === 200, ...(rejected.length > 0 && { rejected }) }))
  }

  function take(batch: Item[]): { index: number; code: string; message: string }[] {
    const rejected: { index: number; code: string; message: string }[] = []
    batch.forEach((item, index) => {
      const text = JSON.stringify(item)
      if (Buffer.byteLength(text) > 32 * 1_024) double.faults.push('a call over 32 KB')
      const { fault } = readTrackingCall(text, {
        sourceId: 'shop',
        receivedAt: Date.now(),
        newMessageId: () => 'made',
      })
      if (fault) double.faults.push(fault.message)
      if (double.rejectedEvents.has(item.event)) {
        rejected.push({ index, code: 'event_not_string', message: 'event must be a string' })
      }
    })
    if (rejected.length > 0 && double.rejectedStatus === 400) return rejected
    for (const item of batch) {
      if (!double.rejectedEvents.has(item.event) && !double.taken.has(item.messageId))
        double.taken.set(item.messageId, item)
    }
    return rejected
  }
  return double
}
