import assert from 'node:assert/strict'
import type { LookupFunction, Socket } from 'node:net'
import { test } from 'node:test'
import type { WayOutSettings } from '../../../src/adapters/webhook/ways-out.ts'
import type { Outcome } from '../../../src/core/delivery/outcome.ts'
import { freePort } from '../../../src/local/ports.ts'
import { startReceiver } from '../../support/receivers.ts'
import { createAuthority, selfSigned } from '../../support/secured/certificates.ts'
import { until } from '../../support/until.ts'
import { startForwardProxy, type ForwardProxy } from '../../support/forward-proxy.ts'
import { startRawServer } from './raw-server.ts'
import { loopback, openTransport, requestOf, send, standingClock } from './transport-under-test.ts'

const password = 'p4ss:w%rd'
const login = `me:${password}`

const through = ({ url }: Pick<ForwardProxy, 'url'>, more: Partial<WayOutSettings> = {}) => ({
  wayOut: { proxy: { url, login: null }, ...more },
})

/** Resolves from a table; others are unknown. */
function resolver(table: Record<string, string[]>, asked: string[] = []): LookupFunction {
  return (name, _options, callback) => {
    asked.push(name)
    const found = table[name]
    if (found === undefined) callback(new Error(`${name} is unknown`), [])
    else
      callback(
        null,
        found.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
      )
  }
}

const lookup = resolver({ 'shop.test': ['127.0.0.1'] })

for (const secure of [false, true])
  test(`requests go through connections that the proxy made, one after another on each: ${secure ? 'https' : 'http'}`, async (t) => {
    const authority = await createAuthority(t)
    const receiver = await startReceiver(
      t,
      secure ? { tls: await authority.issue({ names: ['shop.test'] }) } : {},
    )
    const proxy = await startForwardProxy(t)
    const endpoint = openTransport(t, { ...through(proxy), ca: authority.ca, lookup }).open({
      url: `http${secure ? 's' : ''}://shop.test:${receiver.port}/hook?x=1`,
      headers: {},
    })
    const large = requestOf(JSON.stringify({ large: 'x'.repeat(100_000) }))
    for (const request of [requestOf(), large, requestOf()])
      assert.equal((await send(endpoint, request)).kind, 'success')
    assert.deepEqual(
      receiver.requests.map(({ connection, path, headers }) => [connection, path, headers.host]),
      Array(3).fill([1, '/hook?x=1', `shop.test:${receiver.port}`]),
    )
    assert.equal(receiver.requests[1]!.body.length, large.body.length)
    // By the address that was vetted, and by nothing else.
    const asked = `CONNECT 127.0.0.1:${receiver.port} HTTP/1.1\r\nHost: 127.0.0.1:${receiver.port}\r\nUser-Agent: postrider/1.0`
    assert.deepEqual(proxy.heads, [asked])
    assert.equal(proxy.passed.includes('/hook'), !secure, 'TLS ends at the server')
  })

for (const secure of [false, true])
  test(`an https proxy is verified by roots of its own, and the server by its own: ${secure ? 'https' : 'http'}`, async (t) => {
    const [servers, proxies] = [await createAuthority(t), await createAuthority(t)]
    const receiver = await startReceiver(t, secure ? { tls: await servers.issue() } : {})
    const proxy = await startForwardProxy(t, { tls: await proxies.issue() })
    const kindWith = async (ca: string, proxyCa: string): Promise<Outcome> => {
      const transport = openTransport(t, { ...through(proxy), ca, proxyCa })
      const endpoint = transport.open({ url: receiver.url, headers: {} })
      await send(endpoint)
      return send(endpoint)
    }
    assert.equal((await kindWith(servers.ca, proxies.ca)).kind, 'success')
    assert.deepEqual(
      receiver.requests.map(({ connection }) => connection),
      [1, 1],
    )
    const refused = await kindWith(proxies.ca, servers.ca)
    assert.equal(refused.kind, 'proxy')
    assert.match(
      refused.detail!,
      /^the proxy has a certificate that is not trusted: .*WEBHOOK_PROXY_CA_FILE adds roots/,
    )
    assert.equal((await kindWith(proxies.ca, proxies.ca)).kind, secure ? 'tls' : 'success')
  })

test('further connections through a proxy take up the TLS session of the first', async (t) => {
  const authority = await createAuthority(t)
  const receiver = await startReceiver(t, { tls: await authority.issue() })
  const proxy = await startForwardProxy(t)
  const transport = openTransport(t, { ...through(proxy), ca: authority.ca })
  const endpoint = transport.open({ url: receiver.url, headers: {} })
  receiver.answer({ headers: { connection: 'close' } })
  for (let index = 0; index < 3; index++) assert.equal((await send(endpoint)).kind, 'success')
  assert.deepEqual(
    receiver.requests.map(({ resumed }) => resumed),
    [false, true, true],
  )
})

test('a proxy gets the user and password that it asks for, and shows them to nobody', async (t) => {
  const receiver = await startReceiver(t)
  const proxy = await startForwardProxy(t, {
    answer(socket, _authority, head) {
      const given = /^Proxy-Authorization: Basic (.*)$/m.exec(head)?.[1] ?? ''
      if (Buffer.from(given, 'base64').toString() === login) return false
      socket.end(`HTTP/1.1 407 ${password} ${head}\r\n\r\n`)
      return true
    },
  })
  const outcomeOf = (given: string | null) =>
    send(
      openTransport(t, { wayOut: { proxy: { url: proxy.url, login: given } } }).open({
        url: receiver.url,
        headers: {},
      }),
    )
  assert.equal((await outcomeOf(login)).kind, 'success')
  assert.equal(receiver.requests[0]!.headers['proxy-authorization'], undefined)
  for (const given of [null, 'me:other']) {
    const { kind, status, detail, body } = await outcomeOf(given)
    assert.deepEqual([kind, status, body], ['proxy', null, null])
    assert.equal(
      detail,
      'the proxy answered CONNECT with 407: WEBHOOK_PROXY has no user and password that it takes',
    )
  }
})

const answering =
  (text: string, end = false) =>
  (socket: Socket): true => {
    socket.write(text, 'latin1')
    if (end) socket.end()
    return true
  }
const timeoutMs = 300
const secondAnswer = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'

const failures: Record<string, [answer: (socket: Socket) => boolean, detail: RegExp]> = {
  'refuses with 403': [
    answering('HTTP/1.1 403 s3cret\r\nX: s3cret\r\n\r\ns3cret'),
    /^the proxy answered CONNECT with 403$/,
  ],
  'fails with 500': [answering('HTTP/1.0 500\r\n\r\n'), /^the proxy answered CONNECT with 500$/],
  redirects: [answering('HTTP/1.1 302 Found\r\nLocation: http://s3cret/\r\n\r\n'), /with 302$/],
  'switches protocols': [answering('HTTP/1.1 101 -\r\n\r\n'), /with 101$/],
  'answers garbage': [
    answering('SSH-2.0-s3cret\r\n'),
    /^the proxy answered CONNECT with what is not HTTP\/1$/,
  ],
  'answers HTTP/2': [answering('HTTP/2 200 OK\r\n\r\n'), /what is not HTTP\/1$/],
  'ends lines by LF alone': [answering('HTTP/1.1 200 OK\n\n'), /what is not HTTP\/1$/],
  'answers an endless header': [
    answering(`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(70_000)}`),
    /with too long a header$/,
  ],
  'answers an endless line': [answering(`HTTP/1.1 200 ${'x'.repeat(70_000)}`), /what is not HTTP\/1$/],
  'sends bytes behind its answer': [
    answering(`HTTP/1.1 200 OK\r\n\r\n${secondAnswer}`),
    /^the proxy sent something behind its answer to CONNECT$/,
  ],
  'sends a body with its 200': [
    answering('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'),
    /behind its answer/,
  ],
  'ends the connection in its answer': [
    answering('HTTP/1.1 200 OK\r\nX', true),
    /^the proxy closed the connection before it answered CONNECT$/,
  ],
  'resets the connection': [
    (socket) => !!socket.resetAndDestroy(),
    /^the proxy could not be reached: .*ECONNRESET/,
  ],
  'never answers': [() => true, /^the proxy made no connection within 300 ms$/],
  'never ends its answer': [
    answering('HTTP/1.1 200 OK\r\nX: 1\r\n'),
    /^the proxy made no connection within 300 ms$/,
  ],
}

for (const [what, [answer, detail]] of Object.entries(failures))
  test(`a proxy that ${what} is the outcome proxy, and nothing gets to the server`, async (t) => {
    const clock = standingClock(t)
    const authority = await createAuthority(t)
    const receiver = await startReceiver(t, { tls: await authority.issue() })
    const plain = await startReceiver(t)
    const proxy = await startForwardProxy(t, { answer })
    const transport = openTransport(t, {
      ...{ ca: authority.ca, timeoutMs },
      wayOut: { proxy: { url: proxy.url, login } },
    })
    for (const [index, { url }] of [receiver, plain].entries()) {
      const sent = send(transport.open({ url, headers: {} }))
      if (what.startsWith('never ')) {
        await until(() => proxy.heads.length === index + 1)
        clock.pass(timeoutMs)
      }
      const outcome = await sent
      assert.equal(outcome.kind, 'proxy', JSON.stringify(outcome))
      assert.match(outcome.detail!, detail)
      assert.doesNotMatch(JSON.stringify(outcome), /p4ss|s3cret|cDRzc/)
      assert.deepEqual([outcome.status, outcome.body, outcome.retryAfterMs], [null, null, null])
    }
    assert.deepEqual([receiver.connections(), plain.connections()], [0, 0])
    assert.equal(proxy.connections(), 2, 'it is asked once for each')
  })

test('a proxy that is away, or speaks no TLS where its URL says so, is the outcome proxy', async (t) => {
  const receiver = await startReceiver(t)
  const speaksPlain = await startReceiver(t)
  const away = await freePort()
  const gone = resolver({})
  for (const [url, detail] of [
    [`http://127.0.0.1:${away}`, /^the proxy could not be reached: .*ECONNREFUSED/],
    [`https://127.0.0.1:${speaksPlain.port}`, /^the proxy could not be reached: /],
    ['http://proxy.test:3128', /^the proxy could not be reached: .*proxy\.test/],
  ] as const) {
    const transport = openTransport(t, { wayOut: { proxy: { url, login } }, lookup: gone })
    const outcome = await send(transport.open({ url: receiver.url, headers: {} }))
    assert.equal(outcome.kind, 'proxy', JSON.stringify(outcome))
    assert.match(outcome.detail!, detail)
    assert.doesNotMatch(outcome.detail!, /p4ss|me:/)
  }
})

test('what fails behind the answer of the proxy is the server’s failure, as without a proxy', async (t) => {
  const clock = standingClock(t)
  const authority = await createAuthority(t)
  const proxy = await startForwardProxy(t)
  const untrusted = await startReceiver(t, { tls: await selfSigned() })
  const misnamed = await startReceiver(t, {
    tls: await authority.issue({ names: ['other.test'], addresses: [] }),
  })
  const hanging = await startReceiver(t)
  const failing = await startReceiver(t)
  const closing = await startReceiver(t)
  hanging.answer({ instead: { do: 'hang' } })
  failing.answer({ status: 503 })
  closing.answer({ instead: { do: 'close' } })
  const transport = openTransport(t, { ...through(proxy), ca: authority.ca, timeoutMs, lookup })
  const kindOf = async (url: string) => (await send(transport.open({ url, headers: {} }))).kind
  assert.equal(await kindOf(untrusted.url), 'tls')
  assert.equal(await kindOf(`https://shop.test:${misnamed.port}/`), 'tls')
  const hangs = kindOf(hanging.url)
  await hanging.waitFor(1)
  clock.pass(timeoutMs)
  assert.equal(await hangs, 'timeout')
  assert.equal(await kindOf(failing.url), 'status_5xx')
  assert.equal(await kindOf(closing.url), 'network')
  assert.deepEqual([untrusted.requests.length, misnamed.requests.length], [0, 0])
})

for (const secure of [false, true])
  test(`a connection that the proxy or the server ends while it is unused costs no attempt: ${secure ? 'https' : 'http'}`, async (t) => {
    const authority = await createAuthority(t)
    const receiver = await startReceiver(t, secure ? { tls: await authority.issue() } : {})
    const proxy = await startForwardProxy(t)
    const transport = openTransport(t, { ...through(proxy), ca: authority.ca })
    const endpoint = transport.open({ url: receiver.url, headers: {} })
    for (const end of [() => proxy.endAll(), () => receiver.dropConnections(), () => {}]) {
      assert.equal((await send(endpoint)).kind, 'success')
      end()
    }
    await until(() => receiver.openConnections() === 1)
    assert.equal(proxy.heads.length, 3)
  })

test('what comes through a proxy unasked is not taken for the next response', async (t) => {
  const ok = (status: number) => `HTTP/1.1 ${status} -\r\nContent-Length: 0\r\n\r\n`
  let first: Socket | null = null
  const server = await startRawServer(t, (socket) => {
    socket.write(ok(first === null ? 200 : 500))
    first ??= socket
  })
  const proxy = await startForwardProxy(t)
  const endpoint = openTransport(t, through(proxy)).open({ url: server.url, headers: {} })
  assert.equal((await send(endpoint)).status, 200)
  first!.write(ok(299))
  await until(() => first!.destroyed)
  assert.equal((await send(endpoint)).status, 500)
})

test('an address that is not allowed is refused before the proxy hears of it', async (t) => {
  const proxy = await startForwardProxy(t)
  const table = { 'inside.test': ['10.0.0.1', '169.254.169.254'], 'moving.test': ['127.0.0.1'] }
  const asked: string[] = []
  const receiver = await startReceiver(t)
  const transport = openTransport(t, {
    ...through(proxy),
    allowedNetworks: ['127.0.0.1/32'],
    lookup: resolver(table, asked),
  })
  for (const host of ['10.0.0.1', '[::1]', '127.0.0.2', 'inside.test', '0x7f.2']) {
    const outcome = await send(transport.open({ url: `http://${host}:${receiver.port}/`, headers: {} }))
    assert.equal(outcome.kind, 'blocked', `${host}: ${JSON.stringify(outcome)}`)
  }
  assert.equal(proxy.connections(), 0)

  // The proxy is asked for the very address that was vetted, so that it cannot find another one.
  receiver.answer({ headers: { connection: 'close' } })
  const moving = transport.open({ url: `http://moving.test:${receiver.port}/`, headers: {} })
  assert.equal((await send(moving)).kind, 'success')
  assert.deepEqual(proxy.authorities, [`127.0.0.1:${receiver.port}`])
  table['moving.test'] = ['169.254.169.254']
  assert.equal((await send(moving)).kind, 'blocked')
  assert.equal(proxy.connections(), 1)
  assert.deepEqual(asked.slice(1), ['moving.test', 'moving.test'])
})

test('a proxy that resolves gets names as they are; addresses and names of this machine are vetted still', async (t) => {
  const asked: string[] = []
  const authority = await createAuthority(t)
  const receiver = await startReceiver(t, { tls: await authority.issue({ names: ['shop.test'] }) })
  const proxy = await startForwardProxy(t, { addressOf: () => '127.0.0.1' })
  const transport = openTransport(t, {
    ...through(proxy, { proxyResolves: true }),
    ...{ ca: authority.ca, allowedNetworks: [], lookup: resolver({}, asked) },
  })
  const outcomeOf = (host: string) =>
    send(transport.open({ url: `https://${host}:${receiver.port}/`, headers: {} }))
  assert.equal((await outcomeOf('shop.test')).kind, 'success')
  assert.equal(proxy.heads[0]!.split('\r\n')[0], `CONNECT shop.test:${receiver.port} HTTP/1.1`)
  for (const host of ['127.0.0.1', '[::1]', '10.0.0.1', 'localhost', 'a.localhost.'])
    assert.equal((await outcomeOf(host)).kind, 'blocked', host)
  assert.equal(proxy.connections(), 1)
  assert.deepEqual(asked, [])
})

test('the deployment’s proxy may be anywhere; one that a destination names only where its URLs may lead', async (t) => {
  const receiver = await startReceiver(t)
  const given = await startForwardProxy(t, { host: '127.0.0.3' })
  const other = await startForwardProxy(t, { host: '127.0.0.4' })
  const transport = openTransport(t, { ...through(given), allowedNetworks: ['127.0.0.1/32'] })
  const outcomeBy = (proxy: string | null) => send(transport.open({ url: receiver.url, headers: {}, proxy }))
  assert.equal((await outcomeBy(null)).kind, 'success')
  assert.equal((await outcomeBy(given.url)).kind, 'success')
  assert.equal(given.connections(), 1, 'it is the same proxy')
  const { kind, detail } = await outcomeBy(other.url)
  assert.equal(kind, 'blocked')
  assert.match(detail!, /^the proxy may not be used: the address 127\.0\.0\.4 is not allowed \(loopback\)/)
  assert.equal(other.connections(), 0)
})

test('a destination’s own proxy, or none, beats the deployment’s, and no connection is shared between them', async (t) => {
  const receiver = await startReceiver(t)
  const deployments = await startForwardProxy(t)
  const own = await startForwardProxy(t, { answer: (_socket, _authority, head) => /login/i.test(head) })
  const transport = openTransport(t, {
    wayOut: { proxy: { url: deployments.url, login } },
    allowedNetworks: loopback,
  })
  for (const proxy of [null, own.url, 'none', own.url, null, 'none', undefined]) {
    const target = { url: receiver.url, headers: {}, ...(proxy !== undefined && { proxy }) }
    assert.equal((await send(transport.open(target))).kind, 'success')
  }
  assert.deepEqual(
    receiver.requests.map(({ connection }) => connection),
    [1, 2, 3, 2, 1, 3, 1],
  )
  assert.deepEqual([deployments.heads.length, own.heads.length], [1, 1])
  assert.match(deployments.heads[0]!, /^Proxy-Authorization: /m)
  assert.doesNotMatch(own.heads[0]!, /^Proxy-Authorization: /m)
})

test('where the proxy cannot connect to the first address of a name it is asked for the second, and then for that first', async (t) => {
  const receiver = await startReceiver(t)
  const proxy = await startForwardProxy(t, {
    answer: (socket, authority) => authority.startsWith('[') && answering('HTTP/1.1 503 -\r\n\r\n')(socket),
  })
  const transport = openTransport(t, {
    ...through(proxy),
    lookup: resolver({ 'shop.test': ['::1', '127.0.0.1'] }),
  })
  receiver.answer({ headers: { connection: 'close' } })
  const endpoint = transport.open({ url: `http://shop.test:${receiver.port}/`, headers: {} })
  for (let index = 0; index < 2; index++) assert.equal((await send(endpoint)).kind, 'success')
  const { port } = receiver
  assert.deepEqual(proxy.authorities, [`[::1]:${port}`, `127.0.0.1:${port}`, `127.0.0.1:${port}`])
})

test('an address for which the proxy waited in vain comes after the others', async (t) => {
  const clock = standingClock(t)
  const receiver = await startReceiver(t)
  const proxy = await startForwardProxy(t, { answer: (_socket, authority) => authority.startsWith('[') })
  const transport = openTransport(t, {
    ...through(proxy),
    lookup: resolver({ 'shop.test': ['::1', '127.0.0.1'] }),
    timeoutMs,
  })
  const endpoint = transport.open({ url: `http://shop.test:${receiver.port}/`, headers: {} })
  const waits = send(endpoint)
  await until(() => proxy.heads.length === 1)
  clock.pass(timeoutMs)
  assert.equal((await waits).kind, 'proxy')
  assert.equal((await send(endpoint)).kind, 'success')
})

test('an attempt that waits for the proxy ends with the transport, and leaves no connection', async (t) => {
  const sockets: Socket[] = []
  const proxy = await startForwardProxy(t, { answer: (socket) => sockets.push(socket.resume()) > 0 })
  const transport = openTransport(t, through(proxy))
  const outcome = send(transport.open({ url: 'http://127.0.0.1:1/', headers: {} }))
  await until(() => sockets.length === 1)
  await transport.close(0)
  assert.equal((await outcome).kind, 'network')
  await until(() => sockets[0]!.destroyed)
})
