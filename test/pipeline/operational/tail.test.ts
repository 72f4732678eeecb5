import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { post, startCollector, track } from '../../support/calls/collectors.ts'
import { adminToken, startConsole, type RunningConsole } from '../../support/consoles.ts'
import { deploy } from '../../support/deployment/deployment.ts'
import { startCommand } from '../../support/deployment/deployment-cli.ts'
import { someCall } from '../../support/calls/calls.ts'
import { startReceiver } from '../../support/receivers.ts'
import { until } from '../../support/until.ts'

interface TailedLine {
  call?: { messageId: string; type: string; userId?: string; properties?: unknown }
  sampled?: { leftOut: number }
  dropped?: { leftOut: number }
  error?: { code: string }
}

/** A tail over HTTP, with the lines that came so far. */
async function openTail(t: TestContext, { url }: RunningConsole, path: string, token = adminToken) {
  const stop = new AbortController()
  t.after(() => stop.abort())
  const response = await fetch(`${url}/api/v1${path}`, {
    headers: { authorization: `Bearer ${token}` },
    signal: stop.signal,
  })
  const lines: TailedLine[] = []
  const read = async () => {
    let text = ''
    for await (const chunk of response.body!) {
      text += Buffer.from(chunk as Uint8Array).toString()
      const whole = text.split('\n')
      text = whole.pop()!
      for (const line of whole) lines.push(JSON.parse(line) as TailedLine)
    }
  }
  const ended = response.ok ? read().catch(() => {}) : Promise.resolve()
  const ids = () => lines.flatMap(({ call }) => (call ? [call.messageId] : []))
  return { response, lines, ids, ended, leave: () => stop.abort() }
}

test('a tail shows calls of its source as they come in, by its filters, until the console stops', async (t) => {
  const deployment = await deploy(t)
  await deployment.destination({ urls: [(await startReceiver(t)).url] })
  const [collector, console] = await Promise.all([startCollector(deployment), startConsole(deployment)])
  const documented = console.call('GET', '/sources/shop/tail')
  const [all, some] = await Promise.all([
    openTail(t, console, '/sources/shop/tail'),
    openTail(t, console, '/sources/shop/tail?type=track&type=page&event=Paid&user=u-1&user=a-1'),
  ])
  assert.deepEqual([all.response.status, some.response.status], [200, 200])
  await post(collector, '/v1/batch', { batch: [track('first')] })
  await until(() => all.ids().includes('first'), 20_000)
  const paid = { type: 'track', event: 'Paid', properties: { total: 5 } }
  const batch = [
    { ...paid, userId: 'u-1', messageId: 'by-user' },
    { ...paid, anonymousId: 'a-1', messageId: 'by-anonymous' },
    { ...paid, userId: 'u-2', messageId: 'other-user' },
    { ...paid, event: 'Ordered', userId: 'u-1', messageId: 'other-event' },
    { type: 'identify', userId: 'u-1', messageId: 'other-type' },
  ]
  assert.equal((await post(collector, '/v1/batch', { batch })).status, 200)
  await until(() => all.ids().length === 6, 20_000)
  await until(() => some.ids().length === 2, 20_000)
  assert.deepEqual(some.ids().sort(), ['by-anonymous', 'by-user'])
  assert.deepEqual(all.lines.find(({ call }) => call?.messageId === 'by-user')!.call!.properties, {
    total: 5,
  })

  const wrong = await console.call('GET', '/sources/shop/tail?type=nonsense&limit=1')
  assert.equal(wrong.status, 400)
  assert.match(wrong.text, /type\.0.*limit/)
  assert.equal((await console.call('GET', '/sources/none/tail')).status, 404)
  await console.stop()
  await Promise.all([all.ended, some.ended])
  // Every line is one that the OpenAPI document promises: `call` has checked that.
  const answer = await documented
  assert.equal((answer.body as unknown as TailedLine[]).filter(({ call }) => call).length, 6)
})

test('a flood is sampled, a tail that nobody reads slows neither collector nor others, and there are at most twenty', async (t) => {
  const deployment = await deploy(t)
  await deployment.destination({ urls: [(await startReceiver(t)).url] })
  const [collector, console] = await Promise.all([startCollector(deployment), startConsole(deployment)])
  const read = await openTail(t, console, '/sources/shop/tail')
  // Their answers are never read.
  const unread = Array.from({ length: 19 }, () =>
    fetch(`${console.url}/api/v1/sources/shop/tail`, { headers: { authorization: `Bearer ${adminToken}` } }),
  )
  const responses = await Promise.all(unread)
  t.after(() => Promise.all(responses.map(({ body }) => body!.cancel())))
  const tooMany = await console.call('GET', '/sources/shop/tail')
  assert.deepEqual([tooMany.status, tooMany.body.code], [429, 'busy'])
  await post(collector, '/v1/batch', { batch: [track('first')] })
  await until(() => read.ids().includes('first'), 20_000)
  await deployment.produce(
    Array.from({ length: 2_000 }, (_, index) =>
      someCall({
        messageId: `m${index}`,
        userId: `u${index}`,
        properties: JSON.stringify({ text: 'x'.repeat(500) }),
      }),
    ),
  )
  assert.equal((await post(collector, '/v1/batch', { batch: [track('meanwhile')] })).status, 200)
  const leftOut = () => read.lines.reduce((sum, { sampled }) => sum + (sampled?.leftOut ?? 0), 0)
  await until(() => read.ids().length + leftOut() === 2_002, 20_000, 'every call shown or counted')
  assert.ok(leftOut() > 1_000, `${leftOut()} were left out`)
})

test('a tail takes the role operator, and ends when its token is revoked', async (t) => {
  const deployment = await deploy(t)
  await deployment.destination({ urls: [(await startReceiver(t)).url] })
  const console = await startConsole(deployment)
  const tokenOf = async (role: string) =>
    String((await console.ok(201, 'POST', '/tokens', { id: role, role })).token)
  const [reader, operator] = [await tokenOf('reader'), await tokenOf('operator')]
  const path = '/sources/shop/tail'
  assert.equal((await openTail(t, console, path, reader)).response.status, 403)
  const [theirs, other] = [await openTail(t, console, path, operator), await openTail(t, console, path)]
  await console.ok(200, 'POST', '/tokens/operator/revoke')
  await theirs.ended
  assert.deepEqual(
    theirs.lines.map(({ error }) => error?.code),
    ['unauthorized'],
  )
  await deployment.produce([someCall({ messageId: 'later' })])
  await until(() => other.ids().includes('later'), 20_000)
  assert.deepEqual(theirs.ids(), [])
})

test('`postrider tail` prints a line a call until it is stopped', async (t) => {
  const deployment = await deploy(t)
  await deployment.destination({ urls: [(await startReceiver(t)).url] })
  const { process: child, ended } = startCommand(
    t,
    deployment,
    'tail',
    'shop',
    '--types',
    'track,page',
    '--events',
    'Paid',
  )
  let [output, errors] = ['', '']
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()))
  await until(() => errors.includes('waiting for calls of shop…\n'), 30_000, 'the tail to begin')
  const call = { type: 'track', userId: 'u-1\u001b[2J', receivedAt: 1_700_000_000_123 } as const
  await deployment.produce([
    someCall({ ...call, event: 'Ordered', messageId: 'a' }),
    someCall({ ...call, event: 'Paid', properties: '{"total":30}', messageId: 'b' }),
  ])
  await until(() => output.endsWith('\n'), 20_000, 'a line')
  assert.equal(output, '22:13:20.123  track     u-1?[2J  Paid  {"total":30}  b\n')
  child.kill('SIGINT')
  assert.equal((await ended).status, 0)
  const wrong = startCommand(t, deployment, 'tail', 'shop', '--types', 'nonsense')
  assert.equal((await wrong.ended).status, 2)
})
