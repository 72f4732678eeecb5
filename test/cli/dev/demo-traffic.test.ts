import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { makeCheckout } from '../../support/deployment/checkout.ts'
import { deploy } from '../../support/deployment/deployment.ts'
import { devEnv, devReady } from '../../support/deployment/dev-run.ts'
import { until } from '../../support/until.ts'

interface Overview {
  destinations: {
    id: string
    health: { word: string }
    delivered: number
    failed: number
    retried: number
    p50Ms: number | null
  }[]
  sources: { id: string; accepted: number; refused: number }[]
}

async function rig(t: TestContext) {
  const { KAFKA_BROKERS, SCHEMA_REGISTRY_URL, TOPIC_PREFIX, GROUP_ID } = (await deploy(t)).env
  const env = { KAFKA_BROKERS, SCHEMA_REGISTRY_URL, TOPIC_PREFIX, GROUP_ID } as Record<string, string>
  const checkout = await makeCheckout(t)
  const ports = { COLLECTOR_PORT: '0', CONSOLE_PORT: '0', METRICS_PORT: '0' }
  return async (...args: string[]) => {
    const dev = checkout.start(['dev', ...args], { ...env, ...ports })
    await dev.writes(devReady, 120_000)
    const [, console] = /\n {2}console +(http:\S+)\n/.exec(dev.written())!
    const [, token] = /^ADMIN_TOKEN=(\w+)$/m.exec(await devEnv(checkout))!
    const get = async (path: string): Promise<unknown> =>
      (await fetch(`${console}/api/v1${path}`, { headers: { authorization: `Bearer ${token}` } })).json()
    return {
      dev,
      overview: async () => (await get('/overview?window=10m')) as Overview,
      async end() {
        dev.signal('SIGTERM')
        assert.equal(await dev.ended, 0, dev.written())
        assert.doesNotMatch(dev.written(), /not taken/)
      },
    }
  }
}

test('with --demo-traffic everything moves within a minute; without it nothing of it is left at work', async (t) => {
  const start = await rig(t)
  const states = ({ destinations }: Overview) => {
    const known = new Map(destinations.map(({ id, health }) => [id, health.word]))
    return ['demo-healthy', 'demo-slow', 'demo-failing'].map((id) => known.get(id))
  }

  const first = await start('--demo-traffic')
  assert.match(first.dev.written(), /^Postrider.*\n\nDemo traffic is on: /)
  let seen: Overview
  const destination = (id: string) => seen.destinations.find((each) => each.id === id)!
  const source = (id: string) => seen.sources.find((each) => each.id === id)!
  await until(async () => {
    seen = await first.overview()
    const isMoving = ['demo-shop', 'demo-app'].every((id) => source(id).accepted > 0)
    const isDelivering = ['demo-healthy', 'demo-slow'].every((id) => destination(id).delivered > 0)
    return isMoving && isDelivering && destination('demo-failing').retried > 0
  }, 60_000)
  assert.equal(destination('demo-healthy').failed, 0)
  assert.ok(destination('demo-slow').p50Ms! >= 500)
  for (const id of ['demo-shop', 'demo-app']) assert.equal(source(id).refused, 0, id)
  await first.end()

  const second = await start()
  assert.doesNotMatch(second.dev.written(), /Demo traffic/)
  await until(async () => states(await second.overview()).every((state) => state === 'disabled'), 10_000)
  await second.end()

  const third = await start('--demo-traffic')
  // The console reads a moment later what was enabled.
  await until(async () => !states(await third.overview()).includes('disabled'), 10_000)
  await third.end()
})
