// A secret of a destination's templates is known to its receiver, and to nobody else: it is in no answer, no log and no
// topic, whatever becomes of a call.
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { operations } from '../../../src/operators/operations.ts'
import { someCall } from '../../support/calls/calls.ts'
import { samplesOf } from '../../support/calls/samples.ts'
import { startConsole, type RunningConsole } from '../../support/consoles.ts'
import { deploy, type Deployment, type RunningForwarder } from '../../support/deployment/deployment.ts'
import { runCommand } from '../../support/deployment/deployment-cli.ts'
import { temporaryFolder } from '../../support/deployment/rig.ts'
import { startReceiver, type ReceivedRequest } from '../../support/receivers.ts'
import { until } from '../../support/until.ts'

const [before, after] = ['t3mplate-before/"x', 't3mplate-after &\\y'] as const
const spelled = /t3mplate-(?:before|after)/

const template = '{"key":"${secret.key}","event":"${call.event}","note":"by ${secret.key}"}'
const bodyWith = (key: string) => JSON.stringify({ key, event: 'Order Completed', note: `by ${key}` })

/** The settings that a forwarder had before are gone once it knows a destination that came later. */
async function known(deployment: Deployment, forwarder: RunningForwarder, marker: string): Promise<void> {
  await deployment.destination({ id: marker, source: 'marker', urls: ['http://127.0.0.1:1/'] })
  const gauge = `postrider_endpoint_in_flight{destination="${marker}",url_id="u1"}`
  await until(() => samplesOf(forwarder).has(gauge), 10_000, 'that the settings are known')
}

function assertSent({ path, body, headers, signature }: ReceivedRequest, key: string): void {
  assert.equal(body.toString(), bodyWith(key))
  assert.equal(path, `/hook?key=${encodeURIComponent(key)}`)
  assert.equal(headers['x-key'], `Key ${key}`)
  assert.equal(signature, 'valid')
}

/** All that anybody can read of the deployment. */
async function assertHidden(
  deployment: Deployment,
  console: RunningConsole,
  forwarder: RunningForwarder,
  ids: readonly string[],
): Promise<void> {
  for (const topic of await deployment.admin.listTopics()) {
    if (!topic.startsWith(deployment.env.TOPIC_PREFIX!)) continue
    for (const { key, value } of await deployment.read(topic))
      for (const bytes of [key, value])
        assert.doesNotMatch(Buffer.from(bytes ?? '').toString('latin1'), spelled, topic)
  }
  const asked = new Set<string>()
  for (const { id, method, path } of operations) {
    if (method !== 'GET' || id === 'tailSource') continue
    for (const of of path.includes('{id}') ? ids : ['']) {
      const { status, text } = await console.call('GET', path.replace('{id}', encodeURIComponent(of)))
      if (status === 200) asked.add(id)
      assert.doesNotMatch(text, spelled, id)
    }
  }
  for (const id of [
    'showDestination',
    'exportSettings',
    'listSettingsHistory',
    'showDeadLetter',
    'listAttempts',
  ])
    assert.ok(asked.has(id), `${id} of ${[...asked].join()}`)
  for (const line of [...console.log, ...forwarder.log]) assert.doesNotMatch(JSON.stringify(line), spelled)
}

test('a secret of a template is in what its receiver gets, signed, at retries and replays as it is by then, and nowhere else', async (t) => {
  const deployment = await deploy(t, { LEDGER: 'all' })
  const { topics } = deployment
  const console = await startConsole(deployment)
  const receiver = await startReceiver(t, { secret: 's3cret' })
  const forwarder = await deployment.forwarder()
  await deployment.destination({ id: 'other', urls: ['http://127.0.0.1:1/'] })
  const repeats = (status: number) => (request: ReceivedRequest) => ({
    status,
    body: `no: ${request.path} ${String(request.headers['x-key'])} ${request.body.toString()}`,
  })
  // What goes out with the secret of before is retried until the forwarder knows the one of after.
  receiver.answer((request) => repeats(request.body.toString() === bodyWith(after) ? 400 : 503)(request))
  const made = await console.ok(201, 'POST', '/destinations', {
    ...{ id: 'crm', name: 'CRM', sourceIds: ['shop'], sharedSecret: 's3cret', body: { all: template } },
    urls: [{ url: `${receiver.url}?key=\${secret.key}`, headers: { 'X-Key': 'Key ${secret.key}' } }],
    templateSecrets: { key: before },
  })
  assert.deepEqual(
    (made.templateSecrets as { name: string }[]).map(({ name }) => name),
    ['key'],
  )
  await known(deployment, forwarder, 'marker-1')

  await deployment.produce([someCall({ messageId: 'm-1' })])
  const [first] = (await receiver.waitFor(1)) as [ReceivedRequest]
  assertSent(first, before)
  await until(
    async () => (await deployment.read(topics.retry('300ms'))).length > 0,
    10_000,
    'a retry in a tier',
  )
  await console.ok(200, 'PATCH', '/destinations/crm', { templateSecrets: { key: after } })
  await known(deployment, forwarder, 'marker-2')
  await until(() => receiver.requests.at(-1)!.body.toString() === bodyWith(after), 20_000, 'the new secret')
  assertSent(receiver.requests.at(-1)!, after)

  await until(
    async () => (await deployment.deadLetters()).some(({ delivery }) => delivery?.id === 'm-1:crm'),
    20_000,
  )
  const dead = await console.ok(200, 'GET', '/dead-letters/m-1%3Acrm')
  const { body, lastResponse } = dead.delivery as Record<'body' | 'lastResponse', Record<string, unknown>>
  assert.deepEqual(body, { text: bodyWith('${secret.key}') })
  assert.match(JSON.stringify(lastResponse), /no: .*\[removed\]/)

  const shownTo = async (path: string, json: object) => {
    const { status, text } = await console.call('POST', path, { json })
    assert.equal(status, 200, text)
    assert.doesNotMatch(text, spelled)
    return text
  }
  const tried = await shownTo('/destinations/crm/test', {})
  assert.match(tried, /\/hook\?key=\$\{secret\.key\}/)
  assert.match(tried, /by \$\{secret\.key\}/)
  assert.equal(receiver.requests.at(-1)!.json().key, after)
  await shownTo('/destinations/crm/preview', { method: 'PUT' })

  receiver.answer({ status: 200 })
  const count = receiver.requests.length
  await console.ok(201, 'POST', '/replays', { deadLetters: { destination: ['crm'] } })
  const replayed = (await receiver.waitFor(count + 1, 30_000)).at(-1)!
  assert.equal(replayed.headers['idempotency-key'], 'm-1:crm')
  assertSent(replayed, after)
  await assertHidden(deployment, console, forwarder, ['crm', 'm-1', 'm-1:crm', 'shop'])
})

test('each call of a batch has its secret, and the batch is signed as it is sent', async (t) => {
  const deployment = await deploy(t)
  const receiver = await startReceiver(t, { secret: 's3cret' })
  const console = await startConsole(deployment)
  const forwarder = await deployment.forwarder()
  await deployment.destination({ id: 'other', urls: ['http://127.0.0.1:1/'] })
  await console.ok(201, 'POST', '/destinations', {
    ...{ id: 'crm', name: 'CRM', sourceIds: ['shop'], sharedSecret: 's3cret', body: { all: template } },
    ...{ urls: [{ url: receiver.url }], templateSecrets: { key: before }, batch: 2, batchWait: '10s' },
  })
  await known(deployment, forwarder, 'marker')
  await deployment.produce(['m-1', 'm-2'].map((messageId) => someCall({ messageId, userId: messageId })))
  const [request] = (await receiver.waitFor(1)) as [ReceivedRequest]
  assert.equal(request.body.toString(), `[${bodyWith(before)},${bodyWith(before)}]`)
  assert.equal(
    request.headers['x-signature'],
    createHmac('sha1', 's3cret').update(request.body).digest('hex'),
  )
})

test('what waits with a secret that was taken away is a dead letter that says so, and is sent as the template is by then', async (t) => {
  const deployment = await deploy(t)
  const receiver = await startReceiver(t, { secret: 's3cret' })
  const console = await startConsole(deployment)
  const forwarder = await deployment.forwarder()
  receiver.answer({ status: 503 })
  await deployment.destination({ id: 'other', urls: ['http://127.0.0.1:1/'] })
  await console.ok(201, 'POST', '/destinations', {
    ...{ id: 'crm', name: 'CRM', sourceIds: ['shop'], sharedSecret: 's3cret', body: { all: template } },
    ...{ urls: [{ url: receiver.url }], templateSecrets: { key: before } },
  })
  await known(deployment, forwarder, 'marker-1')
  await deployment.produce([someCall({ messageId: 'm-1' })])
  await receiver.waitFor(1)
  const plain = { body: { all: '{"event":"${call.event}"}' }, templateSecrets: { key: null } }
  await console.ok(200, 'PATCH', '/destinations/crm', plain)
  const ofCrm = async () =>
    (await deployment.deadLetters()).find(({ delivery }) => delivery?.id === 'm-1:crm')
  await until(async () => (await ofCrm()) !== undefined, 20_000, 'the dead letter')
  const { reason, detail } = (await ofCrm())!
  assert.deepEqual([reason, detail], ['unrenderable', 'secret.key: there is no such secret any more'])
  receiver.answer({ status: 200 })
  const count = receiver.requests.length
  await console.ok(201, 'POST', '/replays', { deadLetters: { destination: ['crm'] } })
  const last = (await receiver.waitFor(count + 1, 30_000)).at(-1)!
  assert.equal(last.body.toString(), '{"event":"Order Completed"}')
})

/** Files beside a deployment, and its commands, of which none may print a secret. */
async function commands(t: TestContext, deployment: Deployment) {
  const folder = await temporaryFolder(t)
  const fileOf = async (name: string, text: string) => {
    await writeFile(join(folder, name), text)
    return join(folder, name)
  }
  const run = async (env: Record<string, string>, ...args: string[]) => {
    const result = await runCommand(t, { env: { ...deployment.env, ...env } }, '', ...args)
    assert.doesNotMatch(result.stdout + result.stderr, spelled)
    return result
  }
  return { fileOf, run }
}

test('a command sets secrets of templates from files, an export refers to them, and a file sets them again', async (t) => {
  const deployment = await deploy(t)
  const receiver = await startReceiver(t, { secret: 's3cret' })
  const { fileOf, run } = await commands(t, deployment)
  await deployment.destination({ id: 'other', urls: ['http://127.0.0.1:1/'] })
  const create = [
    ...['destinations', 'create', '--id', 'crm', '--name', 'CRM', '--source', 'shop', '--url', receiver.url],
    ...['--secret', 's3cret', '--body', await fileOf('body.json', template)],
  ]
  const none = await run({}, ...create)
  assert.match(none.stderr, /the body for all names secret\.key, and there is no secret of that name/)
  assert.equal(none.status, 2)
  const key = `key=${await fileOf('key', `${before}\n`)}`
  assert.equal((await run({}, ...create, '--template-secret', key)).status, 0)
  assert.match((await run({}, 'destinations', 'show', 'crm')).stdout, /secret\.key +fingerprint [0-9a-f]{12}/)
  assert.equal((await run({}, 'destinations', 'test', 'crm')).status, 0)
  assert.equal(receiver.requests.at(-1)!.body.toString().includes(JSON.stringify(before)), true)
  assert.equal(receiver.requests.at(-1)!.signature, 'valid')

  const exported = await run({}, 'settings', 'export')
  assert.match(exported.stdout, /key: \$\{POSTRIDER_SECRET_CRM_TEMPLATE_KEY\}/)
  const file = await fileOf('settings.yml', exported.stdout)
  assert.match((await run({}, 'settings', 'apply', file)).stdout, /nothing to change/)
  const variables = { POSTRIDER_SECRET_CRM_TEMPLATE_KEY: after }
  assert.match((await run(variables, 'settings', 'apply', file)).stdout, /templateSecrets/)
  assert.equal((await run({}, 'destinations', 'test', 'crm')).status, 0)
  assert.equal(receiver.requests.at(-1)!.json().key, after)

  const gone = await run({}, 'destinations', 'update', 'crm', '--remove-template-secret', 'key')
  assert.match(gone.stderr, /the body for all names secret\.key/)
  assert.equal(
    (await run({}, 'destinations', 'update', 'crm', '--no-body', '--remove-template-secret', 'key')).status,
    0,
  )
  for (const wrong of ['key', `=${file}`, before])
    assert.match(
      (await run({}, 'destinations', 'update', 'crm', '--template-secret', wrong)).stderr,
      /takes "NAME=file"/,
    )
})
