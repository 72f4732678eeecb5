import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { registryUrl } from './rig.ts'

/** Registers a schema under a subject of the run's registry, as a producer in another language would. */
export async function registerSchema(subject: string, schema: object): Promise<number> {
  const response = await fetch(`${registryUrl()}/subjects/${subject}/versions`, {
    method: 'POST',
    headers: { 'content-type': 'application/vnd.schemaregistry.v1+json' },
    body: JSON.stringify({ schema: JSON.stringify(schema) }),
  })
  const body = (await response.json()) as { id?: number }
  if (body.id === undefined) throw new Error(`${subject}: ${response.status} ${JSON.stringify(body)}`)
  return body.id
}

/** An HTTP server on loopback in the place of a registry; gives its URL. */
export async function brokenRegistry(
  t: TestContext,
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<string> {
  const server = createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
