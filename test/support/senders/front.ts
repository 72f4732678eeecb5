import { once } from 'node:events'
import {
  createServer as createHttpServer,
  request,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { TestContext } from 'node:test'
import { gunzipSync } from 'node:zlib'
import type { ServerCertificate } from '../secured/certificates.ts'

/** What it answers instead of the collector. */
export interface Refusal {
  status: number
  headers?: Record<string, string>
  /** The collector has got the request, and its answer is lost. */
  isTaken?: boolean
}

export interface Front {
  /** `<address>:<port>` */
  host: string
  port: number
  /** The status of each request with calls, in order. */
  answers: number[]
  /** The types of the calls in the batches that the collector accepted and whose answer was passed on. */
  accepted: string[]
  /** Until then, and after `close`, connections to it are refused. */
  open(): Promise<void>
  close(): Promise<void>
}

let addresses = 0

/**
 * Another one each time, of 127.0.0.0/8, at which nothing else of this machine connects or listens: a port of it stays free
 * while nobody listens.
 */
export const ownAddress = (): string =>
  [127, 64 + ((process.pid >> 8) & 127), process.pid & 255, 1 + (addresses++ % 254)].join('.')

/** What stands between senders and a collector. Each of `refusals` answers one request with calls; then it passes them on. */
export async function startFront(
  t: TestContext,
  collector: { url: string },
  {
    tls,
    refusals = [],
    isAway = false,
    address = ownAddress(),
  }: { tls?: ServerCertificate | undefined; refusals?: Refusal[]; isAway?: boolean; address?: string },
): Promise<Front> {
  const waiting = [...refusals]
  const answers: number[] = []
  const accepted: string[] = []
  const onRequest = (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const hasCalls = incoming.method === 'POST' && incoming.url !== '/v1/m'
    const refusal = hasCalls ? waiting.shift() : undefined
    const answer = (status: number, headers: object, body: IncomingMessage | null) => {
      if (hasCalls) answers.push(status)
      outgoing.writeHead(status, { ...headers })
      if (body) body.pipe(outgoing)
      else outgoing.end()
    }
    const { origin } = incoming.headers
    // As a collector's answers have them: a page would not be told the status without.
    const forPages = origin && {
      'access-control-allow-origin': origin,
      'access-control-allow-credentials': 'true',
      'access-control-expose-headers': 'Retry-After',
    }
    const refuse = ({ status, headers }: Refusal) => answer(status, { ...forPages, ...headers }, null)
    if (refusal && !refusal.isTaken) {
      incoming.resume().on('end', () => refuse(refusal))
      return
    }
    const headers = { ...incoming.headers, ...(tls && { 'x-forwarded-proto': 'https' }) }
    const { method, url: path } = incoming
    const chunks: Buffer[] = []
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
    const passed = request(collector.url, { method, path, headers }, (given) => {
      if (refusal) {
        given.resume().on('end', () => refuse(refusal))
        return
      }
      if (hasCalls && given.statusCode === 200) accepted.push(...typesIn(Buffer.concat(chunks)))
      answer(given.statusCode!, given.headers, given)
    })
    passed.on('error', () => incoming.destroy())
    incoming.pipe(passed)
  }
  const server = tls ? createHttpsServer({ ...tls }, onRequest) : createHttpServer(onRequest)
  const listen = async (port: number) => {
    server.listen(port, address)
    await once(server, 'listening')
    return (server.address() as { port: number }).port
  }
  const end = () => {
    server.closeAllConnections()
    server.close()
  }
  const close = async () => {
    const closed = once(server, 'close')
    end()
    await closed
  }
  t.after(end)
  const port = await listen(0)
  if (isAway) await close()
  return {
    host: `${address}:${port}`,
    port,
    answers,
    accepted,
    open: async () => void (await listen(port)),
    close,
  }
}

/** Of the calls of a batch, packed or not. */
function typesIn(body: Buffer): string[] {
  const isPacked = body[0] === 0x1f && body[1] === 0x8b
  const { batch } = JSON.parse(String(isPacked ? gunzipSync(body) : body)) as { batch?: { type: string }[] }
  return batch?.map(({ type }) => type) ?? []
}
