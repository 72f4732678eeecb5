// Life and death of the client. What concerns a whole process runs in one of its own.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { AnalyticsError } from '../../src/client/index.ts'
import { clientOf, trackSome } from '../support/calls/clients.ts'
import { collectorDouble, writeKey } from '../support/calls/collector-double.ts'
import { until } from '../support/until.ts'

const entry = new URL('../../src/client/index.ts', import.meta.url).href
const never = 2 ** 31 - 1

test('close delivers queued calls', async (t) => {
  const collector = await collectorDouble(t)
  const client = clientOf(t, collector, { flushAfter: never })
  const ids = trackSome(client, 7)
  assert.deepEqual(await client.close(), { undelivered: [] })
  assert.deepEqual([...collector.taken.keys()], ids)
})

test('close resolves before the first call, when called twice, and after everything else', async (t) => {
  const client = clientOf(t, { url: 'http://127.0.0.1:1' })
  const [first, second] = await Promise.all([client.close(), client.close()])
  assert.deepEqual(first, { undelivered: [] })
  assert.equal(second, first)
  assert.equal(await client.close(), first)
  await client.flush()
  await client.ready()
})

test('close during a flush waits for it, and for later calls', async (t) => {
  const collector = await collectorDouble(t)
  let release = () => {}
  collector.answer({ after: new Promise<void>((resolve) => (release = resolve)) })
  const client = clientOf(t, collector, { flushAfter: never })
  trackSome(client, 20)
  const order: string[] = []
  const flushing = client.flush().then(() => order.push('flush'))
  await collector.received(1)
  trackSome(client, 5, 20)
  const closing = client.close().then(() => order.push('close'))
  release()
  await Promise.all([flushing, closing])
  assert.deepEqual(order, ['flush', 'close'])
  assert.equal(collector.taken.size, 25)
})

test('a call after close is rejected, also for callers that waited for space', async (t) => {
  const collector = await collectorDouble(t)
  collector.always = 'hang'
  const client = clientOf(t, collector, { maxQueued: 20 })
  trackSome(client, 20)
  const ready = client.ready()
  const closing = client.close({ timeout: 50 })
  await ready
  assert.throws(
    () => trackSome(client, 1),
    (error: unknown) => error instanceof AnalyticsError && error.code === 'closed',
  )
  await closing
})

test('close ends at its deadline and reports the undelivered calls, as onError does', async (t) => {
  const collector = await collectorDouble(t)
  collector.always = { status: 503 }
  const client = clientOf(t, collector, { retries: Infinity, flushAfter: never })
  const ids = trackSome(client, 20)
  await collector.received(1)
  ids.push(...trackSome(client, 5, 20))
  const begin = performance.now()
  const { undelivered } = await client.close({ timeout: 200 })
  const took = performance.now() - begin
  assert.ok(took >= 195 && took < 10_000, `${took} ms`)
  assert.deepEqual(
    undelivered.map(({ messageId }) => messageId),
    ids,
  )
  assert.deepEqual(client.named(), ids)
  assert.ok(client.failures.every(({ code }) => code === 'close_deadline'))
})

test('close aborts a request that hangs and a wait that Retry-After requested', async (t) => {
  for (const answer of ['hang', { status: 429, headers: { 'Retry-After': '3600' } }] as const) {
    const collector = await collectorDouble(t)
    collector.always = answer
    const client = clientOf(t, collector)
    const ids = trackSome(client, 20)
    await collector.received(1)
    const { undelivered } = await client.close({ timeout: 50 })
    assert.equal(undelivered.length, ids.length)
    await until(async () => (await collector.connections()) === 0, 10_000, 'the end of the connection')
  }
})

test('close resolves even if the transport never does', async (t) => {
  const hangs = () => new Promise<never>(() => {})
  const client = clientOf(
    t,
    { url: '' },
    { endpoint: undefined, transport: { name: 'own', send: hangs, close: hangs } },
  )
  trackSome(client, 3)
  const { undelivered } = await client.close({ timeout: 50 })
  assert.equal(undelivered.length, 3)
})

test('the process ends as soon as close resolves', async (t) => {
  const collector = await collectorDouble(t)
  const { code, lines, afterLastLineMs } = await run(
    `const client = new Analytics(key, { endpoint })
     client.track({ userId: 'u-1', event: 'E' })
     await client.flush()
     client.track({ userId: 'u-1', event: 'E' })
     console.log(JSON.stringify(await client.close()))`,
    collector.url,
  )
  assert.deepEqual([code, lines], [0, ['{"undelivered":[]}']])
  assert.equal(collector.taken.size, 2)
  assert.ok(afterLastLineMs < 10_000, `${afterLastLineMs} ms`)
})

test('a process that never calls close delivers its calls and then ends', async (t) => {
  const collector = await collectorDouble(t)
  const { code, lines } = await run(
    `const client = new Analytics(key, { endpoint, flushAfter: 300 })
     client.track({ userId: 'u-1', event: 'E' })`,
    collector.url,
  )
  assert.deepEqual([code, lines], [0, []])
  assert.equal(collector.taken.size, 1)
})

test('an idle client keeps no process alive, before its first call or after its last', async (t) => {
  const collector = await collectorDouble(t)
  const { code, lines } = await run(
    `new Analytics(key, { endpoint })
     const client = new Analytics(key, { endpoint, flushAfter: 60_000 })
     client.track({ userId: 'u-1', event: 'E' })
     await client.flush()
     const handles = process.getActiveResourcesInfo().filter((name) => name === 'Timeout')
     console.log(handles.length)`,
    collector.url,
  )
  // Ended at all, although the collector keeps its connection open for seconds more.
  assert.deepEqual([code, lines], [0, ['0']])
})

test('promises that are not awaited never end the process, whatever the collector does', async (t) => {
  const collector = await collectorDouble(t)
  collector.answer({ status: 500 }, 'reset', 'hang', { status: 401 }, { status: 400, body: 'garbage' })
  const { code, lines } = await run(
    `process.on('unhandledRejection', (error) => { console.log('unhandled', error); process.exitCode = 7 })
     const clients = [endpoint, 'http://127.0.0.1:1', 'http://nowhere.invalid'].map((endpoint) =>
       new Analytics(key, { endpoint, timeout: 100, retries: 2, initialBackoff: 1, onError: async () => { throw 1 } }))
     console.error = () => {}
     for (const client of clients) {
       for (let call = 0; call < 100; call++) client.track({ userId: 'u-1', event: 'E' })
       client.flush(); client.ready(); client.close({ timeout: 500 }); client.close(); client.flush(); client.ready()
     }`,
    collector.url,
  )
  assert.deepEqual([code, lines], [0, []])
})

test('DEBUG=analytics writes the fate of each call to stderr, and never the write key', async (t) => {
  const collector = await collectorDouble(t)
  collector.answer({ status: 503, body: JSON.stringify({ code: 'c', message: `key ${writeKey}` }) })
  const code = `const client = new Analytics(key, { endpoint, initialBackoff: 1 })
     client.track({ userId: 'u-1', event: 'E', messageId: 'm-1', properties: { password: 'hidden' } })
     await client.close()`
  for (const [variable, isOn] of [
    ['analytics', true],
    ['express:*, analytics', true],
    ['*', true],
    ['analytics-other', false],
    ['', false],
  ] as const) {
    const { code: exit, stderr } = await run(code, collector.url, { DEBUG: variable })
    assert.equal(exit, 0)
    assert.equal(/took track m-1, \d+ bytes/.test(stderr), isOn, variable)
    assert.equal(/1 call to http:\/\/127.0.0.1:\d+\/v1\/batch: accepted/.test(stderr), isOn)
    assert.ok(!stderr.includes(writeKey) && !stderr.includes('hidden'))
  }
})

test('DEBUG=analytics names the fields of a call that are not sent, and no values', async (t) => {
  const collector = await collectorDouble(t)
  const { stderr } = await run(
    `const client = new Analytics(key, { endpoint })
     client.track({ userId: 'u-1', event: 'E', messageId: 'm-1', traits: { a: 'hidden' }, ['x\\n'.repeat(50)]: 'hidden' })
     await client.close()`,
    collector.url,
    { DEBUG: 'analytics' },
  )
  assert.match(stderr, /took track m-1, \d+ bytes; unknown fields, not sent: "traits", "x\\n[^"]{10,80}"\n/)
  assert.ok(!stderr.includes('hidden'))
})

/** Runs a program that has `Analytics`, `key` and `endpoint`. */
function run(
  code: string,
  endpoint: string,
  env: Record<string, string> = {},
): Promise<{ code: number | null; lines: string[]; stderr: string; afterLastLineMs: number }> {
  const program = `import { Analytics } from ${JSON.stringify(entry)}
const [key, endpoint] = ${JSON.stringify([writeKey, endpoint])}
${code}`
  return new Promise((resolve) => {
    let lastLineAt = performance.now()
    const child = execFile(
      process.execPath,
      ['--input-type=module', '--eval', program],
      { timeout: 20_000, env: { ...process.env, DEBUG: '', ...env } },
      (_error, stdout, stderr) =>
        resolve({
          code: child.exitCode,
          lines: stdout.split('\n').filter(Boolean),
          stderr,
          afterLastLineMs: performance.now() - lastLineAt,
        }),
    )
    child.stdout!.on('data', () => (lastLineAt = performance.now()))
  })
}
