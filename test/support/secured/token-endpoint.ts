import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'

export interface TokenEndpoint {
  url: string
  /** Tokens given so far. */
  count(): number
}

export const clientSecret = 'the-secret-of-the-client/+='

/**
 * An endpoint for client credentials (RFC 6749, 4.4) with the scope `kafka`; closed after the test. Its tokens hold for
 * an hour and are what the unsecured validator of `securedKafka` takes, for the user whose name is the client's id. The
 * client `stale` gets one that has expired, which the brokers refuse.
 */
export async function tokenEndpoint(t: TestContext): Promise<TokenEndpoint> {
  let count = 0
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += String(chunk)
    const form = new URLSearchParams(body)
    const basic = request.headers.authorization?.slice('Basic '.length) ?? ''
    const [id, secret] = Buffer.from(basic, 'base64').toString().split(':').map(decodeURIComponent)
    const answer = (status: number, fields: object) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(fields))
    if (secret !== clientSecret)
      return answer(401, { error: 'invalid_client', error_description: 'no such\nclient' })
    if (form.get('grant_type') !== 'client_credentials' || form.get('scope') !== 'kafka')
      return answer(400, { error: 'invalid_scope' })
    count++
    const now = Date.now() / 1_000
    const claims = { sub: id, iat: now, exp: now + (id === 'stale' ? -60 : 3_600) }
    const [head, claim] = [{ alg: 'none' }, claims].map((part) =>
      Buffer.from(JSON.stringify(part)).toString('base64url'),
    )
    return answer(200, { access_token: `${head}.${claim}.`, token_type: 'Bearer', expires_in: 3_600 })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/token`, count: () => count }
}
