import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import type { AuthenticationProviderArgs } from 'kafkajs'
import {
  oauthBearer,
  OAuthTokens,
  subjectOfToken,
  TokenError,
} from '../../../../src/adapters/kafka/secure/oauth-token.ts'

const secret = 'top/secret+='

/** An endpoint that answers with what the test gives it, and keeps what it was asked. */
async function endpoint(
  t: TestContext,
  answer: (response: ServerResponse, times: number) => void,
): Promise<{ url: string; asked: { request: IncomingMessage; body: string }[] }> {
  const asked: { request: IncomingMessage; body: string }[] = []
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += String(chunk)
    asked.push({ request, body })
    answer(response, asked.length)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/token`, asked }
}

const json = (response: ServerResponse, status: number, fields: object): void =>
  void response.writeHead(status).end(JSON.stringify(fields))

const loginAt = (tokenUrl: string, scope: string | null = null) => ({
  mechanism: 'oauthbearer' as const,
  tokenUrl,
  clientId: 'client: 1',
  clientSecret: secret,
  scope,
})

test('a token is requested with form-encoded Basic authentication, once for all callers', async (t) => {
  const { url, asked } = await endpoint(t, (response) =>
    json(response, 200, { access_token: 'abc', expires_in: 3_600 }),
  )
  const tokens = new OAuthTokens(loginAt(url, 'a b'))
  assert.deepEqual(await Promise.all([tokens.token(), tokens.token(), tokens.token()]), ['abc', 'abc', 'abc'])
  assert.equal(await tokens.token(), 'abc')
  assert.equal(asked.length, 1)
  const { request, body } = asked[0]!
  assert.equal(request.method, 'POST')
  assert.equal(request.headers['content-type'], 'application/x-www-form-urlencoded')
  assert.equal(body, 'grant_type=client_credentials&scope=a+b')
  const basic = Buffer.from(request.headers.authorization!.slice('Basic '.length), 'base64').toString()
  assert.equal(basic, 'client%3A+1:top%2Fsecret%2B%3D')
})

test('the next token is fetched when a fifth of the lifetime, at least 15 s, is left, or when a broker refused the current one', async (t) => {
  const { url, asked } = await endpoint(t, (response, times) =>
    json(response, 200, {
      access_token: `t${times}`,
      ...(times < 4 ? { expires_in: times < 3 ? 100 : 30 } : {}),
    }),
  )
  let now = 0
  const tokens = new OAuthTokens(loginAt(url), { now: () => now })
  assert.equal(await tokens.token(), 't1')
  now = 79_999
  assert.equal(await tokens.token(), 't1')
  now = 80_000
  assert.equal(await tokens.token(), 't2')
  tokens.forget('t1')
  assert.equal(await tokens.token(), 't2')
  tokens.forget('t2')
  assert.equal(await tokens.token(), 't3')
  now += 14_999
  assert.equal(await tokens.token(), 't3')
  now += 1
  assert.equal(await tokens.token(), 't4')
  // Without a lifetime it counts as one of a minute.
  now += 44_999
  assert.equal(await tokens.token(), 't4')
  now += 1
  assert.equal(await tokens.token(), 't5')
  assert.equal(asked.length, 5)
})

test('a refusal is distinguished from an unreachable endpoint, and no message contains the secret', async (t) => {
  /** Of the endpoints that never answer; the others have as long as a busy machine needs. */
  const shortMs = 200
  const failures: [
    answer: (response: ServerResponse) => void,
    isRefused: boolean,
    message: RegExp,
    timeoutMs?: number,
  ][] = [
    [
      (response) => json(response, 401, { error: 'invalid_client' }),
      true,
      /refuses a token to client "client: 1" with 401 \(invalid_client\): check KAFKA_SASL_OAUTH_CLIENT_ID and/,
    ],
    [
      (response) =>
        json(response, 400, { error: 'invalid_scope', error_description: `no\n${'x'.repeat(900)}` }),
      true,
      /400 \(invalid_scope: no x{280}.*: check KAFKA_SASL_OAUTH_SCOPE$/,
    ],
    [
      (response) => response.writeHead(404).end('<html>'),
      true,
      /with 404: check KAFKA_SASL_OAUTH_TOKEN_URL$/,
    ],
    [
      (response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
      true,
      /with 302: check KAFKA_SASL_OAUTH_TOKEN_URL$/,
    ],
    [(response) => response.writeHead(200).end('{}'), true, /answers 200 without an access_token: check/],
    [(response) => json(response, 200, { access_token: 'a b' }), true, /without an access_token/],
    [
      (response) => json(response, 503, { error: 'busy' }),
      false,
      /no token for the brokers: \S+ answers 503 \(busy\)$/,
    ],
    [(response) => response.writeHead(429).end(), false, /answers 429$/],
    [(response) => response.destroy(), false, /cannot be reached \(.+\)$/],
    [() => {}, false, /cannot be reached \(no answer within 200 ms\)$/, shortMs],
    [
      (response) => response.writeHead(200).write('{'),
      false,
      /cannot be reached \(no answer within 200 ms\)$/,
      shortMs,
    ],
    [(response) => response.writeHead(200).end(' '.repeat(300_000)), false, /more than 262144 bytes/],
  ]
  let next = 0
  const { url } = await endpoint(t, (response) => failures[next]![0](response))
  for (const [index, [, isRefused, message, timeoutMs = 10_000]] of failures.entries()) {
    next = index
    await assert.rejects(new OAuthTokens(loginAt(url), { timeoutMs }).token(), (error) => {
      assert.ok(error instanceof TokenError)
      assert.match(error.message, message)
      assert.deepEqual([error.isRefused, error.retriable], [isRefused, !isRefused], error.message)
      // kafkajs drops a connection whose login cannot go on by this name only.
      assert.equal(error.name === 'KafkaJSConnectionError', !isRefused)
      assert.ok(!JSON.stringify([error.message, error.stack, error.cause]).includes(secret))
      return true
    })
  }
})

test('after a failure the next caller requests a token again', async (t) => {
  const { url } = await endpoint(t, (response, times) =>
    times === 1
      ? response.writeHead(500).end()
      : json(response, 200, { access_token: 'abc', expires_in: 60 }),
  )
  const tokens = new OAuthTokens(loginAt(url))
  await assert.rejects(tokens.token())
  assert.equal(await tokens.token(), 'abc')
})

test('the user is read from a token that is a JWT', () => {
  const jwt = ['{}', '{"sub":"ann"}', ''].map((part) => Buffer.from(part).toString('base64url')).join('.')
  assert.equal(subjectOfToken(jwt), 'ann')
  assert.equal(subjectOfToken('opaque'), null)
  assert.equal(subjectOfToken('a.b.c'), null)
})

test('a token that a broker refuses in its first answer is not used again, and the broker’s reason is told', async (t) => {
  const { url, asked } = await endpoint(t, (response, times) =>
    json(response, 200, { access_token: `t${times}`, expires_in: 3_600 }),
  )
  const { authenticationProvider } = oauthBearer(loginAt(url), () => {})
  let refuses = true
  const saslAuthenticate = async () => {
    if (!refuses) return ''
    throw Object.assign(new Error('invalid token: its key is unknown'), {
      type: 'SASL_AUTHENTICATION_FAILED',
    })
  }
  const provider = authenticationProvider({ saslAuthenticate } as unknown as AuthenticationProviderArgs)
  await assert.rejects(provider.authenticate(), (error) => {
    assert.ok(error instanceof TokenError && error.isRefused)
    assert.match(error.message, /Kafka refuses the token of client .*invalid token: its key is unknown/)
    return true
  })
  refuses = false
  await provider.authenticate()
  assert.equal(asked.length, 2)
})
