import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import {
  collected,
  collectorSample,
  post,
  startCollector,
  track,
  withSource,
  writeKey,
} from '../support/calls/collectors.ts'
import { deploy } from '../support/deployment/deployment.ts'
import { until } from '../support/until.ts'
import { rawRequest, sendRaw } from '../support/calls/raw-http.ts'

const basic = `Authorization: Basic ${btoa(`${writeKey}:`)}`
const codeOf = (text: string): string | null => (JSON.parse(text) as { code?: string }).code ?? null

/** A call of exactly `bytes` bytes. */
function sized(bytes: number, fill = 'x', messageId = `sized-${bytes}`): string {
  const rest = JSON.stringify(track(messageId, { properties: { fill: '' } }))
  const room = bytes - Buffer.byteLength(rest)
  const text = fill.repeat(Math.floor(room / Buffer.byteLength(fill)))
  return rest.replace('"fill":""', `"fill":"${text}${'x'.repeat(room - Buffer.byteLength(text))}"`)
}

test('each hostile request gets its error code, affects no other request, and valid calls beside it are kept', async (t) => {
  const deployment = await deploy(t)
  await withSource(deployment)
  await withSource(deployment, 'off', false)
  const collector = await startCollector(deployment)
  const call = JSON.stringify(track('plain'))
  const nested = (levels: number) => '{"a":'.repeat(levels) + '1' + '}'.repeat(levels)

  const table: [
    what: string,
    path: string,
    body: string | Buffer,
    lines: string[],
    status: number,
    code: string | null,
  ][] = [
    ['no JSON', '/v1/track', 'x', [basic], 400, 'invalid_json'],
    ['nothing', '/v1/track', '', [basic], 400, 'invalid_json'],
    ['half of it', '/v1/batch', '{"batch":[{"type":"track"', [basic], 400, 'invalid_json'],
    ['something behind it', '/v1/track', `${call}}`, [basic], 400, 'invalid_json'],
    ['an array', '/v1/track', `[${call}]`, [basic], 400, 'invalid_json'],
    ['a number', '/v1/track', '1e400', [basic], 400, 'invalid_json'],
    ['null', '/v1/batch', 'null', [basic], 400, 'invalid_json'],
    ['a batch that is none', '/v1/batch', '{"batch":{"0":1}}', [basic], 400, 'empty_batch'],
    ['no batch', '/v1/batch', '{}', [basic], 400, 'empty_batch'],
    ['a batch of null', '/v1/batch', '{"batch":null}', [basic], 400, 'empty_batch'],
    ['a batch taken back', '/v1/batch', `{"batch":[${call}],"batch":null}`, [basic], 400, 'empty_batch'],
    ['an empty batch', '/v1/batch', '{"batch":[]}', [basic], 200, null],
    [
      'a batch of far too many',
      '/v1/batch',
      `{"batch":[${'1,'.repeat(10_000)}1]}`,
      [basic],
      400,
      'too_many_calls',
    ],
    [
      'invalid UTF-8',
      '/v1/track',
      Buffer.from(call.replace('Order', '\xff\xfe'), 'latin1'),
      [basic],
      400,
      'invalid_json',
    ],
    ['bad gzip', '/v1/track', call, [basic, 'Content-Encoding: gzip'], 400, 'invalid_gzip'],
    [
      'half a gzip',
      '/v1/track',
      gzipSync(call).subarray(0, 40),
      [basic, 'Content-Encoding: gzip'],
      400,
      'invalid_gzip',
    ],
    [
      'a gzip bomb',
      '/v1/track',
      gzipSync(Buffer.alloc(100 << 20)),
      [basic, 'Content-Encoding: gzip'],
      413,
      'body_too_large',
    ],
    ['brotli', '/v1/track', call, [basic, 'Content-Encoding: br'], 400, 'encoding_unknown'],
    ['10 MB of nesting', '/v1/track', nested(1_700_000), [basic], 413, 'body_too_large'],
    [
      'nesting within the limit, unclosed',
      '/v1/track',
      '{"a":'.repeat(100_000),
      [basic],
      400,
      'invalid_json',
    ],
    ['nesting within the limit', '/v1/track', nested(80_000), [basic], 400, 'message_too_large'],
    ['32 KB and a byte', '/v1/track', sized((32 << 10) + 1), [basic], 400, 'message_too_large'],
    [
      '32 KB and a byte of three-byte letters',
      '/v1/track',
      sized((32 << 10) + 1, '€'),
      [basic],
      400,
      'message_too_large',
    ],
    ['500 KB and a byte', '/v1/batch', ' '.repeat((500 << 10) + 1), [basic], 413, 'body_too_large'],
    ['no key', '/v1/track', call, [], 401, 'write_key_missing'],
    ['an unknown key', '/v1/track', call, ['Authorization: Basic eDo='], 401, 'write_key_unknown'],
    ['a key that is no text', '/v1/track', '{"writeKey":{"a":1}}', [], 401, 'write_key_missing'],
    ['an odd Authorization', '/v1/track', call, ['Authorization: Basic'], 401, 'write_key_missing'],
    [
      'a prototype as key',
      '/v1/track',
      call,
      [`Authorization: Basic ${btoa('__proto__:')}`],
      401,
      'write_key_unknown',
    ],
    [
      'a key in the query of a long route',
      `/v1/track?writeKey=${writeKey}`,
      call,
      [],
      401,
      'write_key_missing',
    ],
    [
      'a disabled source',
      '/v1/track',
      call,
      [`Authorization: Basic ${btoa('key-of-off:')}`],
      400,
      'source_disabled',
    ],
    ['another path', '/v1/nothing', call, [basic], 404, 'not_found'],
    ['a path that cannot be decoded', '/v1/%zz', call, [basic], 404, 'not_found'],
    ['a delete', '/v1/batch', '{"batch":[{"type":"delete","userId":"u"}]}', [basic], 200, null],
    [
      'a shared context that would multiply',
      '/v1/batch',
      `{"context":{"a":"${'x'.repeat(30_000)}"},"batch":[${'{},'.repeat(300)}{}]}`,
      [basic],
      400,
      'message_too_large',
    ],
    [
      'a shared context that is none',
      '/v1/batch',
      '{"context":[],"batch":[]}',
      [basic],
      400,
      'context_not_object',
    ],
    [
      'a shared sentAt that is none',
      '/v1/batch',
      '{"sentAt":"now","batch":[{"userId":"u","type":"identify","messageId":"timeless","sentAt":{}}]}',
      [basic],
      200,
      null,
    ],
  ]
  for (const [what, path, body, lines, status, code] of table) {
    const answer = await sendRaw(collector.port, rawRequest(path, lines, body))
    assert.equal(answer?.status, status, `${what}: ${answer?.body}`)
    assert.equal(codeOf(answer.body), code, `${what}: ${answer.body}`)
    if (code !== null) {
      const { success, message, ...rest } = JSON.parse(answer.body) as Record<string, unknown>
      assert.equal(success, false)
      assert.equal(typeof message, 'string')
      assert.deepEqual(Object.keys(rest), ['code'])
    }
  }

  await t.test('a request that is not HTTP gets an error and its connection is closed', async () => {
    for (const [what, bytes, status] of [
      ['no HTTP', 'hello\r\n\r\n', 400],
      [
        'two lengths',
        `POST /v1/track HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n`,
        400,
      ],
      ['a length that is none', `POST /v1/track HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n`, 400],
      [
        'a bad chunk',
        `POST /v1/track HTTP/1.1\r\nHost: a\r\n${basic}\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n`,
        400,
      ],
      ['an endless head', `POST /v1/track HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(100_000)}`, 431],
    ] as const) {
      const answer = await sendRaw(collector.port, bytes)
      assert.equal(answer?.status, status, what)
      assert.ok(codeOf(answer.body), what)
    }
  })

  await t.test('clients that send heads or bodies too slowly are cut off', async () => {
    // At a collector of their own: with so little time, others would be too slow where the machine is busy.
    const impatient = await startCollector(deployment, { requestMs: 1_500 })
    const head = `POST /v1/track HTTP/1.1\r\nHost: a\r\n${basic}\r\n`
    for (const begun of [head, `${head}Content-Length: 1000\r\n\r\n{"type"`]) {
      const answer = await sendRaw(impatient.port, begun)
      // SDKs drop what is answered 408.
      assert.equal(answer?.status, 503)
      assert.equal(codeOf(answer.body), 'too_slow')
    }
    await impatient.stop()
  })

  await t.test('a body that is shorter than its Content-Length is not a call', async () => {
    const request = rawRequest('/v1/track', [basic], call).subarray(0, -5)
    const answer = await sendRaw(collector.port, request, { halfClose: true })
    assert.notEqual(answer?.status, 200)
  })

  await t.test('a body that is longer than its Content-Length closes the connection', async () => {
    const [head, body] = [rawRequest('/v1/track', [basic], call), 'and more\r\n\r\n']
    const first = await sendRaw(collector.port, Buffer.concat([head, Buffer.from(body)]))
    assert.equal(first?.status, 400)
    assert.equal(codeOf(first.body), 'invalid_http')
  })

  await t.test('clients that disconnect leave nothing behind', async () => {
    const sockets = Array.from({ length: 50 }, () => {
      const socket = connect(collector.port, '127.0.0.1')
      socket.on('error', () => {})
      socket.write(`POST /v1/track HTTP/1.1\r\nHost: a\r\n${basic}\r\nContent-Length: 1000\r\n\r\n{`)
      return socket
    })
    await until(() => sockets.every((socket) => socket.bytesWritten > 0))
    for (const socket of sockets) socket.resetAndDestroy()
  })

  await t.test('in a batch only invalid calls are dropped, with their position and code', async () => {
    const items = [
      call.replace('plain', 'first'),
      '1',
      '"x"',
      '[]',
      'null',
      '{}',
      JSON.stringify(track('x', { type: 'delete' })),
      JSON.stringify(track('x', { userId: null })),
      JSON.stringify(track('x', { userId: ['u'] })),
      JSON.stringify(track('x', { event: 1 })),
      JSON.stringify(track('x', { event: null })),
      JSON.stringify(track('x', { properties: [] })),
      JSON.stringify(track('x', { context: 'c' })),
      JSON.stringify(track('x', { integrations: 1 })),
      JSON.stringify(track('x', { timestamp: 'yesterday' })),
      JSON.stringify(track('m'.repeat(101))),
      JSON.stringify({ type: 'alias', userId: 'u' }),
      JSON.stringify({ type: 'group', userId: 'u' }),
      JSON.stringify({ type: 'identify', userId: 'u', traits: 'x' }),
      sized((32 << 10) + 1),
      sized(32 << 10),
      '{"type":"track","userId":"lone\\ud800","event":"e\\udc00","messageId":"lone","properties":{"k\\udc00":"\\ud800"}}',
      '{"__proto__":{"type":"identify","userId":"forged"},"constructor":{"prototype":1},"toString":1,"type":"track","userId":"u-1","event":"e","messageId":"proto","properties":{"__proto__":{"a":1},"constructor":2}}',
      '{"type":"track","userId":9007199254740993,"event":"e","messageId":"numbers","properties":{"a":9007199254740993,"b":1.50,"c":1e400,"d":-0}}',
      '{"type":"track","userId":"u-1","event":"e","messageId":"deep","properties":' + nested(5_000) + '}',
      '{"type":"track","\\u0075serId":"escaped","userId":"u-1","userId":"last","event":"e","messageId":"twice"}',
      call.replace('plain', 'last'),
    ]
    const { status, text } = await post(collector, '/v1/batch', `{"batch":[${items.join()}]}`)
    assert.equal(status, 200, text)
    const answer = JSON.parse(text) as { success: boolean; rejected: { index: number; code: string }[] }
    assert.equal(answer.success, true)
    assert.deepEqual(
      answer.rejected.map(({ index, code }) => [index, code]),
      [
        [1, 'invalid_json'],
        [2, 'invalid_json'],
        [3, 'invalid_json'],
        [4, 'invalid_json'],
        [5, 'type_unknown'],
        [6, 'type_unknown'],
        [7, 'no_user_anon_id'],
        [8, 'id_not_string'],
        [9, 'event_not_string'],
        [10, 'event_not_defined'],
        [11, 'properties_not_object'],
        [12, 'context_not_object'],
        [13, 'integrations_not_object'],
        [14, 'timestamp_invalid'],
        [15, 'message_id_too_long'],
        [16, 'previous_id_required'],
        [17, 'group_id_required'],
        [18, 'traits_not_object'],
        [19, 'message_too_large'],
      ],
    )
    const calls = new Map((await collected(deployment)).map((each) => [each.messageId, each]))
    assert.deepEqual([...calls.keys()].sort(), [
      'deep',
      'first',
      'last',
      'lone',
      'numbers',
      'plain',
      'proto',
      'sized-32768',
      'timeless',
      'twice',
    ])
    assert.equal(calls.get('lone')!.userId, 'lone\ufffd')
    assert.equal(calls.get('lone')!.properties, '{"k\\udc00":"\\ud800"}')
    assert.equal(calls.get('proto')!.userId, 'u-1')
    assert.equal(calls.get('proto')!.properties, '{"__proto__":{"a":1},"constructor":2}')
    assert.equal(calls.get('numbers')!.userId, '9007199254740993')
    assert.equal(calls.get('numbers')!.properties, '{"a":9007199254740993,"b":1.50,"c":1e400,"d":-0}')
    assert.equal(calls.get('twice')!.userId, 'last')
  })

  assert.equal(collector.problem(), null)
  assert.ok(collectorSample(collector, 'source="shop",type="track",result="accepted"') >= 1)
  assert.deepEqual(
    collector.log.filter(({ level }) => level >= 50),
    [],
  )
})
