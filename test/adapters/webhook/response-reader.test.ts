import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import fc from 'fast-check'
import { Client } from 'undici'
import { ResponseReader } from '../../../src/adapters/webhook/direct/response-reader.ts'
import {
  describe,
  MalformedResponse,
  maxRawBytes,
  ResponseTooLong,
} from '../../../src/adapters/webhook/response.ts'
import { startRawServer } from './raw-server.ts'
import { allCuts, afterEachByte, anything, cutsOf, head, isWhole, mutated } from './responses.ts'
import { padded, read, response, someCuts, type Read } from './responses.ts'

const ok = 'HTTP/1.1 200 OK'
const length5 = 'Content-Length: 5'
const chunked = 'Transfer-Encoding: chunked'
const hello = '5\r\nhello\r\n0\r\n\r\n'
const chunks = head(ok, chunked)
const kb16 = 16_384
const closes = { keepsConnection: false }
const interims =
  head('HTTP/1.1 102 -', 'Content-Length: 9', 'Retry-After: 1', 'Connection: close') +
  head('HTTP/1.1 103 Early Hints', 'Link: <x>', 'Keep-Alive: timeout=1')

/** The body is `hello` and the connection is kept unless it is given otherwise; `untilEnd`: as long as that lasts. */
const wellFormed: [what: string, text: string, expected?: Partial<Read>, untilEnd?: 'until end'][] = [
  ['Content-Length', head(ok, length5) + 'hello'],
  ['Content-Length with space around it', head(ok, 'CONTENT-LENGTH:\t 5 \t') + 'hello'],
  ['Content-Length: 0', head(ok, 'content-length: 0'), { body: '' }],
  ['no length', head(ok) + 'hello', {}, 'until end'],
  ['no length and no body', head(ok), { body: '' }, 'until end'],
  ['chunks', chunks + '2\r\nhe\r\n0003\r\nllo\r\n0\r\n\r\n'],
  ['large chunks', chunks + `1A\r\n${'a'.repeat(26)}\r\n0\r\n\r\n`, { body: 'a'.repeat(26) }],
  ['line ends within a chunk', chunks + '6\r\n\r\n0\r\n\r\r\n0\r\n\r\n', { body: '\r\n0\r\n\r' }],
  ['no chunk but the last', chunks + '000\r\n\r\n', { body: '' }],
  ['chunk extensions', chunks + '5;a;b="c d"\r\nhello\r\n0;e=\xe9\r\n\r\n'],
  ['space before a chunk extension', chunks + '5 \t; a = b\r\nhello\r\n0\r\n\r\n'],
  ['trailers', chunks + '5\r\nhello\r\n0\r\nX: y\r\nRetry-After: 7\r\nConnection: close\r\n\r\n'],
  ['gzip, chunked', head(ok, 'Transfer-Encoding: gzip, Chunked') + hello],
  ['two Transfer-Encodings', head(ok, 'Transfer-Encoding: gzip', 'X: y', chunked) + hello],
  ['an empty Transfer-Encoding behind', head(ok, chunked, 'Transfer-Encoding: ') + hello],
  ['empty members of Transfer-Encoding', head(ok, 'Transfer-Encoding: , chunked ,\t,') + hello],
  ['an empty Transfer-Encoding', head(ok, 'Transfer-Encoding:', length5) + 'hello'],
  ['sizes of many digits', `${chunks}000000000000000005\r\nhello\r\n000000000\r\n\r\n`],
  ['chunked, but not last', head(ok, 'Transfer-Encoding: chunked, gzip') + 'hello', {}, 'until end'],
  ['gzip alone', head(ok, 'Transfer-Encoding: gzip') + 'hello', {}, 'until end'],
  ['what ends like chunked', head(ok, 'Transfer-Encoding: xchunked') + 'hello', {}, 'until end'],
  ['no comma before chunked', head(ok, 'Transfer-Encoding: gzip chunked') + 'hello', {}, 'until end'],
  ['chunked and a no-break space', head(ok, 'Transfer-Encoding: chunked\xa0') + 'hello', {}, 'until end'],
  ['204', head('HTTP/1.1 204 No Content'), { status: 204, body: '' }],
  ['204 of no bytes', head('HTTP/1.1 204 -', 'Content-Length: 0'), { status: 204, body: '' }],
  ['204 with a length', head('HTTP/1.1 204 -', length5), { status: 204, body: '', ...closes }],
  ['204 with chunks', head('HTTP/1.1 204 -', chunked), { status: 204, body: '', ...closes }],
  ['304', head('HTTP/1.1 304 -'), { status: 304, body: '' }],
  ['304 with a length', head('HTTP/1.1 304 -', length5), { status: 304, body: '', ...closes }],
  ['100 before it', head('HTTP/1.1 100 Continue') + head(ok, length5) + 'hello'],
  ['interim responses before it', interims + head(ok, length5) + 'hello'],
  ['HTTP/1.0', head('HTTP/1.0 200 OK', length5) + 'hello', closes],
  ['HTTP/1.0 that goes on', head('HTTP/1.0 200 OK', length5, 'connection: Keep-Alive') + 'hello'],
  ['HTTP/1.0 with both', head('HTTP/1.0 200', length5, 'Connection: keep-alive, close') + 'hello', closes],
  ['HTTP/1.0 with chunks', head('HTTP/1.0 200 OK', chunked, 'Connection: keep-alive') + hello, closes],
  ['Connection: close', head(ok, length5, 'connection: close') + 'hello', closes],
  ['close in another case', head(ok, 'CONNECTION:CLOSE', chunked) + hello, closes],
  ['close among others', head(ok, length5, 'Connection: a ,Close, b') + 'hello', closes],
  ['close in one of two fields', head(ok, length5, 'Connection: close', 'Connection: x') + 'hello', closes],
  ['close and a tab behind it', head(ok, length5, 'Connection: close\t') + 'hello', closes],
  ['a word like close', head(ok, length5, 'Connection: closed, x-close') + 'hello'],
  ['Content-Length behind 3,000 fields', head(ok, ...Array<string>(3_000).fill('X:'), length5) + 'hello'],
  ['Upgrade', head(ok, 'Upgrade: h2,h2c', 'Connection: Upgrade, Keep-Alive', length5) + 'hello'],
  ['Keep-Alive', head(ok, length5, 'Keep-Alive: timeout=5, max=100') + 'hello', { keepsSeconds: 5 }],
  ['Keep-Alive after max', head(ok, 'keep-alive: max=9,Timeout=0', length5) + 'hello', { keepsSeconds: 0 }],
  [
    'Keep-Alive with no more requests',
    head(ok, length5, 'Keep-Alive: timeout=5, max=0') + 'hello',
    { keepsSeconds: 5, ...closes },
  ],
  ['Keep-Alive with ten more', head(ok, length5, 'Keep-Alive: max=10') + 'hello'],
  ['Keep-Alive without seconds', head(ok, length5, 'Keep-Alive: max=100, xtimeout=5') + 'hello'],
  [
    'two Retry-After',
    head(ok, 'retry-after: \t7 ', length5, 'Retry-After: 9') + 'hello',
    { retryAfter: '7' },
  ],
  ['an empty Retry-After', head(ok, length5, 'Retry-After:', 'Retry-After: 9') + 'hello', { retryAfter: '' }],
  [
    'Latin-1',
    head('HTTP/1.1 200 \xfc', 'Retry-After: \x80\xff', length5) + 'hello',
    { retryAfter: '\x80\xff' },
  ],
  ['an empty reason', head('HTTP/1.1 200 ', length5) + 'hello'],
  ['no reason', head('HTTP/1.1 200', length5) + 'hello'],
  ['a status that nobody knows', head('HTTP/1.1 999 -', length5) + 'hello', { status: 999 }],
  ['fields of all lengths and signs', head(ok, "!#$%&'*+-.^_`|~09aZ: :", 'X:', 'Y: \t', length5) + 'hello'],
  ['a header of 16 KB', padded(kb16, `${ok}\r\nX: `, `\r\n${head(length5)}`) + 'hello'],
  ['chunk lines of 16 KB', `${chunks}${padded(kb16 - 7, '5;', '\r\n')}hello\r\n0\r\n\r\n`],
  ['trailers of 16 KB', `${chunks}5\r\nhello\r\n0\r\n${padded(kb16 - 8, 'X: ', '\r\n\r\n')}`],
  ['1,022 chunks', `${chunks}${'1\r\nx\r\n'.repeat(1_022)}0\r\n\r\n`, { body: 'x'.repeat(1_022) }],
  ['8 interim responses', head('HTTP/1.1 102 -').repeat(8) + head(ok, length5) + 'hello'],
  [
    'interim responses of 16 KB',
    padded(kb16, 'HTTP/1.1 103 -\r\nX: ', '\r\n\r\n') + head(ok, length5) + 'hello',
  ],
]

/** Each holds `geheim`. */
const malformed: [what: string, text: string][] = [
  ['what is not HTTP', 'SSH-2.0-geheim\r\n'],
  ['HTTP/2.0', head('HTTP/2.0 200 geheim', length5) + 'hello'],
  ['HTTP/2 without an end', 'HTTP/2 200 geheim\r\n'],
  ['HTTP/1.2', head('HTTP/1.2 200 geheim', length5) + 'hello'],
  ['status 099', head('HTTP/1.1 099 geheim', length5)],
  ['a status of four digits', head('HTTP/1.1 2000 geheim', length5) + 'hello'],
  ['a reason without a space', head('HTTP/1.1 200geheim', length5) + 'hello'],
  ['an empty line before it', `\r\n${head(ok, length5, 'X: geheim')}hello`],
  ['two Content-Lengths', head(ok, length5, 'X: geheim', length5) + 'hello'],
  ['Content-Length: 5, 5', head(ok, 'X: geheim', 'Content-Length: 5, 5') + 'hello'],
  ['Content-Length: +5', head(ok, 'X: geheim', 'Content-Length: +5') + 'hello'],
  ['Content-Length: -1', head(ok, 'X: geheim', 'Content-Length: -1')],
  ['Content-Length: 0x5', head(ok, 'X: geheim', 'Content-Length: 0x5') + 'hello'],
  ['an empty Content-Length', head(ok, 'X: geheim', 'Content-Length: ')],
  ['a Content-Length that is no number', head(ok, 'Content-Length: geheim')],
  ['a Content-Length with a no-break space', head(ok, 'X: geheim', 'Content-Length: 5\xa0') + 'hello'],
  ['Content-Length and Transfer-Encoding', head(ok, length5, chunked, 'X: geheim') + hello],
  ['gzip and Content-Length', head(ok, 'Transfer-Encoding: gzip', length5, 'X: geheim') + 'hello'],
  ['a comma for Transfer-Encoding', head(ok, 'Transfer-Encoding: ,', length5, 'X: geheim') + 'hello'],
  ['chunked twice', head(ok, 'Transfer-Encoding: chunked, chunked', 'X: geheim') + hello],
  ['chunked twice, in two fields', head(ok, chunked, 'X: geheim', chunked) + hello],
  ['101', head('HTTP/1.1 101 -', 'Connection: upgrade', 'Upgrade: geheim')],
  ['a malformed interim response', head('HTTP/1.1 103 -', 'geheim') + head(ok, length5) + 'hello'],
  ['a folded line', head(ok, 'X: y', ' geheim', length5) + 'hello'],
  ['a folded Transfer-Encoding', head(ok, 'X: geheim', 'Transfer-Encoding:', ' chunked') + hello],
  ['a space before the first field', head(ok, ' Content-Length: 9', length5, 'X: geheim') + 'hello'],
  ['a header that ends in CRLF and CR', `${ok}\r\nX: geheim\r\n${length5}\r\n\rhello\r\n\r\n`],
  ['fields that end in CR', `${ok}\r\nX: geheim\r\r${length5}\r\n\r\nhello`],
  ['a line that ends in LF', `${ok}\nX: geheim\r\n${length5}\r\n\r\nhello`],
  ['lines that all end in LF', `${ok}\nX: geheim\nContent-Length: 5\n\nhello`],
  ['a line that ends in LF, and no more', `${ok}\r\nX: geheim\n`],
  ['a field that ends in LF', `${ok}\r\nX: geheim\n${length5}\r\n\r\nhello`],
  ['a CR within a line', head(ok, `X: geheim\r${length5}`) + 'hello'],
  ['a space before the colon', head(ok, 'geheim : x', length5) + 'hello'],
  ['a line without a colon', head(ok, 'geheim', length5) + 'hello'],
  ['a field without a name', head(ok, ': geheim', length5) + 'hello'],
  ['a NUL in a value', head(ok, 'X: geheim\0', length5) + 'hello'],
  ...['geheim', 'g', '', '0x1', '12345678901234', '-1', '5 ', '5\x00', '5,a'].map(
    (size): [string, string] => [
      `the size of a chunk: ${JSON.stringify(size)}`,
      `${head(ok, chunked, 'X: geheim')}${size}\r\nhello\r\n0\r\n\r\n`,
    ],
  ),
  ['a size that ends in LF', `${chunks}60\ngeheim\r\n0\r\n\r\n`],
  ['a chunk that is longer than its size', `${chunks}5\r\ngeheim\r\n0\r\n\r\n`],
  ['a chunk without an end', `${chunks}6\r\ngeheim0\r\n\r\n`],
  ['a trailer that is no field', `${chunks}0\r\ngeheim\r\n\r\n`],
  ['a NUL in a trailer', `${chunks}0\r\nX: geheim\0\r\n\r\n`],
  ['a CR in a trailer', `${chunks}0\r\nX: geheim\rY: z\r\n\r\n`],
  ['a trailer that ends in LF', `${chunks}0\r\nX: geheim\n\r\n`],
  ['another response before the trailers’ end', `${chunks}0\r\n${head(ok, 'X: geheim')}`],
  ['a header of more than 16 KB', padded(kb16 + 1, `${ok}\r\nX: geheim`, `\r\n${head(length5)}`) + 'hello'],
  ['a header of 16 KB without an end', padded(kb16, `${ok}\r\nX: geheim`, '')],
  ['a chunk line of more than 16 KB', `${chunks}${padded(kb16 + 1, '5;geheim', '\r\n')}hello`],
  [
    'chunk lines of more than 16 KB',
    `${chunks}${`${padded(1_000, '1;geheim', '\r\n')}x\r\n`.repeat(17)}0\r\n\r\n`,
  ],
  ['1,024 chunks', `${chunks}5\r\ngeheim\r\n${'1\r\nx\r\n'.repeat(1_024)}0\r\n\r\n`],
  ['9 interim responses', `${head('HTTP/1.1 102 geheim').repeat(9)}${head(ok, length5)}hello`],
  [
    'interim responses of more than 16 KB',
    padded(kb16 - 31, 'HTTP/1.1 103 -\r\nX: geheim', '\r\n\r\n') +
      head('HTTP/1.1 103 -', 'X: 345678901') +
      head(ok, length5) +
      'hello',
  ],
  ['a chunk line of 16 KB without an end', chunks + padded(kb16 + 1, '5;geheim', '')],
  [
    'trailers of more than 16 KB',
    `${chunks}0\r\n${padded(8_192, 'X: geheim', '\r\n')}${padded(8_193, 'X: ', '\r\n\r\n')}`,
  ],
]

const next = head('HTTP/1.1 201 Created', 'Content-Length: 2') + 'ok'

for (const [what, text, changed, untilEnd] of wellFormed) {
  test(`a response is read the same however it is cut: ${what}`, () => {
    const expected: Read = {
      ...{ status: 200, retryAfter: null, body: 'hello', keepsConnection: !untilEnd, keepsSeconds: null },
      ...{ end: untilEnd ? -1 : text.length, mayEndNow: !!untilEnd, refused: false },
      ...changed,
    }
    for (const cuts of allCuts(text)) assert.deepEqual(read(text, cuts), expected, `cut at ${cuts}`)
    if (untilEnd) return
    // What follows is no part of it. Read from there, nothing is left of the one before.
    const reader = new ResponseReader()
    assert.deepEqual(read(text + next, [], reader), expected)
    assert.deepEqual(read(next, [], reader), { ...read(next), status: 201, body: 'ok', end: next.length })
    assert.deepEqual(read(text, [], reader), expected)
    // Until then it is not whole.
    const cutOff = read(text.slice(0, -1))
    assert.deepEqual([cutOff.end, cutOff.mayEndNow, cutOff.refused], [-1, false, false])
  })
}

for (const [what, text] of malformed) {
  test(`a malformed response is refused however it is cut, and the error says nothing of it: ${what}`, () => {
    assert.match(text, /geheim/)
    for (const cuts of allCuts(text)) assert.ok(read(text, cuts).refused, `cut at ${cuts}`)
    assert.throws(
      () => new ResponseReader().read(Buffer.from(text, 'latin1'), { onHead() {}, onBody() {} }),
      (error) => error instanceof MalformedResponse && !/geheim/.test(inspect(error)),
    )
  })
}

test('what is read of a response has a bound, whatever it consists of', () => {
  const body = padded(kb16, `${ok}\r\nX: `, '\r\n\r\n') + 'x'.repeat(1_000_000)
  for (const size of [1_000, 65_536, body.length]) {
    const reader = new ResponseReader()
    let seen = 0
    const handler = { onHead() {}, onBody: (chunk: Buffer) => void (seen += chunk.length) }
    let at = 0
    assert.throws(() => {
      for (; at < body.length; at += size)
        reader.read(Buffer.from(body.slice(at, at + size), 'latin1'), handler)
    }, ResponseTooLong)
    assert.equal(seen, maxRawBytes - kb16)
    assert.ok(at <= maxRawBytes)
  }
  // Each response has its own.
  const reader = new ResponseReader()
  const whole = `${head(ok, 'Content-Length: 60000')}${'x'.repeat(60_000)}`
  for (let index = 0; index < 4; index++) assert.equal(read(whole, [], reader).end, whole.length)
})

test('the second of two responses in one piece is read from where the first ends', () => {
  const first = head(ok, chunked, 'Connection: close', 'Keep-Alive: timeout=5') + hello
  const reader = new ResponseReader()
  const data = Buffer.from(first + next)
  const seen: unknown[] = []
  const handler = {
    onHead: (status: number) => seen.push(status),
    onBody: (chunk: Buffer) => seen.push(chunk.toString()),
  }
  assert.equal(reader.read(data, handler), first.length)
  assert.deepEqual([reader.keepsConnection, reader.keepsSeconds], [false, 5])
  assert.equal(reader.read(data.subarray(first.length), handler), next.length)
  assert.deepEqual([reader.keepsConnection, reader.keepsSeconds], [true, null])
  assert.deepEqual(seen, [200, 'hello', 201, 'ok'])
})

test('property: a well-formed response in any cutting gives exactly its parts', () => {
  fc.assert(
    fc.property(response, someCuts, ({ text, expected }, places) => {
      for (const cuts of [[], cutsOf(places, text), afterEachByte(text)])
        assert.deepEqual(read(text, cuts), expected)
    }),
    { numRuns: 500 },
  )
})

test('property: whatever comes is read the same however it is cut, and nothing else is thrown', () => {
  fc.assert(
    fc.property(anything, someCuts, (text, places) => {
      const whole = read(text)
      for (const cuts of [cutsOf(places, text), afterEachByte(text)])
        assert.deepEqual(read(text, cuts), whole)
    }),
    { numRuns: 1_000 },
  )
})

/** Where undici (llhttp) and the reader may differ, by what is sent and how they do. */
const allowed: [why: string, sent: RegExp, difference: RegExp][] = [
  ['undici refuses 100 Continue, which RFC 9110 has us pass over', /^HTTP\/1\.[01] 100/m, /bad response$/],
  ['undici takes space after a length for a digit', /^content-length:.*[\t ]\r$/im, /content-length/i],
  ['llhttp knows no tab in a list of codings', /^transfer-encoding:[\t ]*[^\t ].*\t/im, /./],
  ['llhttp parses extensions; they end with the line', /^[\da-f]+[\t ]*;/im, /in chunk (ext|size)/],
  [
    'llhttp heeds a length in trailers',
    /^0+(;.*)?\r\n(.+\r\n)*content-length:/im,
    /Content-Length (can't|alr)/,
  ],
  ['llhttp lets an interim response close', /^HTTP\/1\.[01] 1\d\d/m, /Data after `Connection: close`/],
  ['llhttp skips empty lines before a response', /(^|\r\n)[\r\n]+HTTP\/1/, /^only undici/],
  ['llhttp allows all in a reason', /^HTTP\/1.*([\0-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n))/m, /^only undici/],
  ['llhttp takes a chunk size of any length', /^[\da-f]{9}/im, /^only undici/],
  ['llhttp takes chunked twice', /^transfer-encoding:[^]*chunked[^]*chunked/im, /^only undici/],
  ['llhttp takes an empty Transfer-Encoding for none', /^transfer-encoding:[\t ]*\r$/im, /^only undici/],
  ['undici counts no separators of fields, and no trailers', /^[^]{16384}/, /^only undici/],
  ['llhttp knows HTTP/2.0, and status codes below 100', /^HTTP\/(2\.0|1\.1 0)/m, /^only undici/],
]

test('what the reader takes for a whole response is what llhttp takes for one', async (t) => {
  const server = await startRawServer(t, (socket, index) => {
    const [, number] = /\r\n\r\n(\d+)$/.exec(server.requests[index]!)!
    socket.end(texts[Number(number)]!, 'latin1')
  })
  const texts = [...wellFormed, ...malformed].map(([, text]) => text).concat(fc.sample(mutated, 300))
  const differenceOf = async (number: number): Promise<string | null> => {
    const ours = read(texts[number]!)
    const client = new Client(new URL(server.url).origin, { pipelining: 1 })
    try {
      const { statusCode, body } = await client.request({ method: 'POST', path: '/', body: `${number}` })
      const theirs = [statusCode, Buffer.from(await body.arrayBuffer()).toString('latin1')]
      if (!isWhole(ours)) return 'only undici takes it'
      taken++
      return theirs[0] === ours.status && theirs[1] === ours.body ? null : `undici reads ${inspect(theirs)}`
    } catch (error) {
      return isWhole(ours) ? `only the reader takes it: ${(error as Error).message}` : null
    } finally {
      await client.destroy()
    }
  }
  let taken = 0
  const differences: string[][] = []
  for (const [number, text] of texts.entries()) {
    const difference = await differenceOf(number)
    if (difference === null || allowed.some(([, sent, how]) => sent.test(text) && how.test(difference)))
      continue
    differences.push([difference, text])
  }
  assert.deepEqual(differences, [])
  assert.ok(taken > 100, `both take ${taken}`)
})

test('a failure is told in plain words, with what the system said behind them', () => {
  const failure = (code: string, message: string) => describe(Object.assign(new Error(message), { code }))
  assert.equal(
    failure('ENOTFOUND', 'getaddrinfo ENOTFOUND shop.test'),
    'the host name does not exist (getaddrinfo ENOTFOUND shop.test)',
  )
  assert.equal(
    failure('DEPTH_ZERO_SELF_SIGNED_CERT', 'self-signed certificate'),
    'its certificate is signed by itself only (DEPTH_ZERO_SELF_SIGNED_CERT: self-signed certificate)',
  )
  assert.equal(failure('EPROTO', 'write EPROTO 4:error'), 'write EPROTO 4:error')
  assert.equal(describe(new Error('other side closed')), 'other side closed')
})
