// Why calls could not be sent is what a person needs first, wherever it is looked for.
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import http from 'node:http'
import https from 'node:https'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { generate } from 'selfsigned'
import { Analytics, type AnalyticsOptions, type SendResult } from '../../src/client/index.ts'
import { networkReason } from '../../src/client/http-transport.ts'
import { KafkaTransport } from '../../src/kafka-transport.ts'
import { freePort } from '../../src/local/ports.ts'
import { clientOf, trackSome } from '../support/calls/clients.ts'
import { collectorDouble, writeKey, type Answer } from '../support/calls/collector-double.ts'
import { deploy } from '../support/deployment/deployment.ts'
import { brokers, registryUrl } from '../support/deployment/rig.ts'
import { until } from '../support/until.ts'

/** On a port of 127.0.0.1, until the test ends. */
async function listening(t: TestContext, server: Server): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => sockets.add(socket))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return (server.address() as AddressInfo).port
}

async function tlsServer(t: TestContext): Promise<number> {
  const { private: key, cert } = await generate([{ name: 'commonName', value: 'localhost' }])
  return listening(t, https.createServer({ key, cert }))
}

const answering = async (t: TestContext, answer: Answer): Promise<string> => {
  const collector = await collectorDouble(t)
  collector.always = answer
  return collector.url
}

/** By what is wrong: an endpoint where it is, and what must be said about it. */
const mistakes: [name: string, endpoint: (t: TestContext) => Promise<string>, reason: RegExp][] = [
  [
    'a wrong port',
    async () => `http://127.0.0.1:${await freePort()}`,
    /connect ECONNREFUSED 127\.0\.0\.1:\d+/,
  ],
  [
    'an unknown host',
    async () => 'http://nowhere.invalid',
    /getaddrinfo (?:ENOTFOUND|EAI_AGAIN) nowhere\.invalid/,
  ],
  [
    'https:// where http:// is spoken',
    async (t) => (await answering(t, 'take')).replace('http:', 'https:'),
    /no TLS at this port \([a-z ]+\); check the port, or use http:\/\//,
  ],
  [
    'http:// where https:// is spoken',
    async (t) => `http://127.0.0.1:${await tlsServer(t)}`,
    /the connection was closed without an answer .*use https:\/\//,
  ],
  [
    'a certificate that is not trusted',
    async (t) => `https://127.0.0.1:${await tlsServer(t)}`,
    /certificate is not trusted \(DEPTH_ZERO_SELF_SIGNED_CERT\); NODE_EXTRA_CA_CERTS/,
  ],
  [
    'an unknown write key',
    (t) => answering(t, { status: 401, body: JSON.stringify({ code: 'invalid_write_key', message: 'no' }) }),
    /HTTP 401 invalid_write_key: no/,
  ],
  [
    'a wrong path',
    async (t) => `${await answering(t, { status: 404, body: 'Not found' })}/v2/send`,
    /HTTP 404/,
  ],
  ['a server that fails', (t) => answering(t, { status: 503, body: '' }), /HTTP 503/],
  ['a server that does not answer', (t) => answering(t, 'hang'), /no complete answer within 300 ms/],
  [
    'a port that speaks another protocol',
    async (t) =>
      `http://127.0.0.1:${await listening(
        t,
        createServer((socket) => socket.write('SSH-2.0-x\r\n')),
      )}`,
    /Parse Error/,
  ],
]

for (const [name, endpointOf, reason] of mistakes) {
  test(`${name} is named with the address, in close(), in onError and by DEBUG=analytics`, async (t) => {
    const endpoint = await endpointOf(t)
    const timeout = name.endsWith('does not answer') ? 300 : 10_000
    await assertNamed(t, reason, new URL(endpoint).host, { endpoint, timeout })
  })
}

test('with postrider/kafka, a wrong broker and a wrong registry are named with their addresses', async (t) => {
  const deployment = await deploy(t)
  const port = await freePort()
  const transport = (broker: string, schemaRegistryUrl: string) =>
    new KafkaTransport({
      brokers: [broker],
      schemaRegistryUrl,
      topicPrefix: deployment.config.topicPrefix,
      sourceId: 'shop',
    })
  await t.test('broker', (t) =>
    assertNamed(t, /connect ECONNREFUSED 127\.0\.0\.1:\d+/, `127.0.0.1:${port}`, {
      transport: transport(`127.0.0.1:${port}`, registryUrl()),
    }),
  )
  await t.test('broker, while it connects', async () => {
    const client = new Analytics('', {
      transport: transport(`127.0.0.1:${port}`, registryUrl()),
      onError: () => {},
    })
    let refused = 0
    const onSocket = (message: unknown) =>
      (message as { socket: Socket }).socket.once('error', (error: Error & { port?: number }) => {
        if (error.port === port) refused++
      })
    subscribe('net.client.socket', onSocket)
    t.after(() => unsubscribe('net.client.socket', onSocket))
    trackSome(client, 1)
    void client.flush()
    // When it has tried a second time it knows what became of the first.
    await until(() => refused > 1, 30_000, 'a second connection that is refused')
    const { undelivered } = await client.close({ timeout: 0 })
    assert.match(undelivered[0]!.reason, new RegExp(`connect ECONNREFUSED 127.0.0.1:${port}`))
  })
  await t.test('registry', (t) =>
    assertNamed(t, /schema registry at .*ECONNREFUSED/, `http://127.0.0.1:${port}`, {
      transport: transport(brokers()[0]!, `http://127.0.0.1:${port}`),
    }),
  )
})

test('postrider/kafka says which of its options to check, not which environment variables', async (t) => {
  const refusing = http.createServer((_request, response) => response.writeHead(401).end())
  const schemaRegistryUrl = `http://127.0.0.1:${await listening(t, refusing)}`
  const transport = new KafkaTransport({ brokers: brokers(), schemaRegistryUrl, sourceId: 'shop' })
  const client = clientOf(t, { url: '' }, { endpoint: undefined, transport, retries: 0 })
  trackSome(client, 1)
  await client.flush()
  assert.match(
    client.failures[0]!.message,
    /refuses the login \(401\); check schemaRegistryUsername and schemaRegistryPassword/,
  )
})

/** Sends, and closes after the first attempt that is to be repeated: the reason and the address are in all places, and the key in none. */
async function assertNamed(
  t: TestContext,
  reason: RegExp,
  address: string,
  options: AnalyticsOptions,
): Promise<void> {
  const lines: string[] = []
  t.mock.method(console, 'error', (line: unknown) => void lines.push(String(line)))
  const before = process.env.DEBUG
  process.env.DEBUG = 'analytics'
  t.after(() => (before === undefined ? delete process.env.DEBUG : (process.env.DEBUG = before)))
  const messages: string[] = []
  const onError = ({ message }: Error) => messages.push(message)
  const client = new Analytics(writeKey, { initialBackoff: 60_000, maxBackoff: 60_000, onError, ...options })
  const attempts = () =>
    lines.filter((line) => / analytics \d+ calls? to .*(?:unavailable|refused): /.test(line))
  trackSome(client, 20)
  const isFinal = / 40\d/.test(reason.source)
  if (!isFinal) await until(() => attempts().length > 0, 20_000, 'an attempt')
  // Where the others are tried again, it waits behind them and is never tried.
  trackSome(client, 1, 20)
  const { undelivered } = await client.close({ timeout: isFinal ? 20_000 : 0 })
  assert.equal(undelivered.length, 21)
  for (const text of [...undelivered.map(({ reason }) => reason), ...messages, ...attempts()]) {
    assert.match(text, reason)
    assert.ok(text.includes(address), text)
    assert.ok(!text.includes('\n'))
  }
  assert.ok(![...lines, ...messages].some((text) => text.includes(writeKey)))
}

test('when all retries are exhausted, the error has the last reason', async (t) => {
  const client = clientOf(t, { url: await answering(t, 'hang') }, { timeout: 50, retries: 1 })
  trackSome(client, 1)
  await client.flush()
  assert.match(client.failures[0]!.message, /no complete answer within 50 ms, at the last of 2 attempts/)
})

test('what an attempt waited for when close() ended it is the reason', async (t) => {
  const collector = await collectorDouble(t)
  collector.always = 'hang'
  const client = clientOf(t, collector)
  trackSome(client, 20)
  await collector.received(1)
  const { undelivered } = await client.close({ timeout: 50 })
  assert.match(undelivered[0]!.reason, /the client closed; last attempt: no complete answer after \d+ ms/)
})

test('a reason that is over is not given for a later failure', async (t) => {
  const results: Promise<SendResult>[] = [
    Promise.resolve({ kind: 'unavailable', message: 'HTTP 503', retryAfterMs: null }),
    Promise.resolve({ kind: 'accepted', rejected: [] }),
    new Promise(() => {}),
  ]
  let sends = 0
  const transport = { name: 'own', send: () => results[sends++]!, close: async () => {} }
  const client = clientOf(t, { url: '' }, { endpoint: undefined, transport })
  trackSome(client, 1)
  await client.flush()
  trackSome(client, 1, 1)
  void client.flush()
  await until(() => sends === 3)
  await client.close({ timeout: 0 })
  assert.match(client.failures[0]!.message, /the client closed before an answer came \(own\)$/)
})

test('an answer that repeats what Basic authentication sends is redacted', async (t) => {
  const sent = Buffer.from(`${writeKey}:`).toString('base64')
  const url = await answering(t, {
    status: 401,
    body: JSON.stringify({ message: `Basic ${sent} is unknown` }),
  })
  const client = clientOf(t, { url })
  trackSome(client, 1)
  await client.flush()
  assert.match(client.failures[0]!.message, /Basic … is unknown/)
})

test('a name with several addresses fails with the reasons of all of them', () => {
  const both = new AggregateError([
    new Error('connect ECONNREFUSED ::1:8080'),
    new Error('connect ECONNREFUSED 127.0.0.1:8080'),
  ])
  assert.equal(
    networkReason(both, { hasTls: false, isNew: true }),
    'connect ECONNREFUSED ::1:8080, connect ECONNREFUSED 127.0.0.1:8080',
  )
})

test('a connection that was kept open and ends is not taken for a wrong port', () => {
  const error = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })
  assert.equal(networkReason(error, { hasTls: false, isNew: false }), 'read ECONNRESET')
})
