import assert from 'node:assert/strict'
import type { LookupAddress } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { test } from 'node:test'
import { createAuthority, selfSigned } from '../../support/secured/certificates.ts'
import { someCall } from '../../support/calls/calls.ts'
import { deploy, logged } from '../../support/deployment/deployment.ts'
import { until } from '../../support/until.ts'
import { startReceiver } from '../../support/receivers.ts'
import { connect, counted, deadLetterOf, dispositions, sampleOf } from '../../support/calls/samples.ts'

const secret = 's3cret'

test('outcomes of attempts', async (t) => {
  const authority = await createAuthority(t)
  /** What each host name resolves to, one answer a look-up; the last one goes on for ever. */
  const names = new Map<string, LookupAddress[][]>()
  const lookup: LookupFunction = (hostname, _options, callback) => {
    const answers = names.get(hostname) ?? []
    const answer = answers.length > 1 ? answers.shift()! : answers[0]
    setImmediate(() => {
      if (answer) callback(null, answer)
      else callback(Object.assign(new Error(`getaddrinfo ENOTFOUND ${hostname}`), { code: 'ENOTFOUND' }), '')
    })
  }
  const deployment = await deploy(t, {
    WEBHOOK_ALLOWED_NETWORKS: '127.0.0.1/32',
    WEBHOOK_CA_FILE: authority.caFile,
  })
  const forwarder = await deployment.forwarder({ lookup })
  const produce = (source: string, messageId = 'm-1') =>
    deployment.produce([someCall({ sourceId: source, messageId })])
  const attempts = (destination: string, outcome: string) =>
    sampleOf(forwarder, `postrider_webhook_attempts_total{destination="${destination}",outcome="${outcome}"}`)
  const lineOf = (destination: string) =>
    forwarder.log.find((line) => line.destination === destination && line.delivery !== undefined)!

  for (const status of [200, 201, 204, 299]) {
    await t.test(`a ${status} is a success`, async (t) => {
      const receiver = await startReceiver(t)
      receiver.answer({ status })
      await connect(deployment, forwarder, { id: `s${status}`, urls: [receiver.url] })
      await produce(`s${status}`)
      await counted(forwarder, dispositions(`s${status}`, 'delivered'), 1)
      assert.equal(attempts(`s${status}`, 'success'), 1)
    })
  }

  for (const [status, kind] of [
    [400, 'status_4xx'],
    [404, 'status_4xx'],
    [499, 'status_4xx'],
  ] as const) {
    await t.test(`a ${status} is final: the call is kept with the response and not sent again`, async (t) => {
      const id = `f${status}`
      const receiver = await startReceiver(t)
      receiver.answer({ status, body: `no: ${'é'.repeat(3_000)}` }, { status: 200 })
      await connect(deployment, forwarder, { id, urls: [receiver.url] })
      await produce(id)
      const deadLetter = await deadLetterOf(deployment, forwarder, id)
      assert.equal(deadLetter.reason, 'rejected')
      assert.equal(deadLetter.delivery!.attempts, 1)
      assert.equal(deadLetter.delivery!.timesScheduled, 0)
      assert.deepEqual(deadLetter.delivery!.body, receiver.requests[0]!.body)
      const { lastResponse } = deadLetter.delivery!
      assert.equal(lastResponse!.status, status)
      assert.deepEqual(
        Buffer.from(lastResponse!.body),
        Buffer.from(`no: ${'é'.repeat(3_000)}`).subarray(0, 4_096),
      )
      assert.ok(lastResponse!.durationMs > 0 && lastResponse!.durationMs < 5_000)
      assert.equal(attempts(id, kind), 1)
      assert.equal(sampleOf(forwarder, dispositions(id, 'retried')), 0)
      await produce(id, 'later')
      const requests = await receiver.waitFor(2)
      assert.equal(requests[1]!.json().messageId, 'later')
    })
  }

  await t.test('a 410 is final, is logged as an error, and is recorded in the settings', async (t) => {
    const receiver = await startReceiver(t)
    receiver.answer({ status: 410, body: 'closed for good' })
    await connect(deployment, forwarder, { id: 'gone', urls: [receiver.url] })
    const before = Date.now()
    await produce('gone')
    const deadLetter = await deadLetterOf(deployment, forwarder, 'gone')
    assert.equal(deadLetter.reason, 'gone')
    assert.equal(Buffer.from(deadLetter.delivery!.lastResponse!.body).toString(), 'closed for good')
    const line = await logged(forwarder, 'gone (410)')
    assert.equal(line.level, 50)
    assert.equal(line.delivery, 'm-1:gone')
    assert.equal(line.urlId, 'u1')
    const endpoint = () => deployment.settings.state.destinations.get('gone')!.urls[0]!
    await until(() => endpoint().goneAt !== null, 5_000, 'the settings event')
    assert.ok(endpoint().goneAt! >= before && endpoint().goneAt! <= Date.now())
    assert.equal(attempts('gone', 'gone'), 1)
  })

  for (const status of [301, 302, 307, 308]) {
    await t.test(`a ${status} to a forbidden address is final, and nothing is sent there`, async (t) => {
      const id = `r${status}`
      const inner = await startReceiver(t, { host: '127.0.0.2' })
      const receiver = await startReceiver(t)
      receiver.answer({ status, headers: { location: inner.url } }, { status: 200 })
      await connect(deployment, forwarder, { id, urls: [receiver.url] })
      await produce(id)
      const deadLetter = await deadLetterOf(deployment, forwarder, id)
      assert.equal(deadLetter.reason, 'redirect')
      await produce(id, 'later')
      await receiver.waitFor(2)
      assert.equal(inner.connections(), 0)
    })
  }

  for (const [id, fault, issue] of [
    ['selfsigned', 'self-signed', () => selfSigned()],
    ['expired', 'expired', () => authority.issue({ expired: true })],
    ['otherhost', 'for another host', () => authority.issue({ names: ['other.test'], addresses: [] })],
  ] as const) {
    await t.test(
      `a certificate that is ${fault} is logged as an error, and no request is sent`,
      async (t) => {
        const receiver = await startReceiver(t, { tls: await issue() })
        await connect(deployment, forwarder, { id, urls: [receiver.url] })
        await produce(id)
        await until(() => sampleOf(forwarder, dispositions(id, 'retried')) > 0, 10_000, 'a retry')
        assert.ok(attempts(id, 'tls') > 0)
        assert.equal(lineOf(id).level, 50)
        assert.ok(receiver.connections() > 0)
        assert.equal(receiver.requests.length, 0)
      },
    )
  }

  await t.test('a certificate from a root in WEBHOOK_CA_FILE is trusted', async (t) => {
    const receiver = await startReceiver(t, { tls: await authority.issue(), secret })
    await connect(deployment, forwarder, { id: 'ownroot', urls: [receiver.url] })
    await produce('ownroot')
    const [request] = await receiver.waitFor(1)
    assert.equal(request!.signature, 'valid')
  })

  await t.test('no connection is made to a forbidden address, which is logged as an error', async (t) => {
    const inner = await startReceiver(t, { host: '127.0.0.2' })
    await connect(deployment, forwarder, { id: 'literal', urls: [inner.url] })
    await produce('literal')
    await until(() => attempts('literal', 'blocked') > 1, 10_000, 'a retry')
    assert.equal(lineOf('literal').level, 50)
    assert.match(String(lineOf('literal').detail), /127\.0\.0\.2 is not allowed/)
    assert.equal(inner.connections(), 0)
  })

  await t.test(
    'a name that leads to a forbidden address for a while is delivered to once it does not',
    async (t) => {
      const receiver = await startReceiver(t)
      const inner = await startReceiver(t, { host: '127.0.0.2', port: receiver.port })
      names.set('inner.test', [[{ address: '127.0.0.2', family: 4 }], [{ address: '127.0.0.1', family: 4 }]])
      await connect(deployment, forwarder, { id: 'dns', urls: [`http://inner.test:${inner.port}/`] })
      await produce('dns')
      await counted(forwarder, dispositions('dns', 'delivered'), 1)
      assert.deepEqual([attempts('dns', 'blocked'), receiver.requests.length, inner.connections()], [1, 1, 0])
    },
  )

  await t.test('of several addresses only the allowed ones are used', async (t) => {
    const receiver = await startReceiver(t)
    names.set('both.test', [
      [
        { address: '127.0.0.2', family: 4 },
        { address: '127.0.0.1', family: 4 },
      ],
    ])
    await connect(deployment, forwarder, { id: 'both', urls: [`http://both.test:${receiver.port}/`] })
    await produce('both')
    await receiver.waitFor(1)
  })

  await t.test('a name that is rebound to a forbidden address after the first call is blocked', async (t) => {
    const receiver = await startReceiver(t)
    // One port on both addresses, so that only the guard can make the difference.
    const inner = await startReceiver(t, { host: '127.0.0.2', port: receiver.port })
    names.set('rebound.test', [[{ address: '127.0.0.1', family: 4 }], [{ address: '127.0.0.2', family: 4 }]])
    await connect(deployment, forwarder, { id: 'rebound', urls: [`http://rebound.test:${receiver.port}/`] })
    receiver.answer({ headers: { connection: 'close' } })
    await produce('rebound', 'first')
    await receiver.waitFor(1)
    await counted(forwarder, dispositions('rebound', 'delivered'), 1)
    await produce('rebound', 'second')
    await until(() => attempts('rebound', 'blocked') > 0, 10_000, 'an attempt')
    assert.equal(inner.connections(), 0)
  })

  await t.test('a name without an address is retried', async (t) => {
    const receiver = await startReceiver(t)
    await connect(deployment, forwarder, { id: 'nodns', urls: [`http://late.test:${receiver.port}/`] })
    await produce('nodns')
    await until(() => attempts('nodns', 'network') > 0)
    names.set('late.test', [[{ address: '127.0.0.1', family: 4 }]])
    await receiver.waitFor(1)
  })
})

// In a deployment of their own: by so short a limit, any attempt may time out on a busy machine.
test('attempts without a whole response in time', async (t) => {
  const timeoutMs = 400
  const deployment = await deploy(t, { WEBHOOK_TIMEOUT: `${timeoutMs}ms` })
  const forwarder = await deployment.forwarder()
  const timeouts = (destination: string) =>
    sampleOf(forwarder, `postrider_webhook_timeouts_total{destination="${destination}"}`)

  await t.test('a missing response is one warning with all ids, and counts as a timeout', async (t) => {
    const receiver = await startReceiver(t, { secret })
    receiver.answer({ instead: { do: 'hang' } }, { status: 200 })
    await connect(deployment, forwarder, { id: 'slow', urls: [receiver.url] })
    await deployment.produce([someCall({ sourceId: 'slow' })])
    await counted(forwarder, dispositions('slow', 'delivered'), 1)
    assert.ok(timeouts('slow') > 0)
    const lines = forwarder.log.filter((line) => line.destination === 'slow' && line.level >= 40)
    assert.deepEqual(
      lines.map(({ level, delivery, urlId, attempt, outcome }) => [level, delivery, urlId, attempt, outcome]),
      // One, but for a machine on which the next response is late, too.
      Array.from({ length: timeouts('slow') }, (_, index) => [40, 'm-1:slow', 'u1', index + 1, 'timeout']),
    )
    const durations = lines.map(({ durationMs }) => durationMs as number)
    assert.ok(durations[0]! >= timeoutMs && durations[0]! < 5_000, `${durations[0]} ms`)
  })

  await t.test('a response that never ends is a timeout too', async (t) => {
    const receiver = await startReceiver(t)
    receiver.answer({ instead: { do: 'drip', everyMs: 50 } }, { status: 200 })
    await connect(deployment, forwarder, { id: 'drip', urls: [receiver.url] })
    await deployment.produce([someCall({ sourceId: 'drip' })])
    await counted(forwarder, dispositions('drip', 'delivered'), 1)
    assert.ok(timeouts('drip') > 0)
    assert.equal(sampleOf(forwarder, dispositions('drip', 'retried')), timeouts('drip'))
  })
})

test('what could never be sent is retried within its window, is an alarm once, and ends with its reason', async (t) => {
  const authority = await createAuthority(t)
  const receiver = await startReceiver(t, { tls: await selfSigned() })
  const deployment = await deploy(t, {
    RETRY_TIERS: '300ms',
    WEBHOOK_ALLOWED_NETWORKS: '127.0.0.1/32',
    WEBHOOK_CA_FILE: authority.caFile,
  })
  const forwarder = await deployment.forwarder()
  for (const [id, url, detail] of [
    ['tls', receiver.url, /self-signed/],
    ['blocked', `http://127.0.0.2:${receiver.port}/`, /not allowed/],
  ] as const) {
    await connect(deployment, forwarder, { id, urls: [url] })
    await deployment.produce([someCall({ sourceId: id, messageId: 'm-1' })])
    const attempts = `postrider_webhook_attempts_total{destination="${id}",outcome="${id}"}`
    await until(() => sampleOf(forwarder, attempts) > 1, 20_000, 'a retry')
    // Only now: on a busy machine a short window may end before the second attempt.
    await deployment.settings.execute({ type: 'update_destination', id, options: { retryWindow: '1s' } })
    const deadLetter = await deadLetterOf(deployment, forwarder, id)
    assert.equal(deadLetter.reason, id)
    assert.ok(deadLetter.failedAt > deadLetter.delivery!.firstAttemptAt! + 1_000 - 300, 'too early')
    assert.ok(deadLetter.delivery!.attempts > 1, `${deadLetter.delivery!.attempts} attempts`)
    assert.equal(deadLetter.delivery!.lastResponse, null)
    const levels = forwarder.log
      .filter((line) => line.destination === id && line.delivery !== undefined && line.attempt !== undefined)
      .map(({ level }) => level)
    assert.deepEqual(levels.slice(0, 2), [50, 40])
    assert.equal(levels.filter((level) => level >= 50).length, 1)
    // Heartbeats have it, and from them comes the operational event.
    const endpoint = [...forwarder.report.endpoints!()].find(({ destinationId }) => destinationId === id)
    assert.ok(endpoint!.downSince !== null)
    assert.match(endpoint!.lastFailure!.detail!, detail)
    assert.equal(sampleOf(forwarder, `postrider_endpoint_down{destination="${id}",url_id="u1"}`), 1)
  }
  assert.equal(receiver.requests.length, 0)
})
