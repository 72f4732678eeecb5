// A reference: Fastify as fast as it goes, which parses the same bodies and answers the same. It leaves out what it can: no
// look for "__proto__" in bodies, no promise for an answer, and a serializer made for that answer.
import { fastify, type RouteHandlerMethod } from 'fastify'

const app = fastify({
  bodyLimit: 500 << 10,
  onProtoPoisoning: 'ignore',
  onConstructorPoisoning: 'ignore',
})
const handler: RouteHandlerMethod = (_request, reply) => void reply.send({ success: true })
const schema = { response: { 200: { type: 'object', properties: { success: { type: 'boolean' } } } } }
app.route({ method: 'POST', url: '/v1/batch', handler, schema })
app.route({ method: 'POST', url: '/v1/track', handler, schema })
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
