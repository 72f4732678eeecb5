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
