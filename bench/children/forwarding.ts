// The product as it is, in a process of its own: a forwarder composed as the command does it, with its log and with
// /metrics served and scraped. It reports when it is ready for work, and its CPU time and memory on request.
import { get } from 'node:http'
import { contextOf } from '../../src/cli/context.ts'
import { createLog, secretsOf } from '../../src/adapters/log.ts'
import { MetricsPage } from '../../src/adapters/metrics/page.ts'
import { openMonitoringServer } from '../../src/adapters/monitoring-server.ts'
import { openForwarder } from '../../src/cli/open-forwarder.ts'
import { loadConfig } from '../../src/config/config.ts'
import { superviseParts } from '../../src/supervisor.ts'

const config = loadConfig(process.env)
const log = createLog({ level: config.logLevel, to: 'stdout', secrets: secretsOf(config) })
const stopping = new AbortController()
const scrapeMs = 5_000

process.on('message', (message: { stop?: boolean }) => {
  if (message.stop) stopping.abort()
  else {
    const { user, system } = process.cpuUsage()
    const { rss, heapTotal, heapUsed, external, arrayBuffers } = process.memoryUsage()
    process.send!({
      kind: 'usage',
      cpuMs: (user + system) / 1_000,
      rssMb: rss / 2 ** 20,
      heapTotalMb: heapTotal / 2 ** 20,
      heapUsedMb: heapUsed / 2 ** 20,
      externalMb: external / 2 ** 20,
      arrayBuffersMb: arrayBuffers / 2 ** 20,
    })
  }
})
process.on('disconnect', () => stopping.abort())

const { part, counts, checks } = openForwarder(contextOf({ config, log }))
const page = new MetricsPage()
page.add(counts)
const monitoring = await openMonitoringServer({ port: 0, host: '127.0.0.1', page, checks, log })
const scrapes = setInterval(() => {
  get(`http://127.0.0.1:${monitoring.port}/metrics`, (response) => response.resume()).on('error', () => {})
}, scrapeMs)
process.send!({ kind: 'listening' })
const readiness = setInterval(() => {
  if (checks.some(({ problem }) => problem() !== null)) return
  clearInterval(readiness)
  process.send!({ kind: 'ready' })
}, 20)
await superviseParts([monitoring, part], stopping.signal)
clearInterval(readiness)
clearInterval(scrapes)
if (process.connected) process.disconnect()
