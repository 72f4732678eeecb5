// What the rules and the dashboard ask for is asked of a real Prometheus that scrapes a real Postrider.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { createSecrets } from '../../src/adapters/secrets.ts'
import { newSecret } from '../../src/operators/settings/secrets.ts'
import { startChild } from '../../src/local/child-process.ts'
import { bareEnv } from '../support/deployment/bare-env.ts'
import { deploy, type Deployment } from '../support/deployment/deployment.ts'
import { temporaryFolder } from '../support/deployment/rig.ts'
import { interpolate, readDashboard } from '../support/ops/dashboard.ts'
import { startPrometheus } from '../support/ops/prometheus.ts'
import { readRules, selectorsOf } from '../support/ops/rules.ts'
import { needed } from '../support/ops/tools.ts'
import { newAuthority } from '../support/secured/certificates.ts'
import { startReceiver } from '../support/receivers.ts'
import { until } from '../support/until.ts'

const prometheus = needed('prometheus')
const token = 'a-token-that-nobody-guesses-0123456789'

/** Collector, forwarder and console in one process, as `postrider run` starts them. */
async function startPostrider(t: TestContext, deployment: Deployment) {
  const folder = await temporaryFolder(t)
  const logFile = join(folder, 'postrider.log')
  const child = await startChild({
    command: process.execPath,
    args: [join(import.meta.dirname, '../../src/main.ts'), 'run', 'collector', 'forwarder', 'console'],
    cwd: folder,
    env: {
      ...bareEnv,
      ...deployment.env,
      COLLECTOR_PORT: '0',
      CONSOLE_PORT: '0',
      ADMIN_TOKEN: token,
      AUDIT_INTERVAL: '1m',
      STORE_PATH: join(folder, 'store'),
    },
    logFile,
  })
  t.after(() => child.kill())
  const portOf = (text: string) =>
    Number(new RegExp(`${text} at http://localhost:(\\d+)`).exec(readFileSync(logFile, 'utf8'))?.[1] ?? 0)
  await until(
    async () => {
      if (!child.isRunning()) throw new Error(`it ended: ${readFileSync(logFile, 'utf8')}`)
      if (['metrics', 'collecting', 'admin API'].some((text) => portOf(text) === 0)) return false
      return fetch(`http://127.0.0.1:${portOf('metrics')}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      )
    },
    60_000,
    'readiness',
  )
  return {
    metricsPort: portOf('metrics'),
    send: (events: number) =>
      fetch(`http://127.0.0.1:${portOf('collecting')}/v1/batch`, {
        method: 'POST',
        headers: { Authorization: `Basic ${btoa('key-of-shop:')}` },
        body: JSON.stringify({
          batch: [
            ...Array.from({ length: events }, () => ({
              type: 'track',
              userId: randomBytes(4).toString('hex'),
              event: 'Ordered',
            })),
            { type: 'track', userId: 'in-every-batch', event: 'Ordered' },
            { type: 'track', userId: 'no-event' },
          ],
        }),
      }),
    list: () =>
      fetch(`http://127.0.0.1:${portOf('admin API')}/api/v1/sources`, {
        headers: { Authorization: `Bearer ${token}` },
      }),
  }
}

/** Holds back a partition in which nothing lies, until the test ends: its metric is shown only while there is one. */
async function beginTransaction(
  t: TestContext,
  { kafka, topics, config, endFirst }: Deployment,
): Promise<void> {
  const topic = topics.retry(config.retryTiers.at(-1)!.name)
  const producer = kafka.producer({
    transactionalId: `${topic}.open`,
    // As long as the test: brokers abort it then.
    transactionTimeout: 300_000,
    maxInFlightRequests: 1,
    idempotent: true,
  })
  await producer.connect()
  t.after(() => producer.disconnect())
  const transaction = await producer.transaction()
  await transaction.send({ topic, messages: [{ partition: 0, key: 'u-1', value: 'not ended' }] })
  // Before its topic is deleted.
  endFirst(() => transaction.abort())
}

/** One healthy destination, and one for everything that can be wrong. */
async function settle(t: TestContext, deployment: Deployment): Promise<void> {
  const { settings } = deployment
  const [good, down, gone, refusing] = await Promise.all([0, 1, 2, 3].map(() => startReceiver(t)))
  down!.answer({ status: 503 })
  gone!.answer({ status: 410 })
  refusing!.answer({ status: 404 })
  const secret = null
  await deployment.destination({ id: 'good', urls: [good!.url], secret })
  await deployment.destination({ id: 'down', urls: [down!.url], secret })
  await deployment.destination({ id: 'gone', urls: [gone!.url], secret })
  await deployment.destination({ id: 'refusing', urls: [refusing!.url], secret })
  await deployment.destination({ id: 'paused', urls: [good!.url], secret })
  await deployment.destination({ id: 'choosy', urls: [good!.url], secret })
  await settings.execute({
    type: 'pause_destination',
    id: 'paused',
    pauseId: 'p-1',
    at: Date.now(),
    until: null,
  })
  await deployment.destination({ id: 'strict', urls: [down!.url], secret })
  // The user that sends in every batch does not wait for long.
  await settings.execute({
    type: 'update_destination',
    id: 'strict',
    options: { order: 'strict', orderLimit: 1 },
  })
  // Nobody listens where its tokens come from.
  await deployment.destination({ id: 'logged-in', urls: [good!.url], secret })
  const { ca } = await newAuthority()
  const fact = { subject: 'root', issuer: 'root', fingerprint: '00', expiresAt: Date.now() + 90 * 86_400_000 }
  await settings.execute({
    type: 'update_destination',
    id: 'logged-in',
    login: {
      oauthClientSecret: newSecret('secret', deployment.secrets),
      ca: { ...newSecret(ca, deployment.secrets), certificates: [fact] },
    },
    options: { oauthTokenUrl: 'http://127.0.0.1:1/token', oauthClientId: 'postrider' },
  })
  // Its calls have no such property: it cannot be evaluated.
  await settings.execute({
    type: 'update_destination',
    id: 'choosy',
    options: { where: 'call.properties.total >= 100' },
  })
  // Every call is against the plan, and is sent all the same.
  const plan = { id: 'web', name: 'Web', events: {}, unknownEvents: 'report' } as const
  await settings.execute({ type: 'create_plan', ...plan })
  await settings.execute({ type: 'update_source', id: 'shop', plan: 'web' })
  await settings.execute({
    type: 'create_destination',
    id: 'locked',
    name: 'locked',
    sourceIds: ['shop'],
    urls: [good!.url],
    headers: [],
    sharedSecret: newSecret('another', createSecrets([randomBytes(32)])),
    enabled: true,
  })
}

const title =
  'every expression of the dashboard and of the rules finds data, of a running system under load with one endpoint down'

test(title, { skip: prometheus.skip, timeout: 300_000 }, async (t) => {
  const deployment = await deploy(t)
  await settle(t, deployment)
  await deployment.producer.send({
    topic: deployment.topics.settings,
    acks: -1,
    messages: [{ key: 'x', value: 'no event' }],
  })
  await beginTransaction(t, deployment)
  const postrider = await startPostrider(t, deployment)
  const { query } = await startPrometheus(t, prometheus.path('prometheus'), [postrider.metricsPort])

  const stop = new AbortController()
  const load = (async () => {
    while (!stop.signal.aborted) {
      const [sent, listed] = await Promise.all([postrider.send(40), postrider.list()])
      assert.deepEqual([sent.status, listed.status], [200, 200])
      await delay(100, undefined, { signal: stop.signal }).catch(() => {})
    }
  })()
  load.catch(() => {})

  const dashboard = readDashboard()
  const { recordings, alerts } = readRules()
  const asked = new Map<string, string>()
  for (const { title, targets = [] } of dashboard.panels)
    for (const { expr } of targets) asked.set(interpolate(expr, dashboard), `panel "${title}"`)
  for (const { record, expr } of recordings) asked.set(expr, record)
  for (const { record } of recordings) asked.set(record, record)
  // An alert finds nothing while all is well, but each series that it looks at must be there.
  for (const { alert, expr } of alerts)
    for (const { text, metric, matchers } of selectorsOf(expr)) {
      const whatever = matchers.map(({ label }) => `${label}!=""`).join()
      asked.set(metric === 'up' ? text : `${metric}{${whatever}}`, `alert ${alert}`)
    }
  assert.ok(asked.size > 100)

  const missing = new Map(asked)
  const look = async () => {
    for (const expr of missing.keys())
      if ((await query(expr)).some(({ value }) => !Number.isNaN(value))) missing.delete(expr)
    return missing.size === 0
  }
  const gaps = () => [...missing].map(([expr, where]) => `${where}: ${expr}`).join('\n')
  await until(look, 150_000, 'data for everything').catch((error: unknown) =>
    assert.fail(`${String(error)}:\n${gaps()}`),
  )

  // And what is wrong here can be seen.
  const down = await query('avg by (destination, url_id) (postrider_endpoint_down) > 0.5')
  // Two send to the receiver that is down, and one gets no token.
  assert.deepEqual(down.map(({ metric }) => metric.destination).sort(), ['down', 'logged-in', 'strict'])
  // It takes two scrapes between which the dead letters grew, and an evaluation after them.
  const deadLetters = 'ALERTS{alertname="PostriderDeadLetters",alertstate="firing"}'
  const fires = async () => (await query(deadLetters)).some(({ metric }) => metric.destination === 'refusing')
  await until(fires, 30_000, 'PostriderDeadLetters fires')
  assert.deepEqual(await query('ALERTS{severity="critical",alertstate="firing"}'), [])
  stop.abort()
  await load
})
