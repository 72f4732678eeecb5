import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { gzipSync } from 'node:zlib'
import {
  collectorSample,
  post,
  startCollector,
  track,
  withSource,
  writeKey,
} from '../support/calls/collectors.ts'
import { startCollectorProcess } from '../support/deployment/collector-process.ts'
import { deploy } from '../support/deployment/deployment.ts'
import { until } from '../support/until.ts'
import { rawRequest, sendRaw } from '../support/calls/raw-http.ts'

const basicOf = (id: string) => `Authorization: Basic ${btoa(`key-of-${id}:`)}`
const headersOf = (id: string) => ({ authorization: `Basic ${btoa(`key-of-${id}:`)}` })
const fill = (count: number, size: number): number[] => Array<number>(count).fill(size)
const unlimited = { SOURCE_MAX_RATE: '0' }

function opened(t: TestContext, port: number): Socket {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  t.after(() => socket.destroy())
  return socket
}

/** Calls that are not measured, so that the measured ones do not pay for the warm-up. */
async function warmedUp(collector: { url: string }, source: string): Promise<void> {
  for (let n = 0; n < 50; n++) await post(collector, '/v1/track', track(`warm-${n}`), headersOf(source))
}

/** Sends one call of the source after the other for as long as `isOn`; resolves with what they were answered. */
async function answersMeanwhile(
  collector: { url: string },
  source: string,
  isOn: () => boolean,
  more: object = {},
) {
  const statuses = new Set<number>()
  const ms: number[] = []
  do {
    const begin = performance.now()
    const { status } = await post(collector, '/v1/track', track(`m-${ms.length}`, more), headersOf(source))
    ms.push(performance.now() - begin)
    statuses.add(status)
  } while (isOn())
  return { statuses: [...statuses], count: ms.length, maxMs: Math.round(Math.max(...ms)) }
}

/** Needs: a write key, which may be public. Bounded: what senders that do not read hold, and for how long. */
for (const [limit, env] of [
  ['', {}],
  [', nor without a limit on their rate', unlimited],
] as const)
  test(`twenty clients that do not read their answers take nothing from another source${limit}`, async (t) => {
    const deployment = await deploy(t, env)
    for (const id of ['shop', 'blog']) await withSource(deployment, id)
    const collector = await startCollector(deployment)
    await warmedUp(collector, 'blog')
    const bomb = gzipSync(`{"batch":[${'1,'.repeat(9_999)}1]}`)
    const request = rawRequest('/v1/batch', [basicOf('shop'), 'Content-Encoding: gzip'], bomb)
    const sockets = Array.from({ length: 20 }, () => opened(t, collector.port).pause())
    // One after the other, so that their answers come to more than the buffers of each connection can hold.
    const rounds = 15
    let sent = 0
    const attack = setInterval(() => {
      for (const socket of sockets) socket.write(request)
      if (++sent === rounds) clearInterval(attack)
    }, 50)
    t.after(() => clearInterval(attack))
    const counted = (result: string) =>
      collectorSample(collector, `source="shop",type="unknown",result="${result}"`)
    const isOver = () => {
      const looked = (counted('rejected') + counted('overloaded')) / 10_000
      return looked + counted('limited') >= rounds * sockets.length
    }
    const during = await answersMeanwhile(collector, 'blog', () => !isOver())
    const end = performance.now() + 3_000
    const after = await answersMeanwhile(collector, 'blog', () => performance.now() < end)
    for (const [when, { count, maxMs }] of Object.entries({ during, after }))
      t.diagnostic(`${when}: ${count} calls of another source, answered within ${maxMs} ms at most`)
    assert.deepEqual([during.statuses, after.statuses], [[200], [200]])
  })

/** Needs: a write key. Bounded: the answer, at about 10 KB. */
test('of many rejected calls, the first hundred are listed and the others counted', async (t) => {
  const deployment = await deploy(t, unlimited)
  await withSource(deployment)
  const collector = await startCollector(deployment)
  const { status, text } = await post(collector, '/v1/batch', `{"batch":[${'1,'.repeat(9_999)}1]}`)
  const answer = JSON.parse(text) as { success: boolean; rejected: { index: number }[]; moreRejected: number }
  assert.equal(status, 200)
  assert.deepEqual(
    [answer.success, answer.rejected.length, answer.rejected[99]!.index, answer.moreRejected],
    [true, 100, 99, 9_900],
  )
  assert.ok(text.length < 10_000, `${text.length} bytes`)
})

/** Needs: nothing. Bounded: the budget of bodies without a known key, and the time that one which stalls keeps it. */
test('stalled bodies without a known key take no capacity from known sources and are cut off', async (t) => {
  const deployment = await deploy(t)
  await withSource(deployment)
  const collector = await startCollector(deployment)
  await warmedUp(collector, 'shop')
  // Until nothing fits in beside them: 64 MB, and what is left of it.
  const sizes = [...fill(150, 440_000), ...fill(60, 20_000), ...fill(60, 1_000)]
  let cut = 0
  for (const size of sizes) {
    const socket = opened(t, collector.port)
    socket.on('close', () => cut++)
    socket.on('data', () => socket.destroy())
    const lines = ['POST /v1/batch HTTP/1.1', 'Host: a', `Content-Length: ${size + 100}`, '', '']
    socket.write(`${lines.join('\r\n')}{"batch":[${' '.repeat(size)}`)
  }
  const large = { properties: { a: 'x'.repeat(30_000) } }
  const { statuses, count, maxMs } = await answersMeanwhile(
    collector,
    'shop',
    () => cut < sizes.length,
    large,
  )
  t.diagnostic(`a known source meanwhile: ${count} calls, answered within ${maxMs} ms at most`)
  assert.deepEqual(statuses, [200])
  // Their budget is free again for others whose key is in the body.
  const inBody = { ...track('in-body'), writeKey }
  assert.equal((await post(collector, '/v1/track', inBody, {})).status, 200)
  assert.ok(collectorSample(collector, 'source="unknown",type="unknown",result="overloaded"') > 0)
})

/** Needs: nothing. Bounded: nothing of the body is read. */
test('an unknown key in the head is refused before the body arrives', async (t) => {
  const deployment = await deploy(t)
  await withSource(deployment)
  const collector = await startCollector(deployment)
  for (const [target, lines] of [
    ['/v1/batch', [basicOf('nobody')]],
    ['/v1/b?writeKey=key-of-nobody', []],
  ] as const) {
    const head = [`POST ${target} HTTP/1.1`, 'Host: a', ...lines, 'Content-Length: 400000', '', '']
    const answer = await sendRaw(collector.port, head.join('\r\n'))
    assert.equal(answer?.status, 401)
    assert.match(answer.body, /write_key_unknown/)
  }
})

/** Needs: a write key. Bounded: the calls a second of its source; others are untouched. */
test('only a source that floods gets 429', async (t) => {
  const rate = 500
  const deployment = await deploy(t, { SOURCE_MAX_RATE: String(rate) })
  for (const id of ['noisy', 'shop']) await withSource(deployment, id)
  const collector = await startCollector(deployment)
  const batch = { batch: Array.from({ length: 100 }, () => ({ type: 'identify', userId: 'u' })) }
  const begin = performance.now()
  let isOn = true
  const flood = async () => {
    const limited = new Set<string>()
    while (isOn) {
      const { status, headers, text } = await post(collector, '/v1/batch', batch, headersOf('noisy'))
      if (status !== 200) limited.add(`${status} ${(JSON.parse(text) as { code: string }).code}`)
      if (status !== 200) assert.ok(Number(headers.get('retry-after')) >= 1)
    }
    return limited
  }
  const floods = Promise.all(Array.from({ length: 8 }, flood))
  const limited = (result: string) =>
    collectorSample(collector, `source="noisy",type="unknown",result="${result}"`)
  const { statuses } = await answersMeanwhile(collector, 'shop', () => limited('limited') < 500)
  isOn = false
  const refused = await floods
  // What was still on its way then is counted, too.
  const seconds = (performance.now() - begin) / 1_000
  assert.deepEqual(statuses, [200])
  for (const each of refused) assert.deepEqual([...each], ['429 rate_limited'])
  const taken = collectorSample(collector, 'source="noisy",type="identify",result="accepted"')
  // Its rate for as long as it lasted, its burst, and a batch that may go beyond it.
  assert.ok(taken <= rate * (seconds + 1) + 100, `${taken} calls in ${seconds} s`)
})

/** Needs: a write key. Bounded: what its holder can keep others of the source from, by calls that are not taken. */
test('invalid calls in gzip refuse nothing of another sender of the same source', async (t) => {
  // After one of them its sender waits for nine seconds: the next one comes earlier, however busy the machine is.
  const deployment = await deploy(t, { TRUSTED_PROXIES: '127.0.0.1/32', SOURCE_MAX_RATE: '1000' })
  await withSource(deployment)
  const collector = await startCollector(deployment)
  const from = (address: string) => ({ ...headersOf('shop'), 'x-forwarded-for': address })
  const bomb = gzipSync(`{"batch":[${'1,'.repeat(9_999)}1]}`)
  assert.ok(bomb.length < 200, `${bomb.length} bytes`)
  const attack = () => post(collector, '/v1/batch', bomb, from('198.51.100.1'))
  const statuses: number[] = []
  const attacks: number[] = []
  for (let n = 0; n < 188; n++) {
    if (n % 16 === 0) attacks.push((await attack()).status)
    statuses.push((await post(collector, '/v1/track', track(`h${n}`), from('198.51.100.2'))).status)
  }
  assert.equal(attacks.length, 12)
  assert.deepEqual([...new Set(statuses)], [200])
  // Nor do they cost nothing: their sender waits.
  assert.ok(attacks.includes(429), attacks.join())
})

/** Needs: nothing. Bounded: the part that one sender has of the memory for bodies whose key is not known yet. */
test('one sender of stalled bodies leaves memory for those of others whose key is in the body', async (t) => {
  const deployment = await deploy(t, { TRUSTED_PROXIES: '127.0.0.1/32' })
  await withSource(deployment)
  const collector = await startCollector(deployment)
  const sizes = [...fill(30, 440_000), ...fill(30, 20_000), ...fill(60, 1_000)]
  let cut = 0
  for (const size of sizes) {
    const socket = opened(t, collector.port)
    socket.on('close', () => cut++)
    socket.on('data', () => socket.destroy())
    const lines = ['POST /v1/batch HTTP/1.1', 'Host: a', 'X-Forwarded-For: 198.51.100.1']
    socket.write(
      `${[...lines, `Content-Length: ${size + 100}`, '', ''].join('\r\n')}{"batch":[${' '.repeat(size)}`,
    )
  }
  const overloaded = () => collectorSample(collector, 'source="unknown",type="unknown",result="overloaded"')
  await until(() => overloaded() > 0, 20_000, 'that nothing more of theirs fits')
  const statuses = new Set<number>()
  let sent = 0
  while (cut < sizes.length || sent === 0) {
    const inBody = { ...track(`b${sent++}`, { properties: { a: 'x'.repeat(30_000) } }), writeKey }
    statuses.add((await post(collector, '/v1/track', inBody, { 'x-forwarded-for': '198.51.100.2' })).status)
  }
  t.diagnostic(`${sent} calls meanwhile`)
  assert.deepEqual([...statuses], [200])
})

/** Needs: nothing. Bounded: what a body takes beyond its bytes, which are what is counted. */
test('bodies in chunks of a byte take no more memory than others', async (t) => {
  const deployment = await deploy(t)
  const collector = await startCollectorProcess(t, deployment)
  const before = collector.memory().peakMb
  const head = 'POST /v1/t HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n'
  const request = `${head}${'1\r\nx\r\n'.repeat(100_000)}0\r\n\r\n`
  const answers = await Promise.all(
    Array.from({ length: 4 }, () => sendRaw(collector.port, request, { withinMs: 60_000 })),
  )
  assert.deepEqual(
    answers.map((answer) => answer?.status),
    [400, 400, 400, 400],
  )
  const grownMb = collector.memory().peakMb - before
  t.diagnostic(`${grownMb} MB more than the ${before} MB before`)
  assert.ok(grownMb < 120, `${grownMb} MB`)
})

/** Needs: nothing. Bounded: heads, at what the documentation says. */
test('a pixel may carry 16 KB of data beside other headers, and a head beyond 24 KB is refused with its own code', async (t) => {
  const deployment = await deploy(t)
  await withSource(deployment)
  const collector = await startCollector(deployment)
  const call = JSON.stringify({ writeKey, userId: 'u', messageId: 'pixel', properties: { a: '' } })
  const sized = (bytes: number) => call.replace('"a":""', `"a":"${'x'.repeat(bytes - call.length)}"`)
  // 16,384 characters of base64.
  const max = Buffer.from(sized(12_288)).toString('base64url')
  assert.equal(max.length, 16 << 10)
  const cookie = `Cookie: ${'c'.repeat(7_000)}`
  const pixel = (data: string, lines: string[] = []) =>
    sendRaw(collector.port, rawRequest(`/v1/pixel/page?data=${data}`, lines, '', 'GET'))
  assert.equal((await pixel(max, [cookie]))?.status, 200)
  assert.equal((await pixel(Buffer.from(sized(12_300)).toString('base64url')))?.status, 413)
  const tooMuch = await pixel(max, [cookie, `X-More: ${'x'.repeat(2_000)}`])
  assert.equal(tooMuch?.status, 431)
  assert.match(tooMuch.body, /head_too_large/)
})
