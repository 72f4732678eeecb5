import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { someCall } from '../support/calls/calls.ts'
import { makeCheckout, type Running } from '../support/deployment/checkout.ts'
import { deploy, type Deployment } from '../support/deployment/deployment.ts'
import { startReceiver } from '../support/receivers.ts'
import { until } from '../support/until.ts'

const keyOfDev = 'd'.repeat(64)
const tokenOfDev = 't'.repeat(40)
const ownToken = 'o'.repeat(40)
const defaultTiers = '10s,30s,1m,5m,15m,30m,1h,2h'

/** A checkout where `npm start` ran, on the very brokers of a deployment that is set up as in production. */
async function checkoutBeside(t: TestContext) {
  const deployment = await deploy(t, { RETRY_TIERS: defaultTiers, WEBHOOK_ALLOWED_NETWORKS: '' })
  const { KAFKA_BROKERS, SCHEMA_REGISTRY_URL, TOPIC_PREFIX, GROUP_ID, SECRETS_KEY } = deployment.env
  const cluster = { KAFKA_BROKERS, SCHEMA_REGISTRY_URL, TOPIC_PREFIX, GROUP_ID } as Record<string, string>
  const checkout = await makeCheckout(t)
  const leave = async (changes: Record<string, string>) => {
    await mkdir(join(checkout.folder, '.postrider'), { recursive: true })
    const settings = {
      ...cluster,
      RETRY_TIERS: '1s',
      WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8,::1/128',
      LEDGER: 'all',
      SECRETS_KEY: keyOfDev,
      ADMIN_TOKEN: tokenOfDev,
      ...changes,
    }
    const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`)
    await writeFile(join(checkout.folder, '.postrider', 'dev.env'), lines.join(''))
  }
  await leave({})
  const own: Record<string, string> = {
    ...cluster,
    SECRETS_KEY: SECRETS_KEY!,
    METRICS_PORT: '0',
    COLLECTOR_PORT: '0',
    CONSOLE_PORT: '0',
  }
  return { deployment, checkout, leave, own }
}

async function addressOf(run: Running, what: string): Promise<string> {
  const form = new RegExp(`${what} at http://localhost:(\\d+)`)
  await run.writes(`${what} at http://localhost:`)
  await until(() => form.test(run.written()))
  return `http://127.0.0.1:${form.exec(run.written())![1]}`
}

async function readyAt(run: Running): Promise<string> {
  const metrics = await addressOf(run, 'metrics')
  await until(async () => (await fetch(`${metrics}/readyz`)).ok, 60_000, 'readiness')
  return metrics
}

const page = async (metrics: string): Promise<string> => (await fetch(`${metrics}/metrics`)).text()

/** Ends it in good order, having taken nothing of what `npm start` left. */
async function endUntouched(run: Running): Promise<void> {
  run.signal('SIGTERM')
  assert.equal(await run.ended, 0, run.written())
  assert.doesNotMatch(run.written(), /npm start|dev\.env/)
}

/** A destination on loopback, whose receiver must get nothing. */
async function loopback(t: TestContext, deployment: Deployment) {
  const receiver = await startReceiver(t)
  await deployment.destination({ urls: [receiver.url], secret: 's3cret' })
  return receiver
}

test('a forwarder with settings of a cluster refuses loopback beside a dev.env, alone and in run', async (t) => {
  const { deployment, checkout, own } = await checkoutBeside(t)
  const receiver = await loopback(t, deployment)
  for (const [at, args] of [['forwarder'], ['run', 'forwarder']].entries()) {
    const run = checkout.start(args, own)
    const metrics = await readyAt(run)
    await deployment.produce([someCall({ messageId: `m-${at}`, userId: `u-${at}` })])
    const blocked = /^postrider_webhook_attempts_total\{destination="crm",outcome="blocked"\} [1-9]/m
    await until(async () => blocked.test(await page(metrics)), 20_000, 'the refusal')
    await endUntouched(run)
  }
  assert.equal(receiver.requests.length, 0)
})

test('a forwarder with settings of a cluster uses its own key and the default tiers and ledger beside a dev.env', async (t) => {
  const { deployment, checkout, own } = await checkoutBeside(t)
  const receiver = await startReceiver(t, { secret: 's3cret' })
  await deployment.destination({ urls: [receiver.url], secret: 's3cret' })
  const run = checkout.start(['forwarder'], { ...own, WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8' })
  const metrics = await readyAt(run)
  await deployment.produce([someCall()])
  const [request] = await receiver.waitFor(1)
  assert.equal(request!.signature, 'valid')
  receiver.answer({ status: 503 })
  await deployment.produce([someCall({ messageId: 'm-2' })])
  await deployment.drained()
  assert.match(await page(metrics), /^postrider_retries_scheduled_total\{tier="10s"\} 1$/m)
  await endUntouched(run)
  const records = await deployment.read(deployment.topics.deliveries)
  const events = await Promise.all(records.map(({ value }) => deployment.codecs.deliveries.decode(value)))
  const types = new Set(events.map(({ type }) => type))
  assert.ok(types.has('tally') && !types.has('attempt_succeeded'), [...types].join())
})

test('a collector with settings of a cluster, one of them is enough, takes nothing of a dev.env', async (t) => {
  const { checkout, leave, own } = await checkoutBeside(t)
  const run = checkout.start(['collector'], own)
  await readyAt(run)
  await endUntouched(run)
  // Brokers that nobody listens at, and a prefix of other topics: it would not get ready with them.
  await leave({ KAFKA_BROKERS: '127.0.0.1:1', TOPIC_PREFIX: 'dev.' })
  const flagged = checkout.start(
    [
      'run',
      'collector',
      '--kafka-brokers',
      own.KAFKA_BROKERS!,
      '--schema-registry-url',
      own.SCHEMA_REGISTRY_URL!,
    ],
    { TOPIC_PREFIX: own.TOPIC_PREFIX!, COLLECTOR_PORT: '0', METRICS_PORT: '0' },
  )
  const metrics = await readyAt(flagged)
  assert.match(await page(metrics), /^postrider_build_info\{.*group_id="postrider"\} 1$/m)
  await endUntouched(flagged)
})

test('a console with settings of a cluster lets nobody in by the token of a dev.env, and tests no loopback', async (t) => {
  const { deployment, checkout, own } = await checkoutBeside(t)
  const receiver = await loopback(t, deployment)
  const without = checkout.start(['console'], own)
  assert.equal(await without.ended, 2)
  assert.match(without.written(), /^postrider: ADMIN_TOKEN is not set/m)

  const run = checkout.start(['console'], { ...own, ADMIN_TOKEN: ownToken })
  await readyAt(run)
  const url = await addressOf(run, 'admin API')
  const sent = (token: string) =>
    fetch(`${url}/api/v1/destinations/crm/test`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}` },
    })
  assert.equal((await sent(tokenOfDev)).status, 401)
  const { data } = (await (await sent(ownToken)).json()) as { data: { outcome: string }[] }
  assert.deepEqual(
    data.map(({ outcome }) => outcome),
    ['blocked'],
  )
  await endUntouched(run)
  assert.equal(receiver.requests.length, 0)
})

test('a part that is given nothing of a cluster works with what dev left, and logs in one line what that is', async (t) => {
  const { deployment, checkout, leave } = await checkoutBeside(t)
  await leave({ RETRY_TIERS: defaultTiers, SECRETS_KEY: deployment.env.SECRETS_KEY! })
  const run = checkout.start(['run', 'collector', 'forwarder', 'console'], {
    METRICS_PORT: '0',
    COLLECTOR_PORT: '0',
    CONSOLE_PORT: '0',
  })
  await readyAt(run)
  run.signal('SIGTERM')
  assert.equal(await run.ended, 0, run.written())
  const lines = run
    .written()
    .split('\n')
    .filter((line) => line.includes('npm start'))
  assert.deepEqual(
    lines.map((line) => (JSON.parse(line) as { level: string; msg: string }).msg),
    [
      'settings of npm start: KAFKA_BROKERS, SCHEMA_REGISTRY_URL, TOPIC_PREFIX, GROUP_ID, LEDGER, ' +
        'WEBHOOK_ALLOWED_NETWORKS, ADMIN_TOKEN, SECRETS_KEY (.postrider/dev.env)',
    ],
  )
  for (const secret of [tokenOfDev, deployment.env.SECRETS_KEY!]) assert.ok(!run.written().includes(secret))
})

test('a command takes the settings of a dev.env for the deployment that it names, says so on stderr, and takes them for no other', async (t) => {
  const { deployment, checkout, leave, own } = await checkoutBeside(t)
  const receiver = await loopback(t, deployment)
  const outcome = async (env: Record<string, string>) => {
    const run = checkout.start(['destinations', 'test', 'crm', '--json'], env)
    await run.ended
    const { data } = JSON.parse(run.stdout()) as { data: { outcome: string }[] }
    return { run, outcome: data[0]!.outcome }
  }
  await leave({ SECRETS_KEY: deployment.env.SECRETS_KEY! })
  for (const env of [{}, { KAFKA_BROKERS: own.KAFKA_BROKERS!, TOPIC_PREFIX: own.TOPIC_PREFIX! }]) {
    const there = await outcome(env)
    assert.equal(there.outcome, 'success')
    assert.match(
      there.run.written(),
      /^settings of npm start: .*LEDGER, WEBHOOK_ALLOWED_NETWORKS, .*SECRETS_KEY/m,
    )
    for (const secret of [tokenOfDev, deployment.env.SECRETS_KEY!])
      assert.ok(!there.run.written().includes(secret))
  }
  assert.equal(receiver.requests.length, 2)

  for (const changes of [{ TOPIC_PREFIX: 'dev.' }, { GROUP_ID: 'dev' }, { KAFKA_BROKERS: '127.0.0.1:1' }]) {
    await leave(changes)
    const elsewhere = await outcome(own)
    assert.equal(elsewhere.outcome, 'blocked')
    assert.doesNotMatch(elsewhere.run.written(), /npm start|dev\.env/)
  }
  assert.equal(receiver.requests.length, 2)
  // The key of the file, in place of the one that is missing, would encrypt what no part can decrypt.
  const { SECRETS_KEY: _, ...keyless } = own
  const sealing = checkout.start(['destinations', 'update', 'crm', '--secret', 'other'], keyless)
  assert.equal(await sealing.ended, 1)
  assert.match(sealing.written(), /^postrider: SECRETS_KEY is not set/m)
})
