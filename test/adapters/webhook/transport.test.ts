import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fieldsIn, keptRequestBytes, keptResponseFieldsBytes } from '../../../src/core/delivery/exchange.ts'
import type { Outcome } from '../../../src/core/delivery/outcome.ts'
import { startReceiver, type Answer } from '../../support/receivers.ts'
import { openTransport, requestOf, send, standingClock } from './transport-under-test.ts'

test('the body is sent unchanged, with our headers first and then the static ones', async (t) => {
  const receiver = await startReceiver(t, { secret: 'geheim' })
  const endpoint = openTransport(t).open({
    url: `${receiver.url}?a=1&b=%20`,
    headers: { Authorization: 'Bearer abc', 'x-Shop': 'Zürich' },
  })
  const text = '{"type":"track","event":"Kauf für 5 €"}'
  const outcome = await send(endpoint, requestOf(text, 'geheim'))
  assert.deepEqual(
    { ...outcome, durationMs: 0 },
    {
      kind: 'success',
      status: 200,
      retryAfterMs: null,
      body: null,
      durationMs: 0,
      detail: null,
      exchange: null,
    },
  )
  assert.ok(outcome.durationMs > 0 && outcome.durationMs < 5_000)
  const [request] = await receiver.waitFor(1)
  assert.equal(request!.method, 'POST')
  assert.equal(request!.path, '/hook?a=1&b=%20')
  assert.equal(request!.body.toString(), text)
  assert.equal(request!.signature, 'valid')
  assert.deepEqual(
    request!.rawHeaders.filter((_, index) => index % 2 === 0),
    [
      'host',
      'connection',
      'accept',
      'accept-encoding',
      'User-Agent',
      'Content-Type',
      'X-Signature',
      'Idempotency-Key',
      'Authorization',
      'x-Shop',
      'content-length',
    ],
  )
  assert.equal(request!.headers['accept'], '*/*')
  assert.equal(request!.headers['accept-encoding'], 'identity')
  assert.equal(request!.headers['user-agent'], 'postrider/1.0')
  assert.equal(request!.headers['content-type'], 'application/json')
  assert.equal(request!.headers['idempotency-key'], 'm1:crm')
  assert.equal(request!.headers['authorization'], 'Bearer abc')
  assert.equal(Number(request!.headers['content-length']), Buffer.byteLength(text))
})

test('method, path, content type and headers are those of the target, with the request’s values in their holes', async (t) => {
  const receiver = await startReceiver(t)
  const endpoint = openTransport(t).open({
    url: `${receiver.url}/stand-in?x=y`,
    headers: { Authorization: 'Bearer abc' },
    method: 'PATCH',
    contentType: 'form',
    path: { parts: ['/u/', { text: 'call.userId' }, '?n=', { text: 'delivery.attempt' }] },
    withHoles: [
      { name: 'X-Event', value: { parts: ['event ', { text: 'call.event' }] } },
      { name: 'X-None', value: { parts: [{ text: 'call.name' }] } },
    ],
  })
  const filled = [
    { hole: 'call.userId', value: 'a/b' },
    { hole: 'call.event', value: 'Grün' },
  ]
  for (const attempt of [1, 7]) await send(endpoint, { ...requestOf('a=1'), filled, attempt })
  const [first, second] = await receiver.waitFor(2)
  assert.deepEqual([first!.method, first!.path, second!.path], ['PATCH', '/u/a%2Fb?n=1', '/u/a%2Fb?n=7'])
  const { headers } = second!
  assert.deepEqual(
    [headers['content-type'], headers['x-event'], headers['x-none'], headers.authorization],
    ['application/x-www-form-urlencoded', 'event Grün', undefined, 'Bearer abc'],
  )
})

test('a value that could end a line is not sent, whoever let it through', async (t) => {
  const receiver = await startReceiver(t)
  const value = { parts: [{ text: 'call.event' }] }
  const endpoint = openTransport(t).open({
    url: receiver.url,
    headers: {},
    withHoles: [{ name: 'X-Event', value }],
  })
  const outcome = await send(endpoint, {
    ...requestOf(),
    filled: [{ hole: 'call.event', value: 'a\r\nX-Evil: 1' }],
  })
  assert.deepEqual(
    [outcome.kind, outcome.detail],
    ['network', 'a header of the request has a character that cannot be sent'],
  )
  assert.equal(receiver.requests.length, 0)
})

test('X-Signature is absent without a secret, also after a signed request', async (t) => {
  const receiver = await startReceiver(t, { secret: 'geheim' })
  const endpoint = openTransport(t).open({ url: receiver.url, headers: {} })
  await send(endpoint, requestOf('{}', 'geheim'))
  await send(endpoint, requestOf('{}'))
  assert.deepEqual(
    (await receiver.waitFor(2)).map(({ signature }) => signature),
    ['valid', 'absent'],
  )
})

test('a trace is one header of its requests only, and replaces a static one', async (t) => {
  const receiver = await startReceiver(t, { secret: 's3cret' })
  const headers = { TraceParent: 'static', 'X-Team': 'traceparent' }
  const endpoint = openTransport(t).open({ url: receiver.url, headers })
  const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`
  await send(endpoint, { ...requestOf('{}', 's3cret'), traceparent })
  await send(endpoint, { ...requestOf('{}'), traceparent: null })
  const sent = receiver.requests.map(({ rawHeaders }) =>
    rawHeaders.filter((_, index) => /^traceparent$/i.test(rawHeaders[index - (index % 2)]!)),
  )
  assert.deepEqual(sent, [
    ['traceparent', traceparent],
    ['TraceParent', 'static'],
  ])
  assert.deepEqual(
    receiver.requests.map((request) => [request.headers['x-team'], request.signature]),
    [
      ['traceparent', 'valid'],
      ['traceparent', 'absent'],
    ],
  )
})

test('with a signer each attempt is signed separately, and without one there are no signature headers', async (t) => {
  const receiver = await startReceiver(t, { secret: 'geheim' })
  let now = 1_700_000_000_999
  const endpoint = openTransport(t, { now: () => now }).open({
    url: receiver.url,
    headers: { 'x-shop': 'a' },
  })
  const signer = {
    sign: (id: string, timestamp: string, body: Uint8Array) => `v1,${id}/${timestamp}/${body.length}`,
  }
  const request = { ...requestOf('{}', 'geheim'), signer }
  await send(endpoint, request)
  now += 1_000
  await send(endpoint, request)
  await send(endpoint, requestOf('{}', 'geheim'))
  const [first, second, third] = await receiver.waitFor(3)
  assert.deepEqual(first!.rawHeaders.slice(8, -2), [
    ...['User-Agent', 'postrider/1.0', 'Content-Type', 'application/json'],
    ...['X-Signature', String(first!.headers['x-signature']), 'Idempotency-Key', 'm1:crm'],
    ...['webhook-id', 'm1:crm', 'webhook-timestamp', '1700000000'],
    ...['webhook-signature', 'v1,m1:crm/1700000000/2', 'x-shop', 'a'],
  ])
  assert.equal(second!.headers['webhook-signature'], 'v1,m1:crm/1700000001/2')
  assert.equal(third!.headers['webhook-signature'], undefined)
  assert.deepEqual([first!.signature, third!.signature], ['valid', 'valid'])
})

const answers: [string, Answer, Partial<Outcome>][] = [
  ['204', { status: 204 }, { kind: 'success', status: 204, body: null }],
  ['302', { status: 302, headers: { location: '/elsewhere' } }, { kind: 'redirect', status: 302 }],
  ['400 with a body', { status: 400, body: 'no such field' }, { kind: 'status_4xx', status: 400 }],
  ['408', { status: 408 }, { kind: 'status_4xx', status: 408 }],
  ['410', { status: 410 }, { kind: 'gone', status: 410 }],
  [
    '429 with seconds',
    { status: 429, headers: { 'retry-after': '7' } },
    { kind: 'status_429', retryAfterMs: 7_000 },
  ],
  [
    '503 with a date',
    { status: 503, headers: { 'retry-after': 'Sun, 06 Nov 1994 08:49:37 GMT' } },
    { kind: 'status_5xx', status: 503, retryAfterMs: 17_000 },
  ],
  [
    '503 with nonsense',
    { status: 503, headers: { 'retry-after': 'soon' } },
    { kind: 'status_5xx', retryAfterMs: null },
  ],
  ['an early hint before the answer', { earlyHints: true }, { kind: 'success', status: 200 }],
  ['a reset', { instead: { do: 'reset' } }, { kind: 'network', status: null }],
  ['a close', { instead: { do: 'close' } }, { kind: 'network', status: null }],
  [
    'what is not HTTP',
    { instead: { do: 'raw', bytes: 'SSH-2.0-OpenSSH_9.6\r\n' } },
    { kind: 'network', status: null },
  ],
  [
    'less than Content-Length says',
    { instead: { do: 'raw', bytes: 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc' } },
    { kind: 'network', status: null },
  ],
]
for (const [what, answer, expected] of answers) {
  test(`the response becomes an outcome: ${what}`, async (t) => {
    const receiver = await startReceiver(t)
    const transport = openTransport(t, { now: () => Date.UTC(1994, 10, 6, 8, 49, 20) })
    const endpoint = transport.open({ url: receiver.url, headers: {} })
    receiver.answer(answer, { status: 200 })
    const outcome = await send(endpoint)
    for (const [key, value] of Object.entries(expected)) {
      assert.deepEqual(outcome[key as keyof Outcome], value, `${key} of ${JSON.stringify(outcome)}`)
    }
    if (answer.body !== undefined) assert.equal(Buffer.from(outcome.body!).toString(), answer.body)
    if (outcome.kind !== 'success') assert.match(outcome.detail!, /./)
    // Whatever came of it, the next request is none the worse, and nothing else was requested (no redirect).
    assert.equal((await send(endpoint)).kind, 'success')
    assert.equal((await receiver.waitFor(2)).length, 2)
  })
}

test('the first 4 KB of a failed response are kept', async (t) => {
  const receiver = await startReceiver(t)
  const endpoint = openTransport(t).open({ url: receiver.url, headers: {} })
  const body = Array.from({ length: 5_000 }, (_, index) => String.fromCharCode(97 + (index % 26))).join('')
  receiver.answer({ status: 500, body })
  const outcome = await send(endpoint)
  assert.equal(Buffer.from(outcome.body!).toString(), body.slice(0, 4_096))
})

test('of a request that failed is kept what went out, without secrets, and the header of what came back', async (t) => {
  const receiver = await startReceiver(t)
  const endpoint = openTransport(t).open({
    url: receiver.url,
    path: { parts: ['/users/', { text: 'call.userId' }, '?api_key=of-theirs&page=2'] },
    headers: { 'X-Key': 'open-sesame', accept: 'application/json' },
    withHoles: [
      { name: 'X-Event', value: { parts: [{ text: 'call.event' }] } },
      { name: 'X-Mixed', value: { parts: ['mixed-secret ', { text: 'call.event' }] } },
    ],
    secrets: ['geheim-1'],
  })
  const signer = { sign: () => 'v1,abcdefg' }
  const filled = [
    { hole: 'call.userId', value: 'a geheim-1' },
    { hole: 'call.event', value: 'Ordered' },
  ]
  receiver.answer({
    status: 500,
    headers: { 'x-request-id': 'r-17 open-sesame', 'set-cookie': 'session=1', 'content-type': 'text/plain' },
    body: 'down',
  })
  const outcome = await send(endpoint, { ...requestOf('{"a":1}', 'geheim-1'), signer, filled })
  const { method, url, requestFields, bodyBytes, responseFields } = outcome.exchange!
  assert.deepEqual([method, bodyBytes], ['POST', 7])
  assert.equal(url, `${new URL(receiver.url).origin}/users/a%20[removed]?api_key=[not shown]&page=2`)
  const [request] = receiver.requests
  const hiddenOnes = ['x-signature', 'webhook-signature', 'x-key', 'x-mixed', 'accept']
  for (const { name, value } of fieldsIn(requestFields))
    assert.equal(
      value,
      hiddenOnes.includes(name.toLowerCase()) ? '[not shown]' : request!.headers[name.toLowerCase()],
      name,
    )
  const names = fieldsIn(requestFields).map(({ name }) => name.toLowerCase())
  const sent = Object.keys(request!.headers).filter((name) => name !== 'content-length')
  assert.deepEqual(names.toSorted(), sent.toSorted())
  const answered = new Map(fieldsIn(responseFields!).map(({ name, value }) => [name.toLowerCase(), value]))
  assert.equal(answered.get('x-request-id'), 'r-17 [removed]')
  assert.equal(answered.get('set-cookie'), '[not shown]')
  assert.equal(answered.get('content-type'), 'text/plain')
})

test('what is kept of a request has a bound, and is kept of one without an answer, but not of what was never sent', async (t) => {
  const clock = standingClock(t)
  const receiver = await startReceiver(t)
  const timeoutMs = 300
  const transport = openTransport(t, { timeoutMs })
  const value = 'x'.repeat(4_000)
  const withHoles = [{ name: 'X-Long', value: { parts: [{ text: 'call.event' }] } }]
  const endpoint = transport.open({ url: `${receiver.url}?long=${'y'.repeat(500)}`, headers: {}, withHoles })
  receiver.answer({ instead: { do: 'hang' } })
  const sent = send(endpoint, { ...requestOf(), filled: [{ hole: 'call.event', value }] })
  await receiver.waitFor(1)
  clock.pass(timeoutMs)
  const hung = await sent
  assert.equal(hung.kind, 'timeout')
  const { url, requestFields, responseFields } = hung.exchange!
  assert.equal(responseFields, null)
  assert.equal(url.length + requestFields.length, keptRequestBytes)
  receiver.answer({ status: 400, headers: { 'x-long': value } })
  assert.equal((await send(endpoint)).exchange!.responseFields!.length, keptResponseFieldsBytes)
  const unsent = await send(transport.open({ url: 'http://127.0.0.1:9/', headers: {} }))
  assert.deepEqual([unsent.kind, unsent.exchange], ['network', null])
})

test('of a success nothing is kept, unless everything is recorded: then the first KB of the response', async (t) => {
  const receiver = await startReceiver(t)
  receiver.answer({ headers: { 'x-id': 'r-1' }, body: 'y'.repeat(3_000) })
  const plain = await send(openTransport(t).open({ url: receiver.url, headers: {} }))
  assert.deepEqual([plain.kind, plain.body, plain.exchange], ['success', null, null])
  const endpoint = openTransport(t, { keepsSuccesses: true }).open({ url: receiver.url, headers: {} })
  const kept = await send(endpoint)
  assert.equal(Buffer.from(kept.body!).toString(), 'y'.repeat(1_024))
  assert.equal(kept.exchange!.url, receiver.url)
  assert.match(kept.exchange!.responseFields!, /^x-id: r-1$/im)
})

test('at most 64 KB of a response are read; then the status decides and the connection is closed', async (t) => {
  const receiver = await startReceiver(t)
  const endpoint = openTransport(t).open({ url: receiver.url, headers: {} })
  receiver.answer({ body: 'x'.repeat(64 * 1024) }, { status: 500, body: 'y'.repeat(3_000_000) }, {})
  assert.equal((await send(endpoint)).kind, 'success')
  const failed = await send(endpoint)
  assert.equal(failed.kind, 'status_5xx')
  assert.equal(failed.body!.length, 4_096)
  assert.equal((await send(endpoint)).kind, 'success')
  assert.deepEqual(
    receiver.requests.map(({ connection }) => connection),
    [1, 1, 2],
  )
})

test('a connection serves one request at a time, and there are as many as concurrent requests', async (t) => {
  const receiver = await startReceiver(t)
  const endpoint = openTransport(t).open({ url: receiver.url, headers: {} })
  for (let i = 0; i < 5; i++) await send(endpoint)
  assert.equal(receiver.connections(), 1)
  receiver.answer({ delayMs: 50 })
  await Promise.all(Array.from({ length: 20 }, () => send(endpoint)))
  assert.equal(receiver.connections(), 20)
  await Promise.all(Array.from({ length: 20 }, () => send(endpoint)))
  assert.equal(receiver.connections(), 20)
})

test('endpoints on the same host and port share connections, each with its own path and headers', async (t) => {
  const receiver = await startReceiver(t)
  const transport = openTransport(t)
  const all = Array.from({ length: 10 }, (_, index) =>
    transport.open({ url: `${receiver.url}/${index}`, headers: { 'X-Which': `${index}` } }),
  )
  for (const endpoint of all) assert.equal((await send(endpoint)).kind, 'success')
  assert.equal(receiver.connections(), 1)
  receiver.requests.forEach(({ path, headers }, index) => {
    assert.ok(path.endsWith(`/${index}`), path)
    assert.equal(headers['x-which'], `${index}`)
  })
  // One that hangs keeps the connection that it is on; the others have another one.
  receiver.answer({ instead: { do: 'hang' } })
  const hanging = send(all[0]!)
  await receiver.waitFor(11)
  receiver.answer({})
  for (const endpoint of all.slice(1)) assert.equal((await send(endpoint)).kind, 'success')
  assert.equal(receiver.connections(), 2)
  await transport.close(0)
  assert.equal((await hanging).kind, 'network')
})

test('a request is sent again on a new connection when the server closes a reused one', async (t) => {
  const receiver = await startReceiver(t)
  const endpoint = openTransport(t).open({ url: receiver.url, headers: {} })
  await send(endpoint)
  receiver.answer({ instead: { do: 'reset' } }, {})
  assert.equal((await send(endpoint)).kind, 'success')
  assert.deepEqual(
    receiver.requests.map(({ connection }) => connection),
    [1, 1, 2],
  )
})

test('a request is not sent a third time, or again after a failure on a fresh connection', async (t) => {
  const receiver = await startReceiver(t)
  const endpoint = openTransport(t).open({ url: receiver.url, headers: {} })
  receiver.answer({ instead: { do: 'reset' } }, {}, { instead: { do: 'reset' } })
  assert.equal((await send(endpoint)).kind, 'network')
  assert.equal(receiver.requests.length, 1)
  assert.equal((await send(endpoint)).kind, 'success')
  assert.equal((await send(endpoint)).kind, 'network')
  assert.equal(receiver.requests.length, 4)
})

test('a connection that takes the place of one that the server ended counts as fresh', async (t) => {
  const receiver = await startReceiver(t)
  const endpoint = openTransport(t).open({ url: receiver.url, headers: {} })
  receiver.answer({ headers: { connection: 'close' } }, { instead: { do: 'reset' } }, {})
  // Sent from within the first outcome, while the first connection is closing.
  const second = await new Promise<Outcome>((resolve) => {
    endpoint.send(requestOf(), {
      onOutcome: () => endpoint.send(requestOf(), { onOutcome: resolve }),
    })
  })
  assert.equal(second.kind, 'network')
  assert.equal(receiver.requests.length, 2)
  assert.equal(receiver.connections(), 2)
})

test('a refused connection and an unknown name are network failures', async (t) => {
  const receiver = await startReceiver(t)
  await receiver.close()
  const notFound = Object.assign(new Error('getaddrinfo ENOTFOUND shop.test'), { code: 'ENOTFOUND' })
  const transport = openTransport(t, { lookup: (_name, _options, callback) => callback(notFound, []) })
  const refused = await send(transport.open({ url: receiver.url, headers: {} }))
  assert.equal(refused.kind, 'network')
  assert.match(refused.detail!, /ECONNREFUSED/)
  const unknown = await send(transport.open({ url: 'http://shop.test/?token=hush', headers: {} }))
  assert.equal(unknown.kind, 'network')
  assert.match(unknown.detail!, /ENOTFOUND/)
  assert.doesNotMatch(unknown.detail!, /hush/)
})

test('an error thrown by the sink is not taken for an outcome and is not swallowed', async (t) => {
  const receiver = await startReceiver(t)
  const endpoint = openTransport(t).open({ url: receiver.url, headers: {} })
  const thrown = new Promise<Error>((resolve) => {
    process.setUncaughtExceptionCaptureCallback(resolve)
    t.after(() => process.setUncaughtExceptionCaptureCallback(null))
  })
  let count = 0
  endpoint.send(requestOf(), {
    onOutcome() {
      count++
      throw new Error('a bug')
    },
  })
  assert.equal((await thrown).message, 'a bug')
  assert.equal((await send(endpoint)).kind, 'success')
  assert.equal(count, 1)
})

test('static headers take the place of what is accepted otherwise', async (t) => {
  const receiver = await startReceiver(t)
  const headers = { Accept: 'application/json', 'ACCEPT-ENCODING': 'gzip' }
  await send(openTransport(t).open({ url: receiver.url, headers }))
  const { rawHeaders } = receiver.requests[0]!
  const accepts = rawHeaders.filter((_, index) => /^accept/i.test(rawHeaders[index - (index % 2)]!))
  assert.deepEqual(accepts, ['Accept', 'application/json', 'ACCEPT-ENCODING', 'gzip'])
})

test('a header that cannot be sent makes a failed attempt, and does not make send() throw', async (t) => {
  const receiver = await startReceiver(t)
  const transport = openTransport(t)
  for (const [name, value] of [
    ['x-price', '5 €'],
    ['x-line', 'a\r\nb: c'],
    ['Content-Length', '0'],
    ['transfer-encoding', 'chunked'],
    ['Host', 'other.test'],
    ['webhook-id', '1'],
  ] as const) {
    const outcome = await send(transport.open({ url: receiver.url, headers: { [name]: value } }))
    assert.deepEqual([outcome.kind, outcome.detail], ['network', `invalid ${name} header`])
  }
  const endpoint = transport.open({ url: receiver.url, headers: {} })
  const signer = { sign: () => 'v1,x\r\nEvil: 1' }
  for (const wrong of [
    // Latin-1 has one byte of each: of U+010D and U+010A, CR and LF.
    { traceparent: 'x\u010d\u010aEvil: 1' },
    { traceparent: 'x\r\nEvil: 1' },
    { signature: 'x\nEvil: 1' },
    { signature: 'x', signer },
  ]) {
    const { kind, detail } = await send(endpoint, { ...requestOf(), ...wrong })
    assert.deepEqual(
      [kind, detail],
      ['network', 'a header of the request has a character that cannot be sent'],
    )
  }
  assert.equal(receiver.connections(), 0)
  assert.throws(() => transport.open({ url: 'ftp://shop.test/', headers: {} }), { code: 'usage' })
})
