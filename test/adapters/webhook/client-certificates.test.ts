// Client certificates and authorities of a destination's own, at nginx and at a man in the middle.
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { TlsLogin } from '../../../src/forwarder/send/webhook-transport.ts'
import { startNginx } from '../../support/ops/nginx.ts'
import { needed } from '../../support/ops/tools.ts'
import { startReceiver } from '../../support/receivers.ts'
import { createAuthority, selfSigned, type ServerCertificate } from '../../support/secured/certificates.ts'
import { startForwardProxy } from '../../support/forward-proxy.ts'
import { openTransport, send } from './transport-under-test.ts'

const { skip } = needed('nginx')

const loginOf = ({ cert, key }: ServerCertificate, ca: string | null = null): TlsLogin => ({ cert, key, ca })
const onlyCa = (ca: string): TlsLogin => ({ cert: null, key: null, ca })

/** nginx that asks for a certificate of `clients`, and passes requests on with the name that it found in it. */
async function startGuarded(t: TestContext, version: string) {
  const [servers, clients] = [await createAuthority(t), await createAuthority(t)]
  const { cert, key } = await servers.issue()
  const receiver = await startReceiver(t)
  const { port } = await startNginx(
    t,
    { 'server.pem': cert, 'server.key': key, 'clients.pem': clients.ca },
    `ssl_certificate server.pem; ssl_certificate_key server.key; ssl_protocols ${version};
     ssl_client_certificate clients.pem; ssl_verify_client on;
     location / { proxy_pass ${new URL(receiver.url).origin}; proxy_set_header X-Client $ssl_client_s_dn; }`,
  )
  return { url: `https://127.0.0.1:${port}/hook`, servers, clients, receiver }
}

for (const version of ['TLSv1.2', 'TLSv1.3'])
  test(
    `nginx takes the right client certificate, and refuses a wrong, a missing and an expired one: ${version}`,
    { skip },
    async (t) => {
      const { url, servers, clients, receiver } = await startGuarded(t, version)
      const transport = openTransport(t, { ca: servers.ca })
      const outcomeOf = async (tls: TlsLogin | null) => {
        const { kind, status } = await send(transport.open({ url, headers: {}, tls }))
        return [kind, status]
      }
      const right = await clients.issue({ names: ['postrider.test'] })
      assert.deepEqual(await outcomeOf(loginOf(right)), ['success', 200])
      assert.deepEqual(await outcomeOf(null), ['status_4xx', 400])
      assert.deepEqual(await outcomeOf(loginOf(await servers.issue())), ['status_4xx', 400])
      assert.deepEqual(await outcomeOf(loginOf(await clients.issue({ expired: true }))), ['status_4xx', 400])
      assert.deepEqual(await outcomeOf(loginOf(right)), ['success', 200])
      assert.deepEqual(
        receiver.requests.map(({ headers }) => headers['x-client']),
        ['CN=postrider.test', 'CN=postrider.test'],
      )
    },
  )

test(
  'connections by one certificate carry no request of another, also while they are free',
  { skip },
  async (t) => {
    const { url, servers, clients, receiver } = await startGuarded(t, 'TLSv1.3')
    const transport = openTransport(t, { ca: servers.ca })
    const names = ['one.test', 'other.test']
    const endpoints = await Promise.all(
      names.map(async (name) =>
        transport.open({ url, headers: {}, tls: loginOf(await clients.issue({ names: [name] })) }),
      ),
    )
    for (const endpoint of [...endpoints, ...endpoints]) assert.equal((await send(endpoint)).kind, 'success')
    const seen = receiver.requests.map(({ headers }) => headers['x-client'])
    assert.deepEqual(seen, ['CN=one.test', 'CN=other.test', 'CN=one.test', 'CN=other.test'])
  },
)

test('a destination’s own CA is trusted beside the others, and by that destination alone', async (t) => {
  const [own, deployments] = [await createAuthority(t), await createAuthority(t)]
  const receivers = [
    await startReceiver(t, { tls: await own.issue() }),
    await startReceiver(t, { tls: await deployments.issue() }),
  ]
  const transport = openTransport(t, { ca: deployments.ca })
  for (const { url } of receivers) {
    const endpoint = transport.open({ url, headers: {}, tls: onlyCa(own.ca) })
    assert.equal((await send(endpoint)).kind, 'success')
  }
  // There is a free connection to it, and a TLS session that could be taken up.
  const { url } = receivers[0]!
  const others = [null, onlyCa((await createAuthority(t)).ca)]
  for (const tls of others) {
    const outcome = await send(transport.open({ url, headers: {}, tls }))
    assert.equal(outcome.kind, 'tls', JSON.stringify(outcome))
  }
  assert.equal(receivers[0]!.requests.length, 1)
})

test('a man in the middle gets no request and no client certificate, directly and through a proxy', async (t) => {
  const [own, clients] = [await createAuthority(t), await createAuthority(t)]
  const tls = loginOf(await clients.issue(), own.ca)
  const honest = await startReceiver(t, { tls: await own.issue() })
  const impostors = [
    await startReceiver(t, { tls: await selfSigned() }),
    await startReceiver(t, { tls: await (await createAuthority(t)).issue() }),
    await startReceiver(t, { tls: await clients.issue() }),
  ]
  const proxy = await startForwardProxy(t)
  for (const options of [{}, { wayOut: { proxy: { url: proxy.url, login: null } } }]) {
    const transport = openTransport(t, options)
    const kindAt = async (url: string) => (await send(transport.open({ url, headers: {}, tls }))).kind
    assert.equal(await kindAt(honest.url), 'success')
    for (const { url } of impostors) assert.equal(await kindAt(url), 'tls')
  }
  for (const { requests } of impostors) assert.equal(requests.length, 0)
})

test('what does not load is said when an endpoint is opened, without a word of the key', async (t) => {
  const [one, other] = [await selfSigned(), await selfSigned()]
  const transport = openTransport(t)
  assert.throws(
    () =>
      transport.open({
        url: 'https://a.test/',
        headers: {},
        tls: { cert: one.cert, key: other.key, ca: null },
      }),
    (error: Error) => {
      assert.match(error.message, /^its client certificate, key or own CA cannot be used: .*mismatch/)
      return !error.message.includes('PRIVATE KEY')
    },
  )
})
