import { setTimeout as sleep } from 'node:timers/promises'
import type { SettingsLog } from '../../adapters/folded-log/settings-log.ts'
import { createSecrets } from '../../adapters/secrets.ts'
import { messageOf } from '../../errors.ts'
import { freePort, isPortFree } from '../../local/ports.ts'
import type { Part } from '../../supervisor.ts'
import { type Context, withOpen } from '../context.ts'
import { openSettings } from '../deployment.ts'
import { untilAborted } from '../part-lives.ts'
import { startReceiver, type RunningReceiver } from '../receive.ts'
import { ensureDestination, ensureSource } from './demo.ts'
import type { DevState, Screen } from './dev.ts'

const sources = { shop: ['demo-shop', 'Demo shop'], app: ['demo-app', 'Demo app'] } as const

/** Where the traffic goes: each with a receiver of its own, at a path of its name. */
const destinations = [
  { id: 'demo-healthy', name: 'Demo: healthy' },
  { id: 'demo-slow', name: 'Demo: slow' },
  { id: 'demo-failing', name: 'Demo: fails now and then' },
] as const

/** Between two calls, in ms. */
const everyMs = 400
const slowMs = 900
const firstPort = 4_011
const settingsMs = 30_000

export const trafficLine =
  'Demo traffic is on: some calls a second of two sources, to a healthy, a slow and a failing destination.\n' +
  'What fails is shown in the console, not here, unless LOG_LEVEL is set.\n'

export interface Traffic {
  part: Part
  close(): Promise<void>
}

/** Starts the receivers and makes sources and destinations; its part sends calls to the collector until it is stopped. */
export async function prepareTraffic(
  context: Context,
  state: DevState,
  screen: Screen,
  collectorUrl: Promise<string>,
): Promise<Traffic> {
  // As the demo's own receiver, which is there by now.
  const secret = state.get('DEV_SHARED_SECRET')!
  const before = state.get('DEV_TRAFFIC_PORTS')?.split(',').map(Number) ?? []
  const receivers: RunningReceiver[] = []
  const close = async () => void (await Promise.all(receivers.map((each) => each.close())))
  const startedAt = performance.now()
  let requests = 0
  try {
    const ports: number[] = []
    for (const [at, { id }] of destinations.entries()) {
      const wanted = before[at] ?? firstPort + at
      const port = (await isPortFree(wanted)) && !ports.includes(wanted) ? wanted : await freePort(ports)
      ports.push(port)
      const isFailing = id === 'demo-failing'
      const receiver = await startReceiver({
        port,
        secret,
        ...(id === 'demo-slow' && { delayMs: slowMs }),
        ...(isFailing && { status: () => failingStatus(performance.now() - startedAt, ++requests) }),
        onRequest: () => {},
      })
      receivers.push(receiver)
    }
    const writeKeys = await withOpen(openSettings(context), async (settings) => {
      await settings.start(AbortSignal.timeout(settingsMs), 'fail')
      for (const [id, name] of Object.values(sources)) await ensureSource(settings, id, name)
      const secrets = createSecrets(context.config.secretsKeys)
      const sourceIds = Object.values(sources).map(([id]) => id)
      for (const [at, { id, name }] of destinations.entries()) {
        const formerUrl = before[at] === undefined ? null : `http://127.0.0.1:${before[at]}/`
        const receiver = { url: receivers[at]!.url, formerUrl, secret }
        await ensureDestination(settings, secrets, { id, name, sourceIds }, receiver)
        await settings.execute({ type: 'enable_destination', id })
      }
      return new Map(sourceIds.map((id) => [id as string, settings.state.sources.get(id)!.writeKey]))
    })
    await state.set({ DEV_TRAFFIC_PORTS: ports.join() })
    const send = sender(writeKeys)
    return { close, part: { name: 'demo traffic', run: (signal) => run(signal, screen, collectorUrl, send) } }
  } catch (error) {
    await close()
    throw error
  }
}

/**
 * A run without traffic has no receivers for what an earlier run's left in the tiers: its destinations are disabled,
 * so that nobody is asked to repair them.
 */
export async function endTraffic(context: Context, state: DevState): Promise<null> {
  if (state.get('DEV_TRAFFIC_PORTS') === null) return null
  await withOpen(openSettings(context), async (settings: SettingsLog) => {
    await settings.start(AbortSignal.timeout(settingsMs), 'fail')
    for (const { id } of destinations)
      if (settings.state.destinations.get(id)?.enabled)
        await settings.execute({ type: 'disable_destination', id })
  })
  return null
}

type Send = (url: string, call: TrafficCall, signal: AbortSignal) => Promise<string | null>

async function run(
  signal: AbortSignal,
  screen: Screen,
  collectorUrl: Promise<string>,
  send: Send,
): Promise<void> {
  let isReported = false
  try {
    const url = await untilAbortedOr(collectorUrl, signal)
    if (url === null) return
    for (let n = 0; !signal.aborted; n++) {
      const problem = await send(url, trafficCall(n), signal)
      if (problem !== null && !isReported && !signal.aborted)
        screen.say(`  note: a call of the demo traffic was not taken: ${problem}`)
      isReported = problem !== null
      await sleep(everyMs, undefined, { signal })
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

/** Null where the signal is first. */
const untilAbortedOr = <T>(promise: Promise<T>, signal: AbortSignal): Promise<T | null> =>
  Promise.race([promise, untilAborted(signal).then(() => null)])

/** Resolves to why a call was not taken; null where it was. */
const sender =
  (writeKeys: ReadonlyMap<string, string>): Send =>
  async (url, { source, type, body }, signal) => {
    const key = writeKeys.get(sources[source][0])!
    try {
      const response = await fetch(`${url}/v1/${type}`, {
        method: 'POST',
        headers: {
          authorization: `Basic ${Buffer.from(`${key}:`).toString('base64')}`,
          'content-type': 'application/json',
        },
        body: JSON.stringify(body),
        signal,
      })
      const text = await response.text()
      return response.ok ? null : `${response.status} ${text}`
    } catch (error) {
      return messageOf(error)
    }
  }

/** A call of the demo's traffic, as the collector takes it at `/v1/<type>`. */
export interface TrafficCall {
  source: 'shop' | 'app'
  type: string
  body: Record<string, unknown>
}

const people = [
  ...['ada', 'grace', 'lin', 'noor', 'kofi', 'mei'],
  ...['tomas', 'ines', 'yuki', 'omar', 'freya', 'ravi'],
]
const products = ['Teapot', 'Notebook', 'Lamp', 'Backpack', 'Kettle', 'Bicycle bell']
const plans = ['free', 'pro', 'team']

type Step = (user: string, n: number) => TrafficCall

const product = (n: number) => ({
  product: products[n % products.length]!,
  price: 5 + ((n * 37) % 190) / 2,
  currency: 'EUR',
})

const track =
  (source: TrafficCall['source'], event: string): Step =>
  (userId, n) => ({ source, type: 'track', body: { userId, event, properties: product(n) } })

/** One after another; a person buys now and then. */
const steps: readonly Step[] = [
  (userId, n) => ({
    source: 'shop',
    type: 'identify',
    body: { userId, traits: { plan: plans[n % plans.length], visits: n } },
  }),
  (userId) => ({ source: 'shop', type: 'page', body: { userId, name: 'Home', properties: { path: '/' } } }),
  track('shop', 'Product Viewed'),
  (userId) => ({ source: 'app', type: 'screen', body: { userId, name: 'Basket' } }),
  track('app', 'Product Added'),
  track('shop', 'Product Viewed'),
  track('app', 'Checkout Started'),
  (userId, n) => ({
    source: 'shop',
    type: 'track',
    body: { userId, event: 'Order Completed', properties: { orderId: String(4_000 + n), ...product(n) } },
  }),
  (userId, n) => ({
    source: 'app',
    type: 'group',
    body: { userId, groupId: `team-${n % 3}`, traits: { plan: 'team' } },
  }),
]

/** The n-th call, from 0. Each person goes through the steps at another pace. */
export function trafficCall(n: number): TrafficCall {
  const step = steps[(n * 7 + Math.floor(n / steps.length)) % steps.length]!
  return step(people[(n * 5) % people.length]!, n)
}

/** How the failing receiver answers: 503 for some seconds of each half minute, and now and then for good. */
export function failingStatus(runningMs: number, requests: number): number {
  const second = (runningMs / 1_000) % failEverySeconds
  if (second >= failFromSecond && second < failToSecond) return 503
  return requests % rejectEvery === 0 ? 422 : 200
}

const [failEverySeconds, failFromSecond, failToSecond] = [30, 8, 14]
const rejectEvery = 40
