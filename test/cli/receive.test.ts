import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test, type TestContext } from 'node:test'
import { startReceiver, verifySignature, webhookLine, type ReceivedWebhook } from '../../src/cli/receive.ts'
import { bareEnv } from '../support/deployment/bare-env.ts'
import { startProgram } from '../support/deployment/command-rig.ts'
import { runHere } from '../support/deployment/program-here.ts'

const track = JSON.stringify({
  version: 1,
  type: 'track',
  userId: 'u1',
  timestamp: '2026-01-01T00:00:00.000Z',
  event: 'Order Completed',
  properties: {},
  context: {},
  messageId: 'm1',
})
const hmac = (secret: string, body: string) => createHmac('sha1', secret).update(body).digest('hex')

function post(url: string, body: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(url, { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } })
}

test('a signature is verified over the bytes, and no other signature passes', () => {
  // From `openssl dgst -sha1 -hmac key` over the pangram.
  const pangram = Buffer.from('The quick brown fox jumps over the lazy dog')
  const known = 'de7c9b85b8b78aa6bc8a7a36f70a90701c9db4d9'
  assert.equal(verifySignature(pangram, known, 'key'), 'verified')
  assert.equal(verifySignature(pangram, known.toUpperCase(), 'key'), 'wrong')
  assert.equal(verifySignature(pangram, known.slice(1), 'key'), 'wrong')
  assert.equal(verifySignature(pangram, 'ü'.repeat(20), 'key'), 'wrong')
  assert.equal(verifySignature(pangram, known, 'other'), 'wrong')
  assert.equal(verifySignature(pangram.subarray(1), known, 'key'), 'wrong')
  assert.equal(verifySignature(pangram, '', 'key'), 'wrong')
  assert.equal(verifySignature(pangram, undefined, 'key'), 'absent')
  assert.equal(verifySignature(pangram, known, null), 'unchecked')
})

async function receiver(
  t: TestContext,
  options: { secret?: string; status?: number; delayMs?: number } = {},
) {
  const seen: ReceivedWebhook[] = []
  const running = await startReceiver({
    port: 0,
    secret: null,
    ...options,
    onRequest: (webhook) => seen.push(webhook),
  })
  t.after(() => running.close())
  return { ...running, seen }
}

test('the receiver prints each request and whether its signature is right', async (t) => {
  const { url, seen } = await receiver(t, { secret: 'geheim' })
  const response = await post(`${url}hook?x=1`, track, {
    'x-signature': hmac('geheim', track),
    'idempotency-key': 'm1:crm',
  })
  assert.equal(response.status, 200)
  await post(url, track, { 'x-signature': hmac('falsch', track) })
  await post(url, track)
  await post(url, 'no JSON\u001b[2J')
  assert.deepEqual(
    { ...seen[0], at: 0 },
    {
      at: 0,
      method: 'POST',
      path: '/hook?x=1',
      type: 'track',
      userId: 'u1',
      event: 'Order Completed',
      messageId: 'm1',
      deliveryId: 'm1:crm',
      signature: 'verified',
      status: 200,
      calls: null,
      bytes: track.length,
    },
  )
  assert.deepEqual(
    seen.map(({ signature }) => signature),
    ['verified', 'wrong', 'absent', 'absent'],
  )
  assert.match(
    webhookLine(seen[0]!),
    /^\d\d:\d\d:\d\d\.\d{3} {2}\/hook\?x=1 {2}track {2}u1 {2}Order Completed {2}m1 {2}signature verified$/,
  )
  assert.match(webhookLine(seen[3]!), /no call \(11 bytes\) {2}signature absent$/)
})

test('a batch is said to be one, with the number of its calls', async (t) => {
  const { url, seen } = await receiver(t)
  await post(url, `[${track},${track},{}]`)
  await fetch(url, {
    method: 'POST',
    body: `${track}\n${track}\n`,
    headers: { 'content-type': 'application/x-ndjson' },
  })
  assert.deepEqual(
    seen.map(({ calls }) => calls),
    [3, 2],
  )
  assert.match(webhookLine(seen[0]!), / {2}batch of 3 {2}signature /)
})

test('a body cannot move the cursor of the terminal', async (t) => {
  const { url, seen } = await receiver(t)
  await post(url, JSON.stringify({ type: 'track', event: 'a\u001b[2J\nb', userId: 'u' }))
  assert.match(webhookLine(seen[0]!), / a\?\[2J\?b /)
})

test('the receiver answers with the given status after the given delay', async (t) => {
  const { url, seen } = await receiver(t, { status: 503, delayMs: 100 })
  const before = performance.now()
  const response = await post(url, track)
  assert.equal(response.status, 503)
  assert.ok(performance.now() - before >= 99)
  assert.match(webhookLine(seen[0]!), /signature absent, answered 503$/)
})

test('the receiver refuses a body that is far too large, and goes on', async (t) => {
  const { url, seen } = await receiver(t)
  assert.equal((await post(url, 'x'.repeat(9 * 1024 * 1024))).status, 413)
  assert.equal((await post(url, track)).status, 200)
  assert.deepEqual(
    seen.map(({ status, type }) => [status, type]),
    [
      [413, null],
      [200, 'track'],
    ],
  )
})

test('a port that is in use is reported', async (t) => {
  const { url } = await receiver(t)
  const port = Number(new URL(url).port)
  await assert.rejects(startReceiver({ port, secret: null, onRequest() {} }), {
    code: 'local',
    message: `port ${port} of 127.0.0.1 is taken: give another one`,
  })
})

test('`postrider receive` prints one JSON line per request and ends cleanly on SIGTERM', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'postrider-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const secretFile = join(folder, 'secret')
  await writeFile(secretFile, 'geheim\n')
  const args = ['--port', '0', '--secret-file', secretFile, '--json', '--status', '202']
  const { process: child } = startProgram(t, bareEnv, ['receive', ...args])
  const exited = once(child, 'exit')
  const [said] = (await once(createInterface(child.stderr), 'line')) as [string]
  const url = /http:\/\/127\.0\.0\.1:\d+\//.exec(said)?.[0]
  assert.ok(url, said)
  const line = once(createInterface(child.stdout), 'line')
  assert.equal((await post(url, track, { 'x-signature': hmac('geheim', track) })).status, 202)
  const received = JSON.parse(String((await line)[0])) as ReceivedWebhook
  assert.equal(received.signature, 'verified')
  assert.equal(received.messageId, 'm1')
  child.kill('SIGTERM')
  assert.deepEqual(await exited, [0, null])
})

for (const [args, message] of [
  [['--port', 'http'], /--port: 'http' is not a whole number from 0 to 65535/],
  [['--status', '100'], /--status: '100' is not a whole number from 200 to 599/],
  [['--delay', 'long'], /--delay: 'long' is not a duration/],
  [['--secret-file', '/does/not/exist'], /--secret-file: cannot read it: ENOENT/],
  [['--secret', 'hush', '--secret-file', 'f'], /cannot be used with option/],
] satisfies [string[], RegExp][]) {
  test(`\`postrider receive ${args.join(' ')}\` is refused in one line`, async (t) => {
    const { status, stderr } = await runHere(t, ['receive', ...args], { env: {} })
    assert.equal(status, 2)
    assert.match(stderr, message)
    assert.equal(stderr.trim().split('\n').length, 1)
    assert.doesNotMatch(stderr, /hush/)
  })
}
