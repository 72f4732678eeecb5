// A published SDK in a process of its own, whose clock is off:
// node sdk-client.ts <sdk> <url> <writeKey> <clock's error in ms> <how long it may take to send, in ms>.
// It sends one call of each type, one with a time of long ago, and ends.
const [sdk, url, writeKey, skew, patience] = process.argv.slice(2) as [string, string, string, string, string]

const RealDate = Date
/** `new Date()` and `Date.now()` are off; a time that is given is what it is. */
globalThis.Date = class extends RealDate {
  constructor(...given: unknown[]) {
    if (given.length === 0) super(RealDate.now() + Number(skew))
    else super(...(given as [number]))
  }
  static override now(): number {
    return RealDate.now() + Number(skew)
  }
} as DateConstructor

interface Sender {
  identify(call: object): unknown
  track(call: object): unknown
  page(call: object): unknown
  screen(call: object): unknown
  group(call: object): unknown
  alias(call: object): unknown
  end(): Promise<unknown>
}

async function segment(): Promise<Sender> {
  const { Analytics } = await import('@segment/analytics-node')
  const client = new Analytics({ writeKey, host: url, flushInterval: 200 })
  // What a listener throws is caught by the SDK.
  client.on('error', ({ code, reason }) => {
    console.error(code, reason)
    process.exitCode = 1
  })
  return Object.assign(client as unknown as Sender, {
    end: () => client.closeAndFlush({ timeout: Number(patience) }),
  })
}

async function rudder(): Promise<Sender> {
  const { default: RudderAnalytics } = await import('@rudderstack/rudder-sdk-node')
  const client = new RudderAnalytics(writeKey, { dataPlaneUrl: url, logLevel: 'error' })
  return Object.assign(client as unknown as Sender, { end: () => client.flush() })
}

const user = { userId: 'u-1', anonymousId: 'a-1' }
const client = await (sdk === 'segment' ? segment() : rudder())
client.identify({ ...user, traits: { plan: 'pro', seats: 3 }, context: { ip: '192.0.2.9', locale: 'de' } })
client.track({ ...user, event: 'Signed Up', properties: { total: 27.5, nested: { list: [1, null, 'ü'] } } })
client.page({
  ...user,
  category: 'Docs',
  name: 'Start',
  properties: { url: 'https://shop.example/', title: 'Start' },
})
client.screen({ ...user, name: 'Home', context: { device: { model: 'x', type: 'ios' } } })
client.group({ ...user, groupId: 'g-1', traits: { 'number of seats': 5 } })
client.alias({ userId: 'u-1', previousId: 'a-1' })
client.track({ ...user, event: 'Nowhere', integrations: { All: false } })
client.track({ ...user, event: 'Here', integrations: { All: false, Webhooks: true } })
client.track({ ...user, event: 'Long Ago', timestamp: new RealDate('2020-02-29T12:34:56.789Z') })
await client.end()
