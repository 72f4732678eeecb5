// The product as it is, in a process of its own: a collector composed as the command does it, with /metrics served.
import pino from 'pino'
import { contextOf } from '../../src/cli/context.ts'
import { MetricsPage } from '../../src/adapters/metrics/page.ts'
import { openMonitoringServer } from '../../src/adapters/monitoring-server.ts'
import { openCollector } from '../../src/cli/open-collector.ts'
import { loadConfig } from '../../src/config/config.ts'
import { superviseParts } from '../../src/supervisor.ts'

const config = loadConfig(process.env)
const log = pino({ level: 'warn' }, pino.destination(2))
const stopping = new AbortController()

process.on('message', () => {
  const { user, system } = process.cpuUsage()
  process.send!({
    kind: 'usage',
    cpuMs: (user + system) / 1_000,
    rssMb: process.memoryUsage.rss() / 2 ** 20,
    at: performance.now(),
  })
})
process.on('disconnect', () => stopping.abort())

const { part, counts, checks, listening } = openCollector({
  ...contextOf({ config, log }),
  host: '127.0.0.1',
})
const page = new MetricsPage()
page.add(counts)
const monitoring = await openMonitoringServer({ port: 0, host: '127.0.0.1', page, checks, log })
const ended = superviseParts([monitoring, part], stopping.signal)
const port = await listening
while (checks.some(({ problem }) => problem() !== null))
  await new Promise((resolve) => setTimeout(resolve, 20))
process.send!({ kind: 'listening', port })
await ended
if (process.connected) process.disconnect()
