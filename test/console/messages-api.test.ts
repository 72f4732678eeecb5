import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startCollector, writeKey } from '../support/calls/collectors.ts'
import { startConsole } from '../support/consoles.ts'
import { deploy } from '../support/deployment/deployment.ts'
import { runCommand, startCommand } from '../support/deployment/deployment-cli.ts'
import type { ShownMessage } from '../support/calls/messages.ts'
import { callsOfUsers } from '../support/replay/replays.ts'
import { startReceiver } from '../support/receivers.ts'
import { until } from '../support/until.ts'
import { temporaryFolder } from '../support/deployment/rig.ts'

interface Header {
  name: string
  value: string
}

interface KeptAttempts {
  responses: {
    destinationId: string
    urlId: string
    outcome: string
    status: number | null
    body: { text: string } | null
    headers: Header[]
    request: { method: string; url: string; headers: Header[]; bodyBytes: number }
  }[]
}

const valueIn = (headers: readonly Header[], wanted: string): string | undefined =>
  headers.find(({ name }) => name.toLowerCase() === wanted)?.value

test('the API and `why --json` show the same life of a collected call, and neither knows an unknown id', async (t) => {
  const deployment = await deploy(t, { STORE_PATH: await temporaryFolder(t) })
  const receiver = await startReceiver(t)
  receiver.answer({ status: 410 })
  await deployment.destination({ urls: [receiver.url] })
  const [collector, { call, ok }] = await Promise.all([startCollector(deployment), startConsole(deployment)])
  await deployment.forwarder()
  const messageId = 'order 7/ä'
  const response = await fetch(`${collector.url}/v1/track`, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa(`${writeKey}:`)}` },
    body: JSON.stringify({ userId: 'u-1', event: 'Ordered', messageId }),
  })
  assert.equal(response.status, 200)
  await receiver.waitFor(1, 30_000)
  await deployment.drained(40_000)

  const path = `/messages/${encodeURIComponent(messageId)}`
  const shown = (await ok(200, 'GET', path)) as unknown as ShownMessage
  const [copy] = shown.copies
  assert.equal(copy!.received.receivedBy, 'collector')
  assert.deepEqual(
    copy!.deliveries.map(({ state, reason }) => [state, reason]),
    [['dead_letter', 'gone']],
  )
  const lines = await call('GET', path, { headers: { accept: 'application/x-ndjson' } })
  assert.deepEqual((lines.body as unknown as { result?: ShownMessage }[]).at(-1)!.result, shown)

  const told = await runCommand(t, deployment, '', 'why', messageId, '--json')
  assert.deepEqual([told.status, told.stderr], [0, ''])
  assert.deepEqual(JSON.parse(told.stdout), shown)
  const page = await runCommand(t, deployment, '', 'why', messageId)
  assert.match(page.stdout, /received +by a collector; \S+analytics\.calls partition \d/)
  assert.match(page.stdout, /=> crm: dead letter \S+: gone; `postrider dead-letters show 0-0`/)

  const unknown = await call('GET', '/messages/none')
  assert.deepEqual([unknown.status, unknown.body.code], [404, 'not_found'])
  const none = await runCommand(t, deployment, '', 'why', 'none')
  assert.equal(none.status, 1)
  assert.match(none.stderr, /^postrider: nothing is known of messageId "none"[^\n]*\n$/)
  assert.equal((await runCommand(t, deployment, '', 'why')).status, 2)
})

test('a call that waits says why, by the API and by `why`: what its URL answered, and when it is tried next', async (t) => {
  const deployment = await deploy(t, { STORE_PATH: await temporaryFolder(t), RETRY_TIERS: '1h' })
  const receiver = await startReceiver(t)
  receiver.answer({ status: 500, headers: { 'x-request-id': 'r-7' }, body: '{"error": "locked"}' })
  await deployment.destination({ urls: [receiver.url] })
  const { ok } = await startConsole(deployment)
  const parts = startCommand(t, deployment, 'forwarder')
  await deployment.produce(callsOfUsers(1, 1, 'slow'))
  await receiver.waitFor(1, 30_000)
  await deployment.drained(40_000)
  // Its first heartbeats may say that it reads nothing yet, and before any was read nothing is known of it.
  const isReading = async () => {
    const { processes } = (await ok(200, 'GET', '/system')) as { processes: { partitions: object[] }[] }
    return processes.some(({ partitions }) => partitions.length > 0)
  }
  await until(isReading, 60_000, 'a heartbeat of the forwarder with its partitions')
  const waits = async () => {
    const { copies } = (await ok(200, 'GET', '/messages/slow0')) as unknown as ShownMessage
    return copies[0]!.deliveries[0]!.waits as { cause: string; status: number; nextAt: string; text: string }
  }
  const { cause, status, nextAt, text } = await waits()
  assert.deepEqual([cause, status], ['attempt_failed', 500])
  assert.ok(Date.parse(nextAt) > Date.now() + 3_000_000, nextAt)
  assert.ok(text.startsWith('Its URL answered 500 at ') && text.endsWith(`; next try ${nextAt}.`), text)
  assert.ok((await runCommand(t, deployment, '', 'why', 'slow0')).stdout.includes(`\n   ${text}\n`))
  const answers = (await ok(200, 'GET', '/messages/slow0/responses')) as unknown as KeptAttempts
  assert.deepEqual(
    answers.responses.map((each) => [each.destinationId, each.urlId, each.outcome, each.status, each.body]),
    [['crm', 'u1', 'status_5xx', 500, { text: '{"error": "locked"}' }]],
  )
  const { request, headers } = answers.responses[0]!
  const [sent] = receiver.requests
  assert.deepEqual(
    [request.method, request.url, request.bodyBytes],
    ['POST', receiver.url, sent!.body.length],
  )
  assert.equal(valueIn(request.headers, 'idempotency-key'), sent!.headers['idempotency-key'])
  assert.equal(valueIn(request.headers, 'x-signature'), '[not shown]')
  assert.equal(valueIn(headers, 'x-request-id'), 'r-7')
  parts.process.kill('SIGTERM')
  await parts.ended
  // At once by its last heartbeat. A stop waits two seconds for Kafka to take that: without it, once three are missing.
  const isGone = async () => (await waits()).text === 'No forwarder is running: nothing is sent.'
  await until(isGone, 60_000, 'that no forwarder is running')
})

test('with LEDGER=all what a success answered is shown, to operators, until its user is deleted', async (t) => {
  const deployment = await deploy(t, { STORE_PATH: await temporaryFolder(t), LEDGER: 'all' })
  const receiver = await startReceiver(t)
  receiver.answer({ status: 202, headers: { 'x-request-id': 'r-8' }, body: 'taken' })
  await deployment.destination({ urls: [receiver.url] })
  const console = await startConsole(deployment)
  await deployment.forwarder()
  const [call] = callsOfUsers(1, 1, 'taken')
  await deployment.produce([call!])
  await receiver.waitFor(1, 30_000)
  await deployment.drained(40_000)
  const path = '/messages/taken0/responses'
  const { responses } = (await console.ok(200, 'GET', path)) as unknown as KeptAttempts
  assert.deepEqual(
    responses.map((each) => [each.destinationId, each.urlId, each.outcome, each.status, each.body]),
    [['crm', 'u1', 'success', 202, { text: 'taken' }]],
  )
  assert.equal(responses[0]!.request.url, receiver.url)
  assert.equal(valueIn(responses[0]!.headers, 'x-request-id'), 'r-8')
  const { token } = await console.ok(201, 'POST', '/tokens', { id: 'eyes', role: 'reader' })
  const headers = { authorization: `Bearer ${String(token)}` }
  assert.equal((await console.call('GET', path, { headers })).status, 403)
  await console.ok(201, 'POST', '/deletions', { userIds: [call!.userId] })
  assert.equal((await console.call('GET', path)).status, 404)
})

test('what a call says is shown as it was sent, to operators; not to readers, and not once it is erased', async (t) => {
  const deployment = await deploy(t)
  await deployment.destination({ urls: ['http://127.0.0.1:9/'] })
  const properties = '{"big":9007199254740993,"price":3.50}'
  const [call] = callsOfUsers(1, 1, 'exact')
  // In one batch, and so at one time.
  await deployment.produce([
    { ...call!, properties },
    { ...call!, properties: '{"copy":2}' },
  ])
  const console = await startConsole(deployment)
  const newest = await console.ok(200, 'GET', '/messages/exact0/body')
  assert.match(String(newest.text), /"properties":\{"copy":2\}/)
  const shown = await console.ok(200, 'GET', '/messages/exact0')
  const [first] = shown.copies as { received: { partition: number; offset: number } }[]
  const { partition, offset } = first!.received
  const place = `partition=${partition}&offset=${offset}`
  const body = await console.ok(200, 'GET', `/messages/exact0/body?${place}`)
  assert.ok(String(body.text).includes(`"properties":${properties}`), String(body.text))
  assert.equal((await console.call('GET', '/messages/none/body')).status, 404)
  assert.equal((await console.call('GET', `/messages/exact0/body?partition=${partition}`)).status, 400)
  const asked = { messageIds: ['exact0', 'exact0', 'none'] }
  const { event, userId, anonymousId } = call!
  assert.deepEqual((await console.ok(200, 'POST', '/messages/calls', asked)).data, [
    { messageId: 'exact0', type: 'track', event, name: null, userId, anonymousId },
  ])
  const { token } = await console.ok(201, 'POST', '/tokens', { id: 'eyes', role: 'reader' })
  const headers = { authorization: `Bearer ${String(token)}` }
  assert.equal((await console.call('GET', '/messages/exact0/body', { headers })).status, 403)
  assert.equal((await console.call('POST', '/messages/calls', { headers, json: asked })).status, 403)
  await console.ok(201, 'POST', '/deletions', { userIds: [call!.userId] })
  const erased = await console.call('GET', '/messages/exact0/body')
  assert.deepEqual([erased.status, erased.body.code], [404, 'not_found'])
  assert.match(String(erased.body.message), /a deletion request covers the call/)
  assert.deepEqual((await console.ok(200, 'POST', '/messages/calls', asked)).data, [])
})
