import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSecrets } from '../../../src/adapters/secrets.ts'
import { sendSample } from '../../../src/adapters/webhook/sample-call.ts'
import type { Config } from '../../../src/config/config.ts'
import { deliveryEvent } from '../../../src/core/ledger/delivery-event.ts'
import type { WebhookTransport } from '../../../src/forwarder/send/webhook-transport.ts'
import { alertOperations } from '../../../src/operators/alerts/operations.ts'
import { answerOf } from '../../../src/operators/check.ts'
import { startConsole } from '../../support/consoles.ts'
import { deploy } from '../../support/deployment/deployment.ts'
import { eventsAreRead } from '../../support/deployment/events-lease.ts'
import { fastTimes } from '../../support/deployment/operational-events.ts'
import { mailLogin, startMailServer } from '../../support/mail-server.ts'
import { startReceiver } from '../../support/receivers.ts'
import { now, servicesOfTwo } from '../../support/services-of-two.ts'
import { until } from '../../support/until.ts'

type Answers = { succeeded: boolean; answers: { to: string; status: number | null; answer: string }[] }

test('an alert is tested before it is saved, and then gets operational events in the words of its service', async (t) => {
  const deployment = await deploy(t)
  const console = await startConsole(deployment, { operationalEvents: fastTimes })
  const receiver = await startReceiver(t)
  const hook = new URL('/services/T000/B000/s3cretOfSlack', receiver.url)
  const body = { kind: 'slack', url: hook.href }
  const test = async (given: object) =>
    (await console.ok(200, 'POST', '/alerts/test', given)) as unknown as Answers

  receiver.answer({ status: 404, body: 'no_service' })
  const refused = await test(body)
  assert.deepEqual(refused, {
    succeeded: false,
    answers: [
      {
        ...{ to: `127.0.0.1:${receiver.port}`, succeeded: false, status: 404 },
        answer: 'status 404: no_service',
      },
    ],
  })
  receiver.answer({ status: 200, body: 'ok' })
  assert.equal((await test(body)).succeeded, true)
  assert.match(String(receiver.requests.at(-1)!.json().text), /^A test that somebody asked for/)
  assert.deepEqual((await console.ok(200, 'GET', '/alerts')).destinations, [], 'a test is kept nowhere')

  const saved = await console.ok(201, 'POST', '/alerts', body)
  assert.equal(saved.id, 'slack')
  assert.equal(receiver.requests.at(-1)!.path, hook.pathname)
  for (const path of ['/destinations/slack', '/settings/history', '/settings/export', '/alerts'])
    assert.ok(!(await console.call('GET', path)).text.includes('s3cretOfSlack'), path)
  assert.equal((await console.ok(201, 'POST', '/alerts', body)).id, 'slack-2')
  await console.ok(200, 'POST', '/destinations/slack-2/disable')
  assert.equal((await test({ id: 'slack' })).succeeded, true)

  const pager = await console.ok(201, 'POST', '/alerts', { kind: 'pagerduty', key: 'R0"123' })
  const shown = await console.ok(200, 'GET', '/alerts')
  assert.deepEqual(
    (shown.destinations as { id: string; hosts: string[] }[]).map(({ id, hosts }) => [id, hosts]),
    [
      ['slack', [`127.0.0.1:${receiver.port}`]],
      ['slack-2', [`127.0.0.1:${receiver.port}`]],
      ['pagerduty', ['events.pagerduty.com']],
    ],
  )
  assert.ok((pager.events as string[]).includes('Problem Ended'))
  const { body: template, templateSecrets } = (await console.ok(200, 'GET', '/destinations/pagerduty')) as {
    body: { all: string }
    templateSecrets: { name: string }[]
  }
  assert.equal((JSON.parse(template.all) as { routing_key: string }).routing_key, '${secret.routing_key}')
  assert.deepEqual(
    templateSecrets.map(({ name }) => name),
    ['routing_key'],
  )
  for (const path of ['/destinations/pagerduty', '/settings/history', '/settings/export', '/alerts'])
    assert.ok(!(await console.call('GET', path)).text.includes('R0'), path)
  const here = { urls: [{ url: receiver.url }] }
  const moved = await console.call('PATCH', '/destinations/pagerduty', { json: here })
  assert.match(moved.text, /was set for https:\/\/events\.pagerduty\.com: another host needs it again/)
  await console.ok(200, 'PATCH', '/destinations/pagerduty', {
    ...{ ...here, templateSecrets: { routing_key: 'R0"123' } },
  })
  assert.equal((await test({ id: 'pagerduty' })).succeeded, true)
  assert.equal(receiver.requests.at(-1)!.json().routing_key, 'R0"123')
  await console.ok(200, 'POST', '/destinations/pagerduty/disable')

  await deployment.forwarder()
  await deployment.codecs.deliveries.ready()
  await eventsAreRead(deployment)
  const lost = deliveryEvent('lost', Date.now(), {
    ...{ topic: deployment.topics.calls, partition: 1, firstOffset: 5, lastOffset: 9 },
  })
  const value = deployment.codecs.deliveries.encode(lost)
  await deployment.producer.send({ topic: deployment.topics.deliveries, messages: [{ value }] })
  const texts = () => receiver.requests.map((request) => String(request.json().text))
  const sentence = `Lost: 5 records of ${deployment.topics.calls}/1 were removed before they were read`
  await until(() => texts().includes(sentence), 30_000, 'the message')
})

test('what an alert needs is asked for, and what is none is refused', async (t) => {
  const deployment = await deploy(t)
  const console = await startConsole(deployment)
  await deployment.destination({ urls: ['http://127.0.0.1:9/'] })
  const cases: [path: string, given: object, field: string][] = [
    ['/alerts', { kind: 'slack' }, 'url'],
    ['/alerts', { kind: 'slack', url: 'http://127.0.0.1:9/', key: 'x' }, 'url'],
    ['/alerts', { kind: 'pagerduty', url: 'http://127.0.0.1:9/' }, 'key'],
    ['/alerts', { kind: 'pagerduty', key: 'two\nlines' }, 'key'],
    ['/alerts/test', {}, 'kind'],
    ['/alerts/test', { kind: 'slack', url: 'http://127.0.0.1:9/', id: 'crm' }, 'kind'],
    ['/alerts/test', { id: 'crm' }, 'id'],
    ['/alerts/test', { kind: 'mail' }, 'kind'],
    ['/alerts', { kind: 'slack', url: 'http://127.0.0.1:9/', to: ['ops@example.com'] }, 'to'],
    ['/alerts', { kind: 'mail' }, 'to'],
    ['/alerts', { kind: 'mail', to: [] }, 'to'],
    ['/alerts', { kind: 'mail', to: ['ops@example.com\r\nBcc: x@example.com'] }, 'to.0'],
    ['/alerts', { kind: 'mail', to: ['ops@example.com'], url: 'http://127.0.0.1:9/' }, 'url'],
    ['/alerts/test', { kind: 'mail', to: ['ops@example.com'], id: 'mail' }, 'to'],
  ]
  for (const [path, given, field] of cases) {
    const { status, body } = await console.call('POST', path, { json: given })
    assert.equal(status, 400, JSON.stringify(given))
    assert.equal((body.fields as { field: string }[])[0]!.field, field)
  }
  assert.equal((await console.call('POST', '/alerts/test', { json: { id: 'none' } })).status, 404)
})

test('a console with a mail server mails operational events, also those of while the server was away', async (t) => {
  const deployment = await deploy(t)
  const server = await startMailServer(t)
  const mail = {
    server: { host: '127.0.0.1', port: server.port, isTls: false, login: mailLogin },
    ...{ needsTls: true, ca: server.ca, from: 'postrider@example.com', to: ['ops@example.com'] },
  } as const
  const config = { mail } as unknown as Config
  const console = await startConsole(deployment, { config, operationalEvents: fastTimes })
  const answered = await console.ok(200, 'POST', '/alerts/test', { kind: 'mail' })
  assert.equal(answered.succeeded, true)
  assert.match(server.mails[0]!, /^Subject: \[Postrider\] Test/m)

  await eventsAreRead(deployment)
  await server.goAway()
  await deployment.destination({ urls: ['http://127.0.0.1:9/'] })
  const pause = { type: 'pause_destination', id: 'crm', pauseId: 'p1', at: Date.now(), until: null } as const
  await deployment.settings.execute(pause)
  const waiting = async () => ((await console.ok(200, 'GET', '/alerts')).mail as { waiting: number }).waiting
  await until(async () => (await waiting()) === 1, 30_000, 'a mail that waits')
  const failed = await console.ok(200, 'POST', '/alerts/test', { kind: 'mail' })
  assert.match((failed.answers as { answer: string }[])[0]!.answer, /ECONNREFUSED/)
  await server.comeBack()
  await until(async () => (await waiting()) === 0, 60_000, 'the mail')
  assert.match(server.mails[1]!, /^Subject: \[Postrider\] Paused: crm/m)
})

test('alerts by mail are made, tested, changed and removed, each with its own addresses and events', async (t) => {
  const deployment = await deploy(t)
  const server = await startMailServer(t)
  const mail = {
    server: { host: '127.0.0.1', port: server.port, isTls: false, login: mailLogin },
    ...{ needsTls: true, ca: server.ca, from: 'postrider@example.com', to: [] },
  } as const
  const config = { mail } as unknown as Config
  const console = await startConsole(deployment, { config, operationalEvents: fastTimes })
  const test = async (given: object) =>
    (await console.ok(200, 'POST', '/alerts/test', { kind: 'mail', ...given })) as unknown as Answers
  assert.equal((await console.call('POST', '/alerts/test', { json: { kind: 'mail' } })).status, 400)

  const to = ['ops@example.com', 'lead@example.com']
  assert.equal((await test({ to })).succeeded, true)
  assert.deepEqual(server.recipients, [to])
  assert.deepEqual((await console.ok(200, 'GET', '/alerts')).mails, [], 'a test is kept nowhere')
  const made = await console.ok(201, 'POST', '/alerts', { kind: 'mail', to, name: 'On call' })
  assert.deepEqual(made, { id: 'mail', name: 'On call', enabled: true, hosts: [], events: null, to })
  const audits = { kind: 'mail', id: 'audits', to: ['audits@example.com'], events: ['Audit Failed'] }
  await console.ok(201, 'POST', '/alerts', audits)
  assert.equal((await console.call('POST', '/alerts', { json: audits })).status, 409)
  const late = await console.ok(201, 'POST', '/alerts', { kind: 'mail', to: ['late@example.com'] })
  assert.equal(late.id, 'mail-2')
  const refused = await test({ id: 'audits', to: undefined })
  assert.equal(refused.succeeded, true)
  assert.deepEqual(server.recipients.at(-1), ['audits@example.com'])

  const disabled = await console.ok(200, 'PATCH', '/alerts/mail/mail-2', { enabled: false })
  assert.equal(disabled.enabled, false)
  await console.ok(200, 'PATCH', '/alerts/mail/mail', { to: ['lead@example.com'] })
  assert.equal((await console.call('PATCH', '/alerts/mail/none', { json: { enabled: true } })).status, 404)
  await eventsAreRead(deployment)
  server.recipients.length = 0
  await deployment.destination({ urls: ['http://127.0.0.1:9/'] })
  const pause = { type: 'pause_destination', id: 'crm', pauseId: 'p1', at: Date.now(), until: null } as const
  await deployment.settings.execute(pause)
  await until(() => server.recipients.length > 0, 30_000, 'the mail')
  assert.match(server.mails.at(-1)!, /^Subject: \[Postrider\] Paused: crm/m)
  await until(async () => (await waitingMails(console)) === 0, 30_000)
  assert.deepEqual(server.recipients, [['lead@example.com']])

  const { settings } = (await console.ok(200, 'GET', '/settings/export')) as { settings: object }
  assert.deepEqual((settings as { mailAlerts: object[] }).mailAlerts, [
    { id: 'mail', name: 'On call', to: ['lead@example.com'] },
    { id: 'audits', name: 'Mail', to: ['audits@example.com'], events: ['Audit Failed'] },
    { id: 'mail-2', name: 'Mail', to: ['late@example.com'], enabled: false },
  ])
  const applied = await console.ok(200, 'POST', '/settings/apply', { settings, secrets: {} })
  assert.deepEqual(applied.changed, [])
  assert.deepEqual(await console.ok(200, 'DELETE', '/alerts/mail/mail'), { id: 'mail', removed: true })
  const { data } = (await console.ok(200, 'GET', '/settings/history')) as {
    data: { type: string; changed: object[] }[]
  }
  assert.equal(data[0]!.type, 'mail_alert_removed')
  assert.deepEqual(data[0]!.changed, [
    {
      ...{ kind: 'mail alert', id: 'mail', created: false },
      changes: [
        { field: 'to', from: ['lead@example.com'], to: [] },
        { field: 'removed', from: null, to: true },
      ],
    },
  ])
})

const waitingMails = async (console: { ok(status: number, method: string, path: string): Promise<object> }) =>
  ((await console.ok(200, 'GET', '/alerts')) as { mail: { waiting: number } }).mail.waiting

test('a test that a destination’s URL has a hole for, and the message no value, is refused and says so', async () => {
  const { services } = servicesOfTwo([
    {
      ...{ type: 'create_destination', id: 'ops', name: 'Ops', sourceIds: ['postrider'], headers: [] },
      ...{ urls: ['https://ops.example/${call.properties.urlId}'], sharedSecret: null, enabled: true },
    },
  ])
  const parts = { transport: {} as WebhookTransport, secrets: createSecrets([]), now }
  const { handle } = alertOperations.find(({ id }) => id === 'testAlert')!
  const refused = await handle({ body: { id: 'ops' } } as Parameters<typeof handle>[0], {
    ...services,
    sendSample: (destination, terms) => sendSample(destination, parts, terms),
  }).catch(answerOf)
  const message =
    'no request can be made of the test message: call.properties.urlId: the call has no such value, and the URL needs one'
  assert.deepEqual(refused, {
    status: 400,
    body: { code: 'invalid_request', message: `id: ${message}`, fields: [{ field: 'id', message }] },
  })
})
