// A reference: Fastify as it comes, which parses the same bodies and answers the same.
import { fastify } from 'fastify'

const app = fastify({ bodyLimit: 500 << 10 })
app.route({ method: 'POST', url: '/v1/batch', handler: async () => ({ success: true }) })
app.route({ method: 'POST', url: '/v1/track', handler: async () => ({ success: true }) })
await app.listen({ port: 0, host: '127.0.0.1' })
const address = app.server.address()
process.on('disconnect', () => process.exit())
process.on('message', () => {
  const { user, system } = process.cpuUsage()
  process.send!({
    kind: 'usage',
    cpuMs: (user + system) / 1_000,
    rssMb: process.memoryUsage.rss() / 2 ** 20,
    at: performance.now(),
  })
})
process.send!({ kind: 'listening', port: typeof address === 'object' ? address!.port : 0 })
