import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { isDeepStrictEqual } from 'node:util'
import { renderBody } from '../../../src/core/call/body.ts'
import { nthCall, signatureOf } from '../../calls.ts'
import type { Form, Peer } from '../../peers/peers.ts'
import { deploy, type Servers } from '../../rig.ts'
import { makeBacklog } from './backlog.ts'

const calls = 200
const users = 50
const withinMs = 60_000

/**
 * Whether a peer makes the requests that Postrider makes: each call once at least, its body the same JSON, with the right
 * signature and id. Throws what is wrong: its figures would be of other work.
 */
export async function makesSameRequests(servers: Servers, peer: Peer, form: Form): Promise<void> {
  const missing = new Map(
    Array.from({ length: calls }, (_, index) => nthCall(index, users)).map((call) => [call.messageId, call]),
  )
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const check = (request: IncomingMessage, body: string) => {
    const id = String(request.headers['idempotency-key']).replace(/:crm$/, '')
    const call = missing.get(id)
    if (!call) return
    const problem = [
      request.method !== 'POST' && 'is no POST',
      request.headers['content-type'] !== 'application/json' && 'has another Content-Type',
      request.headers['x-signature'] !== signatureOf(body) && 'is not signed right',
      !isDeepStrictEqual(JSON.parse(body), JSON.parse(renderBody(call))) && `has the body ${body}`,
    ].find((each) => each !== false)
    if (problem) return reject(new Error(`${peer.name} (${form}): the request of ${id} ${problem}`))
    missing.delete(id)
    if (missing.size === 0) resolve()
  }
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      response.end()
      check(request, Buffer.concat(chunks).toString())
    })
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`
  const deployment = await deploy(servers)
  const backlog = await makeBacklog(deployment, () => url)
  await backlog.produce([form], calls, (index) => nthCall(index, users))
  const { env } = deployment
  const order = { env, topic: backlog.topic(form), groupId: `${env.GROUP_ID}.check`, form, urls: [url] }
  const child = peer.start({ ...order, inFlight: 16 })
  const timer = setTimeout(
    () => reject(new Error(`${peer.name} (${form}): ${missing.size} of ${calls} calls did not come`)),
    withinMs,
  )
  try {
    await child.unlessEnded(promise)
  } finally {
    clearTimeout(timer)
    await Promise.all([child.end(), deployment.close()])
    server.closeAllConnections()
    server.close()
  }
}
