import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { test, type TestContext } from 'node:test'
import type { Outcome } from '../../../src/core/delivery/outcome.ts'
import type { EndpointClient, WebhookTarget } from '../../../src/forwarder/send/webhook-transport.ts'
import { openTransport } from '../../adapters/webhook/transport-under-test.ts'
import { temporaryFolder } from '../../support/deployment/rig.ts'
import { until } from '../../support/until.ts'
import { destinations } from './destinations.ts'
import { propertiesOf, userOf } from './load.ts'
import { outages } from './outages.ts'
import { startReceivers } from './receivers.ts'
import { tokenClient } from './token-endpoint.ts'

const callOf = (seq: number, { user = seq, properties = seq } = {}) =>
  JSON.stringify({
    ...{ type: 'track', userId: userOf(user, 'odd'), messageId: `m${seq}`, items: [{ n: 1 }, { n: 2 }] },
    properties: propertiesOf(properties),
  })

/** The receivers of a run, and a sender's way to one of them. */
async function receiver(t: TestContext, id: string) {
  const receivers = await startReceivers({ seed: 1, patience: 1 }, await temporaryFolder(t))
  t.after(() => receivers.close())
  const plan = destinations.find((each) => each.id === id)!
  receivers.setSecrets(id, ['s3cret'])
  const { proxy, oauthTokenUrl: tokenUrl } = receivers.wayTo(plan)
  const transport = openTransport(t)
  const opened = (more: Partial<WebhookTarget>) =>
    transport.open({
      url: receivers.urls(plan)[0]!,
      headers: { 'x-faults-sent-at': `${Date.now()}/1` },
      ...more,
    })
  const oauth = tokenUrl && {
    ...{ owner: id, tokenUrl, clientId: tokenClient.id, clientSecret: tokenClient.secret },
    ...{ clientAuth: 'client_secret_basic' as const, scope: null, audience: null },
  }
  const endpoint = opened({ ...(proxy !== undefined && { proxy }), ...(oauth && { oauth }) })
  /** Answer, fault and id of each call that it noted. */
  const noted = async () => {
    await receivers.finish()
    const lines = (await readFile(receivers.file, 'utf8')).trim().split('\n')
    return lines.map((line) => line.split(' ')).map(([, , , , answer, , fault, its]) => [answer, fault, its])
  }
  return { receivers, opened, endpoint, noted }
}

function send(endpoint: EndpointClient, text: string, key: string): Promise<Outcome> {
  const body = Buffer.from(text)
  const signature = createHmac('sha1', 's3cret').update(body).digest('hex')
  return new Promise((resolve) =>
    endpoint.send({ body, signature, idempotencyKey: key }, { onOutcome: resolve, sendAgain: () => true }),
  )
}

const sendCall = (endpoint: EndpointClient, seq: number, id: string) =>
  send(endpoint, callOf(seq), `m${seq}:${id}`)

test('while a token endpoint is away no token is worth anything, however it is away; then there is a new one', async (t) => {
  const { receivers, opened, endpoint, noted } = await receiver(t, 'login')
  assert.equal((await sendCall(endpoint, 1, 'login')).kind, 'success')
  for (const outage of outages) {
    receivers.become('token endpoint', outage)
    await until(async () => (await sendCall(endpoint, 2, 'login')).kind === 'no_token')
    receivers.become('token endpoint', null)
    await until(async () => (await sendCall(endpoint, 3, 'login')).kind === 'success', 20_000)
  }
  const forged = opened({ headers: { authorization: 'Bearer made-up', 'x-faults-sent-at': '1/1' } })
  assert.equal((await sendCall(forged, 4, 'login')).status, 401)
  assert.equal((await sendCall(opened({}), 5, 'login')).status, 401)
  const wrong = (await noted()).filter(([, fault]) => fault !== '-')
  assert.deepEqual(wrong, [
    ['status401', 'unknown-token', 'm4:login'],
    ['status401', 'no-token', 'm5:login'],
  ])
})

test('while a proxy is away nothing comes through it, and what comes past it is a wrong request', async (t) => {
  const { receivers, opened, endpoint, noted } = await receiver(t, 'proxied')
  assert.equal((await sendCall(endpoint, 1, 'proxied')).kind, 'success')
  for (const outage of outages) {
    receivers.become('proxy', outage)
    await until(async () => (await sendCall(endpoint, 2, 'proxied')).kind === 'proxy', 20_000)
    receivers.become('proxy', null)
    await until(async () => (await sendCall(endpoint, 3, 'proxied')).kind === 'success', 20_000)
  }
  assert.equal((await sendCall(opened({}), 4, 'proxied')).kind, 'success')
  const wrong = (await noted()).filter(([, fault]) => fault !== '-')
  assert.deepEqual(wrong, [['ok', 'not-through-the-proxy', 'm4:proxied']])
})

test('of a batch that is cut before it was read the calls that were are noted, and none of them is taken', async (t) => {
  const { endpoint, noted } = await receiver(t, 'batched-cut')
  const [size, batches] = [6, 60]
  const kinds: string[] = []
  for (let first = 0; first < size * batches; first += size) {
    const calls = Array.from({ length: size }, (_, index) => callOf(first + index))
    kinds.push((await send(endpoint, `[${calls.join()}]`, 'a'.repeat(32))).kind)
  }
  const lines = await noted()
  assert.ok(lines.every(([, fault]) => fault === '-'))
  const ids = (answer: string) => lines.filter((line) => line[0] === answer).map(([, , id]) => id)
  const failed = kinds.filter((kind) => kind === 'network').length
  assert.equal(ids('ok').length, kinds.filter((kind) => kind === 'success').length * size)
  assert.ok(failed > 3, `${failed} cut`)
  // One that was cut is sent once more on another connection, as any that was ended.
  assert.ok(ids('cutRequest').length > 0 && ids('cutAnswer').length > 0)
  assert.ok(ids('cutRequest').every((id) => Number(id!.slice(1, id!.indexOf(':'))) % size < size / 2))
})

test('a request with the body, the user or the properties of another call is a wrong one, also within a batch', async (t) => {
  const alone = await receiver(t, 'steady')
  const batched = await receiver(t, 'batched-picky')
  const bodies = [callOf(1), callOf(2), callOf(1, { user: 2 }), callOf(1, { properties: 2 })]
  for (const body of bodies) {
    assert.equal((await send(alone.endpoint, body, 'm1:steady')).kind, 'success')
    await send(batched.endpoint, `[${callOf(4)},${body}]`, 'a'.repeat(32))
  }
  const faults = async ({ noted }: typeof alone) => (await noted()).map(([, fault]) => fault)
  assert.deepEqual(await faults(alone), ['-', 'another-body', 'another-user', 'other-properties'])
  // A batch names no call but in its bodies.
  const each = ['-', '-', 'another-user', 'other-properties']
  assert.deepEqual(
    await faults(batched),
    each.flatMap((fault) => [fault, fault]),
  )
})
