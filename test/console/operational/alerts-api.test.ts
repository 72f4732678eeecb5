import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Config } from '../../../src/config/config.ts'
import { deliveryEvent } from '../../../src/core/ledger/delivery-event.ts'
import { startConsole } from '../../support/consoles.ts'
import { deploy } from '../../support/deployment/deployment.ts'
import { fastTimes } from '../../support/deployment/operational-events.ts'
import { mailLogin, startMailServer } from '../../support/mail-server.ts'
import { startReceiver } from '../../support/receivers.ts'
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
