import { once } from 'node:events'
import { createServer } from 'node:http'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Part } from '../supervisor.ts'
import { listenFailure, urlAt } from './http/serving.ts'
import type { Logger } from './log.ts'
import type { MetricsPage } from './metrics/page.ts'

/** One thing that must be well before this process can do its work. */
export interface ReadinessCheck {
  name: string
  /** Null when all is well, else why not, in one line for people. */
  problem(): string | null
  /** What does not keep the process from its work, but should be known; null when there is nothing. */
  warning?(): string | null
}

export interface MonitoringServer extends Part {
  /** The port that was got, when 0 was asked for. */
  port: number
  /** For a start that fails before `run`. Idempotent. */
  close(): Promise<void>
}

/** How long a scrape that is running may take at the end. */
const graceMs = 1_000
/** A scraper that stops reading is cut off. */
const idleMs = 30_000

/**
 * Serves `/metrics`, `/healthz` (the process lives) and `/readyz` (503 with the reasons while a check finds a
 * problem, and the warnings in any case). It listens from here on, so that a port that is taken stops the start before anything else begins:
 * PostriderError 'local'. As a part it comes first, hence stops last and shows the others' draining.
 */
export async function openMonitoringServer(options: {
  port: number
  host: string
  page: MetricsPage
  checks: readonly ReadinessCheck[]
  log: Logger
}): Promise<MonitoringServer> {
  const { page, checks, log } = options
  const server = createServer((request, response) => {
    answer(request, response, page, checks).catch((error: unknown) => {
      log.warn({ err: error, path: request.url }, 'a monitoring request failed')
      response.destroy()
    })
  })
  server.setTimeout(idleMs)
  await listen(server, options)
  const { port } = server.address() as AddressInfo
  const where = `${urlAt(options.host, port)}/metrics`
  if (log.isLevelEnabled('info')) log.info({ port }, `metrics at ${where}`)
  else if (options.port === 0) console.error(`metrics at ${where}`)
  let closing: Promise<void> | undefined
  const close = () => (closing ??= closeServer(server))
  return {
    name: 'monitoring',
    port,
    close,
    async run(signal) {
      if (!signal.aborted) await once(signal, 'abort')
      await close()
    },
  }
}

async function listen(server: Server, { port, host }: { port: number; host: string }): Promise<void> {
  // Where there is no IPv6, Node takes all IPv4 addresses in place of `::`.
  server.listen(port, host === '::' ? undefined : host)
  try {
    await once(server, 'listening')
  } catch (error) {
    throw listenFailure(error, { port, host, part: 'METRICS' })
  }
}

async function closeServer(server: Server): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  const force = setTimeout(() => server.closeAllConnections(), graceMs)
  await closed
  clearTimeout(force)
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  page: MetricsPage,
  checks: readonly ReadinessCheck[],
): Promise<void> {
  request.resume()
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('Allow', 'GET, HEAD')
    return sendJson(response, 405, { code: 'method_not_allowed', message: 'Only GET and HEAD.' })
  }
  switch (request.url?.split('?')[0]) {
    case '/metrics':
      response.setHeader('Content-Type', page.contentType)
      if (request.method === 'HEAD') response.end()
      else await sendPage(response, page)
      return
    case '/healthz':
      return sendJson(response, 200, { alive: true })
    case '/readyz': {
      const results = checks.map((check) => [check.name, check.problem() ?? 'ok'] as const)
      const ready = results.every(([, result]) => result === 'ok')
      const warned = checks.flatMap((check) => {
        const warning = check.warning?.() ?? null
        return warning === null ? [] : [[check.name, warning] as const]
      })
      return sendJson(response, ready ? 200 : 503, {
        ready,
        checks: Object.fromEntries(results),
        ...(warned.length > 0 && { warnings: Object.fromEntries(warned) }),
      })
    }
    default:
      return sendJson(response, 404, {
        code: 'not_found',
        message: 'There are /metrics, /healthz and /readyz.',
      })
  }
}

async function sendPage(response: ServerResponse, page: MetricsPage): Promise<void> {
  try {
    await pipeline(Readable.from(page.pieces()), response)
  } catch (error) {
    // The client has gone away.
    if ((error as NodeJS.ErrnoException).code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error
  }
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'Content-Type': 'application/json' })
  response.end(`${JSON.stringify(body)}\n`)
}
