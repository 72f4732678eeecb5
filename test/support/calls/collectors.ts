import pino from 'pino'
import { contextOf } from '../../../src/cli/context.ts'
import type { CollectorCounts } from '../../../src/adapters/metrics/collector-metrics.ts'
import { openCollector, type OpenCollectorOptions } from '../../../src/cli/open-collector.ts'
import type { AnalyticsCall } from '../../../src/core/call/analytics-call.ts'
import { type Deployment, type LogLine } from '../deployment/deployment.ts'
import { until } from '../until.ts'
import { parseExposition } from '../exposition.ts'
import { silentLog } from '../silent-log.ts'

export interface RunningCollector {
  port: number
  /** `http://127.0.0.1:<port>`, unless it has another host. */
  url: string
  counts: CollectorCounts
  log: LogLine[]
  /** Null when it takes work. */
  problem(): string | null
  /** What does not keep it from work. */
  warning(): string | null
  /** Stops it in good order; rejects with what it failed with. */
  stop(): Promise<void>
}

/** The write key of the source that `withSource` makes. */
export const writeKey = 'key-of-shop'

export async function withSource(deployment: Deployment, id = 'shop', enabled = true): Promise<void> {
  await deployment.settings.execute({
    type: 'create_source',
    id,
    name: id,
    writeKey: `key-of-${id}`,
    enabled,
  })
}

/** Starts a collector in this process, and waits until it takes work unless told not to. */
export async function startCollector(
  deployment: Deployment,
  options: Partial<OpenCollectorOptions> & { isReady?: boolean } = {},
): Promise<RunningCollector> {
  const { isReady = true, ...given } = options
  const lines: LogLine[] = []
  const log = pino({ level: 'debug' }, { write: (line) => void lines.push(JSON.parse(line) as LogLine) })
  const config = { ...deployment.config, collectorPort: 0 }
  const context = contextOf({ config: given.config ?? config, log }, silentLog)
  const host = given.host ?? '127.0.0.1'
  const open = openCollector({ ...context, ...given, host })
  const stopping = new AbortController()
  const ended = open.part.run(stopping.signal)
  let failure: unknown = null
  ended.catch((error: unknown) => (failure = error))
  const stop = async () => {
    stopping.abort()
    await ended
  }
  deployment.endFirst(stop)
  const problem = () => open.checks.map((check) => check.problem()).find((found) => found !== null) ?? null
  const warning = () =>
    open.checks.map((check) => check.warning?.() ?? null).find((found) => found !== null) ?? null
  const port = await open.listening
  if (isReady) {
    await until(() => {
      if (failure) throw failure as Error
      return problem() === null
    }, 20_000)
  }
  return { port, url: `http://${host}:${port}`, counts: open.counts, log: lines, problem, warning, stop }
}

/** The calls that lie in Kafka now. */
export async function collected(deployment: Deployment): Promise<AnalyticsCall[]> {
  const records = await deployment.read(deployment.topics.calls)
  return Promise.all(records.map(({ value }) => deployment.codecs.calls.decode(value)))
}

/** A series of the collector's metrics, 0 while it is not shown. */
export function collectorSample(collector: RunningCollector, labels: string): number {
  const { samples } = parseExposition([...collector.counts.expose()].join(''))
  return samples.get(`postrider_collector_calls_total{${labels}}`) ?? 0
}

/** The least that makes a call of any type. */
export const track = (messageId: string, more: object = {}): object => ({
  type: 'track',
  userId: 'u-1',
  event: 'Order Completed',
  messageId,
  ...more,
})

export interface Posted {
  status: number
  headers: Headers
  text: string
}

/** POSTs a body, by default as the source `shop`. */
export async function post(
  collector: { url: string },
  path: string,
  body: unknown,
  headers: Record<string, string> = { authorization: `Basic ${btoa(`${writeKey}:`)}` },
): Promise<Posted> {
  const isRaw = typeof body === 'string' || body instanceof Uint8Array
  const response = await fetch(collector.url + path, {
    method: 'POST',
    headers,
    body: isRaw ? (body as string) : JSON.stringify(body),
  })
  return { status: response.status, headers: response.headers, text: await response.text() }
}
