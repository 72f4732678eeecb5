// OAuth2 client credentials, of oidc-provider where not said otherwise.
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { WebhookTransportOptions } from '../../../src/adapters/webhook/transport.ts'
import { renewedAfter } from '../../../src/core/login/token-life.ts'
import type { OAuthLogin, TlsLogin } from '../../../src/forwarder/send/webhook-transport.ts'
import { freePort } from '../../../src/local/ports.ts'
import { startOidcProvider, oidcSecret, type OidcProvider } from '../../support/oidc.ts'
import { startReceiver, type Answer, type Receiver } from '../../support/receivers.ts'
import { createAuthority } from '../../support/secured/certificates.ts'
import { until } from '../../support/until.ts'
import { openTransport, requestOf, send } from './transport-under-test.ts'

const bearers = ({ requests }: Receiver) => requests.map(({ headers }) => headers.authorization)

/** An endpoint of a destination that logs in, and what gets its requests. */
async function open(
  t: TestContext,
  oauth: OAuthLogin,
  tls: TlsLogin | null = null,
  options: Partial<WebhookTransportOptions> = {},
) {
  const receiver = await startReceiver(t)
  const endpoint = openTransport(t, options).open({ url: receiver.url, headers: {}, oauth, tls })
  return { receiver, endpoint }
}

/** Takes only the newest token. */
const takesNewest =
  ({ issued }: OidcProvider, status = 200) =>
  ({ headers }: { headers: Receiver['requests'][0]['headers'] }): Answer =>
    headers.authorization === `Bearer ${issued.at(-1)}` ? { status } : { status: 401 }

test('requests carry a token, and those that need one at the same time share one request for it', async (t) => {
  const provider = await startOidcProvider(t)
  const { receiver, endpoint } = await open(t, provider.login)
  const outcomes = await Promise.all(Array.from({ length: 20 }, () => send(endpoint)))
  outcomes.push(await send(endpoint))
  assert.ok(
    outcomes.every(({ kind }) => kind === 'success'),
    JSON.stringify(outcomes[0]),
  )
  assert.deepEqual(new Set(bearers(receiver)), new Set([`Bearer ${provider.issued[0]}`]))
  assert.equal(provider.asked(), 1)
  assert.ok(receiver.requests.every(({ headers }) => headers['idempotency-key'] === 'm1:crm'))
})

test('URLs of one destination share their token, and other destinations have their own', async (t) => {
  const provider = await startOidcProvider(t)
  const receiver = await startReceiver(t)
  const transport = openTransport(t)
  const target = { url: receiver.url, headers: {} }
  const [one, two] = [provider.login, provider.login].map((oauth) => transport.open({ ...target, oauth }))
  const other = transport.open({ ...target, oauth: { ...provider.login, owner: 'other' } })
  for (const endpoint of [one!, two!, other]) assert.equal((await send(endpoint)).kind, 'success')
  const [first, second, third] = bearers(receiver)
  assert.equal(first, second)
  assert.notEqual(third, first)
})

test('the next token is asked for while the present one is used, and no request waits for it', async (t) => {
  const provider = await startOidcProvider(t, { lifetimeSeconds: 2 })
  // It stands still, so that the present token does not end while the next one is waited for.
  let now = 0
  const { receiver, endpoint } = await open(t, provider.login, null, { steadyNow: () => now })
  assert.equal((await send(endpoint)).kind, 'success')
  const held = Promise.withResolvers<void>()
  provider.hold(held.promise)
  assert.equal((await send(endpoint)).kind, 'success')
  assert.equal(provider.asked(), 1)
  now = 2_000 * renewedAfter
  await until(async () => {
    assert.equal((await send(endpoint)).kind, 'success')
    return provider.asked() === 2
  })
  // It is asked for, and not there.
  assert.equal((await send(endpoint)).kind, 'success')
  assert.equal(provider.issued.length, 1)
  assert.equal(new Set(bearers(receiver)).size, 1)
  held.resolve()
  provider.hold(null)
  await until(async () => {
    assert.equal((await send(endpoint)).kind, 'success')
    return bearers(receiver).at(-1) === `Bearer ${provider.issued[1]}`
  })
})

test('a token that the receiver refuses is replaced once, however many requests carried it', async (t) => {
  const provider = await startOidcProvider(t)
  const { receiver, endpoint } = await open(t, provider.login)
  assert.equal((await send(endpoint)).kind, 'success')
  const [ended] = provider.issued
  receiver.answer(({ headers }) => ({ status: headers.authorization === `Bearer ${ended}` ? 401 : 200 }))
  const outcomes = await Promise.all(Array.from({ length: 50 }, () => send(endpoint)))
  assert.ok(
    outcomes.every(({ kind }) => kind === 'success'),
    JSON.stringify(outcomes[0]),
  )
  assert.equal(provider.asked(), 2)
  assert.equal(receiver.requests.length, 1 + 2 * 50)
})

test('a second 401 is final, and a receiver that refuses every token has one replaced, not one for each request', async (t) => {
  const provider = await startOidcProvider(t)
  const { receiver, endpoint } = await open(t, provider.login)
  receiver.answer({ status: 401 })
  for (let index = 0; index < 5; index++) {
    const { kind, status } = await send(endpoint)
    assert.deepEqual([kind, status], ['status_4xx', 401])
  }
  assert.equal(provider.asked(), 2)
  assert.equal(receiver.requests.length, 2 + 4)
  // Once a token was taken, the next refusal has it replaced again.
  receiver.answer(takesNewest(provider))
  assert.equal((await send(endpoint)).kind, 'success')
  provider.issued.push('none that the receiver was given')
  receiver.answer(takesNewest(provider))
  assert.equal((await send(endpoint)).kind, 'success')
  assert.equal(provider.asked(), 3)
})

test('a refused request is not sent again where it may not go, and is no failure of the receiver', async (t) => {
  const provider = await startOidcProvider(t)
  const { receiver, endpoint } = await open(t, provider.login)
  receiver.answer({ status: 401 })
  const outcome = await new Promise<{ kind: string }>((resolve) =>
    endpoint.send(requestOf(), { onOutcome: resolve, sendAgain: (why) => why !== 'token' }),
  )
  assert.equal(outcome.kind, 'no_token')
  assert.equal(receiver.requests.length, 1)
})

test('a refused request that may not go any more by the time its new token is there is not sent', async (t) => {
  const provider = await startOidcProvider(t)
  const { receiver, endpoint } = await open(t, provider.login)
  assert.equal((await send(endpoint)).kind, 'success')
  const held = Promise.withResolvers<void>()
  provider.hold(held.promise)
  receiver.answer({ status: 401 }, { status: 200 })
  let may = true
  const outcome = new Promise<{ kind: string }>((resolve) =>
    endpoint.send(requestOf(), { onOutcome: resolve, sendAgain: () => may, mayStillGo: () => may }),
  )
  await until(() => provider.asked() === 2, 10_000, 'that another token is asked for')
  may = false
  held.resolve()
  assert.equal((await outcome).kind, 'no_token')
  assert.equal(receiver.requests.length, 2)
})

test('a token that replaced a refused one and was revoked before it was used is replaced, too', async (t) => {
  const provider = await startOidcProvider(t)
  const { receiver, endpoint } = await open(t, provider.login)
  receiver.answer({ status: 401 })
  // It may not go out again, so nobody uses the token that it has got.
  await new Promise((resolve) =>
    endpoint.send(requestOf(), { onOutcome: resolve, sendAgain: (why) => why !== 'token' }),
  )
  await until(() => provider.issued.length === 2 && endpoint.login!.isReady)
  const [, revoked] = provider.issued
  receiver.answer(({ headers }) => ({ status: headers.authorization === `Bearer ${revoked}` ? 401 : 200 }))
  assert.equal((await send(endpoint)).kind, 'success')
  assert.equal(provider.asked(), 3)
})

test('while no token is to be had nothing is sent; it is asked for again by itself, and not by each request', async (t) => {
  const provider = await startOidcProvider(t)
  await provider.stop()
  // It stands still until the provider is there again, and a request has met that there is no token still.
  let now = 0
  const { receiver, endpoint } = await open(t, provider.login, null, { steadyNow: () => now })
  const { kind, detail } = await send(endpoint)
  assert.equal(kind, 'no_token')
  assert.match(detail!, /^http:\/\/127\.0\.0\.1:\d+ gives no token: .*ECONNREFUSED/)
  const login = endpoint.login!
  assert.equal(login.problem, detail)
  assert.equal(login.isReady, false)
  const changed = new Promise<void>((resolve) => login.onChange(resolve))
  await provider.start()
  assert.equal((await send(endpoint)).kind, 'no_token')
  now += 1_000
  await changed
  assert.deepEqual([login.isReady, login.problem, provider.asked()], [true, null, 1])
  assert.equal((await send(endpoint)).kind, 'success')
  assert.equal(receiver.requests.length, 1)
})

test('a wrong secret is said with what the provider says, and never shown', async (t) => {
  const provider = await startOidcProvider(t)
  const { endpoint } = await open(t, { ...provider.login, clientSecret: 'wr0ng secret' })
  const { kind, detail } = await send(endpoint)
  assert.equal(kind, 'no_token')
  assert.match(detail!, /answers 401 \(invalid_client: client authentication failed\)$/)
  assert.doesNotMatch(detail!, /wr0ng/)
})

test('a token endpoint that wants the secret in the form gets it there, and in no header', async (t) => {
  const provider = await startOidcProvider(t, { clientAuth: 'client_secret_post' })
  const { receiver, endpoint } = await open(t, provider.login)
  assert.equal((await send(endpoint)).kind, 'success')
  assert.deepEqual(bearers(receiver), [`Bearer ${provider.issued[0]}`])
  const tokens = await startReceiver(t)
  for (const clientAuth of ['client_secret_post', 'client_secret_basic'] as const)
    await send((await open(t, { ...provider.login, clientAuth, tokenUrl: tokens.url })).endpoint)
  const [inForm, inHeader] = tokens.requests.map(({ headers, body }) => [
    headers.authorization === undefined,
    new URLSearchParams(body.toString()).get('client_secret'),
  ])
  assert.deepEqual(
    [inForm, inHeader],
    [
      [true, oidcSecret],
      [false, null],
    ],
  )
})

test('tokens come by TLS from whom the destination trusts, and its secret goes to nobody else', async (t) => {
  const [own, other] = [await createAuthority(t), await createAuthority(t)]
  const provider = await startOidcProvider(t, { tls: await own.issue() })
  const tls = { cert: null, key: null, ca: own.ca }
  const trusted = await open(t, provider.login, tls)
  assert.equal((await send(trusted.endpoint)).kind, 'success')
  const impostor = await startReceiver(t, { tls: await other.issue() })
  for (const [oauth, with_] of [
    [provider.login, null],
    [{ ...provider.login, tokenUrl: impostor.url }, tls],
  ] as const) {
    const { kind, detail } = await send((await open(t, oauth, with_)).endpoint)
    assert.equal(kind, 'no_token')
    assert.match(detail!, /certificate/)
  }
  assert.equal(impostor.requests.length, 0)
  assert.equal(provider.asked(), 1)
})

test('the token endpoint’s address is vetted as a webhook’s is', async (t) => {
  const receiver = await startReceiver(t)
  const port = await freePort()
  const tokenUrl = `http://10.0.0.1:${port}/token`
  const { login } = await startOidcProvider(t)
  const endpoint = openTransport(t).open({ url: receiver.url, headers: {}, oauth: { ...login, tokenUrl } })
  const { kind, detail } = await send(endpoint)
  assert.equal(kind, 'no_token')
  assert.match(detail!, /WEBHOOK_ALLOWED_NETWORKS/)
  assert.equal(receiver.requests.length, 0)
})

const answers: [what: string, answer: Answer, problem: RegExp | null][] = [
  ['a token without a life', { body: '{"access_token":"a","token_type":"bearer"}' }, null],
  ['another kind of token', { body: '{"access_token":"a","token_type":"mac"}' }, /token_type is not Bearer$/],
  ['a token of no kind', { body: '{"access_token":"a"}' }, /token_type is not Bearer$/],
  [
    'a token with a line end',
    { body: '{"access_token":"a\\r\\nX: 1","token_type":"Bearer"}' },
    /without an access_token$/,
  ],
  ['a page', { body: '<html>' }, /answers without an access_token$/],
  ['more than is read', { body: `{"access_token":"${'a'.repeat(100_000)}` }, /without an access_token$/],
  ['a server error', { status: 503, body: 'busy' }, /answers 503$/],
  ['a redirect', { status: 302, headers: { location: 'http://127.0.0.1/' } }, /answers 302$/],
  ['no answer', { instead: { do: 'reset' } }, /gives no token: .*ECONNRESET/],
]

for (const [what, answer, problem] of answers)
  test(`a token endpoint that answers with ${what}`, async (t) => {
    const tokens = await startReceiver(t)
    tokens.answer({ headers: { 'content-type': 'application/json' }, ...answer })
    const { login } = await startOidcProvider(t)
    const { endpoint } = await open(t, { ...login, tokenUrl: tokens.url, audience: 'https://api.test/' })
    const { kind, detail } = await send(endpoint)
    assert.equal(kind, problem === null ? 'success' : 'no_token')
    if (problem !== null) assert.match(detail!, problem)
    const [asked] = tokens.requests
    assert.equal(
      asked!.body.toString(),
      'grant_type=client_credentials&scope=calls&audience=https%3A%2F%2Fapi.test%2F',
    )
    assert.equal(asked!.headers['content-type'], 'application/x-www-form-urlencoded')
    assert.equal(asked!.headers['idempotency-key'], undefined)
  })

test('a response that repeats the token or the secret is kept without them', async (t) => {
  const provider = await startOidcProvider(t)
  const { receiver, endpoint } = await open(t, provider.login)
  receiver.answer(({ headers }) => ({
    status: 400,
    body: `you sent ${headers.authorization} and ${oidcSecret}`,
  }))
  const { body } = await send(endpoint)
  assert.equal(Buffer.from(body!).toString(), 'you sent Bearer [removed] and [removed]')
})
