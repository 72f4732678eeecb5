// What SDKs put on the wire whose registries or runtimes are not here, written after their sources: which file says what
// stands at each. One batch of the six call types, and the request for settings before it.
import { gzipSync } from 'node:zlib'
import { rawRequest } from './raw-http.ts'

/** What the application says in each of them. */
export const said = {
  userId: 'Zoë-7',
  anonymousId: '0f8e2d3c-5b6a-4978-8a6b-1c2d3e4f5a6b',
  newId: 'zoë@shop.example',
  event: 'Bestellung 🛒 / “fertig”',
  page: 'Über uns',
  groupId: 'grüne-7',
  properties: { total: 27.5, url: 'https://shop.example/ä?a=1&b=2', list: [1, null, true], note: '東京 <b>' },
  traits: { name: 'Zoë', plan: 'pro' },
} as const

export type RecordedType = 'identify' | 'track' | 'page' | 'screen' | 'group' | 'alias'

/** By the device's clock, epoch ms. */
interface Times {
  at: number
  sentAt: number
}

export interface SdkRecording {
  /** Name and version. */
  sdk: string
  /** The application’s name for what its calls carry as `context.library`. */
  library: string
  types: readonly RecordedType[]
  /** Null where it asks for none. */
  settings: ((key: string) => Buffer) | null
  batch(key: string, times: Times): Buffer
  /** Reads the answer as JSON, and takes what is none for a failure. */
  readsJson: boolean
  /** It sends to `/v1/import`, where times are not corrected. */
  isImport: boolean
  /** What becomes of a batch that was answered so, by what the settings said of retries. */
  after(status: number, backoff: Backoff): 'done' | 'sent again' | 'given up'
}

/** `httpConfig.backoffConfig` of the settings. */
export interface Backoff {
  default4xxBehavior: 'drop' | 'retry'
  default5xxBehavior: 'drop' | 'retry'
  statusCodeOverrides: Readonly<Record<string, 'drop' | 'retry'>>
}

const six: readonly RecordedType[] = ['identify', 'track', 'page', 'screen', 'group', 'alias']
const withoutPage = six.filter((type) => type !== 'page')

const iso = (ms: number) => new Date(ms).toISOString()
/** Of a time of one second's precision, in the zone of the server: PHP's `date('c')`. */
const isoSeconds = (ms: number) => iso(ms).replace(/\.\d+Z$/, '+00:00')
/** .NET's round-trip form: seven digits of a second. */
const roundTrip = (ms: number) => iso(ms).replace('Z', '4321Z')
/** The same of a local time. */
const roundTripLocal = (ms: number) => iso(ms + 7_200_000).replace('Z', '4321+02:00')

const escaped = (json: string, pattern: RegExp) =>
  json.replace(pattern, (sign) =>
    [...Array(sign.length).keys()]
      .map((at) => `\\u${sign.charCodeAt(at).toString(16).padStart(4, '0')}`)
      .join(''),
  )
const slashes = (json: string) => json.replaceAll('/', '\\/')

/** How SDKs follow it; what their own table says where the settings' has nothing. */
function byConfig(status: number, config: Backoff, own: Backoff['statusCodeOverrides'] = {}) {
  if (status < 300) return 'done'
  const byClass = status < 500 ? config.default4xxBehavior : config.default5xxBehavior
  const behavior = config.statusCodeOverrides[status] ?? own[status] ?? byClass
  return behavior === 'retry' ? 'sent again' : 'given up'
}

/** A messageId that tells SDK and type apart. */
export const idOf = (sdk: string, type: RecordedType) => `${sdk.split(' ')[0]}-${type}`

/** What a call of a type has beside what all have, in the tracking API's own words. */
function contentOf(type: RecordedType): Record<string, unknown> {
  switch (type) {
    case 'identify':
      return { traits: said.traits }
    case 'track':
      return { event: said.event, properties: said.properties }
    case 'page':
    case 'screen':
      return { name: said.page, properties: said.properties }
    case 'group':
      return { groupId: said.groupId, traits: said.traits }
    case 'alias':
      return { previousId: said.userId }
  }
}

/** The new id of an alias is who is calling from then on. */
const userOf = (type: RecordedType) => (type === 'alias' ? said.newId : said.userId)

const metadata = { bundled: [], unbundled: [], bundledIds: [] }

/** Sources/Segment/Utilities/Networking/HTTPClient.swift: paths, headers, no Authorization; Utilities/Retry/RetryStateMachine.swift and Retry/HttpConfig.swift: what is sent again. Utilities/Storage/Types/DirectoryStore.swift: the batch is a file of lines. Types.swift: the fields. */
const swift: SdkRecording = {
  sdk: 'analytics-swift 1.9.4',
  library: 'analytics-swift',
  types: withoutPage,
  settings: (key) => rawRequest(`/v1/projects/${key}/settings`, swiftHead, '', 'GET'),
  batch(key, { at, sentAt }) {
    const lines = withoutPage.map((type) =>
      slashes(
        JSON.stringify({
          anonymousId: said.anonymousId,
          type,
          messageId: idOf(swift.sdk, type),
          userId: userOf(type),
          timestamp: iso(at),
          context: {
            library: { name: 'analytics-swift', version: '1.9.4' },
            instanceId: 'F2B7C1D0-1111-4222-8333-444455556666',
            network: { bluetooth: false, cellular: false, wifi: true },
            screen: { width: 393, height: 852 },
          },
          integrations: {},
          _metadata: metadata,
          ...contentOf(type),
        }),
      ),
    )
    const body = `{ "batch": [\n${lines.join('\n,')}\n],"sentAt":"${iso(sentAt)}","writeKey":"${key}"}\n`
    return rawRequest('/v1/b', swiftHead, body)
  },
  readsJson: false,
  isImport: false,
  after: byConfig,
}
const swiftHead = [
  'Content-Type: application/json; charset=utf-8',
  'User-Agent: analytics-ios/1.9.4',
  'Accept-Encoding: gzip',
]

/** packages/core/src/api.ts: the request; analytics.ts: the settings, with `cdnProxy`; constants.ts and errors.ts: what is sent again; events.ts, context.ts: the fields. The User-Agent is that of React Native's `fetch` on Android. */
const reactNative: SdkRecording = {
  sdk: 'analytics-react-native 2.21.4',
  library: 'analytics-react-native',
  types: withoutPage,
  settings: (key) =>
    rawRequest(
      `/v1/projects/${key}/settings`,
      ['cache-control: no-cache', 'Accept-Encoding: gzip', 'User-Agent: okhttp/4.12.0'],
      '',
      'GET',
    ),
  batch(key, { at, sentAt }) {
    const batch = withoutPage.map((type) => ({
      type,
      ...contentOf(type),
      anonymousId: said.anonymousId,
      messageId: idOf(reactNative.sdk, type),
      timestamp: iso(at),
      context: {
        app: { build: '7', name: 'Shop', namespace: 'example.shop', version: '1.2' },
        device: { manufacturer: 'x', model: 'y', name: 'z', type: 'android' },
        library: { name: 'analytics-react-native', version: '2.21.4' },
        network: { cellular: true, wifi: false },
        instanceId: '6f0a',
      },
      integrations: {},
      userId: userOf(type),
      _metadata: metadata,
    }))
    return rawRequest(
      '/v1/b',
      [
        'content-type: application/json; charset=utf-8',
        'Connection: Keep-Alive',
        'Accept-Encoding: gzip',
        'User-Agent: okhttp/4.12.0',
      ],
      JSON.stringify({ batch, sentAt: iso(sentAt), writeKey: key }),
    )
  },
  readsJson: false,
  isImport: false,
  after: (status, config) =>
    byConfig(status, config, { 410: 'retry', 460: 'retry', 501: 'drop', 505: 'drop' }),
}

/** packages/core/lib/utils/http_client.dart: paths, headers, what is kept (plugins/segment_destination.dart too); event.dart and event.g.dart: the fields, absent ones as null. */
const flutter: SdkRecording = {
  sdk: 'analytics_flutter 1.1.10',
  library: 'analytics-flutter',
  types: withoutPage,
  settings: (key) => rawRequest(`/v1/projects/${key}/settings`, flutterHead, '', 'GET'),
  batch(key, { at, sentAt }) {
    const batch = withoutPage.map((type) => ({
      anonymousId: said.anonymousId,
      messageId: idOf(flutter.sdk, type),
      userId: userOf(type),
      // Dart writes microseconds.
      timestamp: iso(at).replace('Z', '321Z'),
      context: {
        custom: {},
        library: { custom: {}, name: 'analytics-flutter', version: '1.1.10' },
        network: { custom: {}, cellular: false, wifi: true, bluetooth: false },
        instanceId: '6f0b',
        traits: {},
      },
      integrations: null,
      _metadata: metadata,
      ...contentOf(type),
      type,
    }))
    const sent = iso(sentAt).replace('Z', '321Z')
    return rawRequest('/v1/b', flutterHead, JSON.stringify({ batch, sentAt: sent, writeKey: key }))
  },
  readsJson: false,
  isImport: false,
  after: (status) => (status < 300 ? 'done' : 'sent again'),
}
const flutterHead = [
  'user-agent: analytics-flutter/1.1.10',
  'content-type: application/json; charset=utf-8',
  'accept-encoding: gzip',
]

/** lib/segment/analytics/transport.rb: the request and what is sent again; defaults.rb: path and headers; field_parser.rb: the fields; utils.rb: times. */
const ruby: SdkRecording = {
  sdk: 'analytics-ruby 2.5.0',
  library: 'analytics-ruby',
  types: six,
  settings: null,
  batch(key, { at, sentAt }) {
    const local = (ms: number) => iso(ms + 3_600_000).replace('Z', '+01:00')
    const batch = six.map((type) => ({
      context: { library: { name: 'analytics-ruby', version: '2.5.0' } },
      messageId: idOf(ruby.sdk, type),
      timestamp: local(at),
      userId: userOf(type),
      anonymousId: said.anonymousId,
      type,
      ...contentOf(type),
    }))
    return rawRequest(
      '/v1/import',
      [
        'Accept: application/json',
        'Content-Type: application/json',
        'User-Agent: analytics-ruby/2.5.0',
        'Accept-Encoding: gzip;q=1.0,deflate;q=0.6,identity;q=0.3',
        `Authorization: Basic ${btoa(`${key}:`)}`,
        'Connection: close',
      ],
      JSON.stringify({ sentAt: local(sentAt), batch }),
    )
  },
  // It looks for an `error` in each, and sends again what it cannot read.
  readsJson: true,
  isImport: true,
  after: (status) => (status >= 500 || status === 429 ? 'sent again' : status >= 400 ? 'given up' : 'done'),
}

/** lib/Consumer/LibCurl.php: the request and what is sent again; lib/Consumer/QueueConsumer.php: the payload; lib/Client.php: the fields and times. `json_encode` escapes slashes and all that is not ASCII. */
const php: SdkRecording = {
  sdk: 'analytics-php 3.8.2',
  library: 'analytics-php',
  types: six,
  settings: null,
  batch(key, { at, sentAt }) {
    const batch = six.map((type) => ({
      userId: userOf(type),
      anonymousId: said.anonymousId,
      ...contentOf(type),
      context: { library: { name: 'analytics-php', version: '3.8.2', consumer: 'LibCurl' } },
      timestamp: isoSeconds(at),
      messageId: idOf(php.sdk, type),
      type,
    }))
    const json = slashes(JSON.stringify({ batch, sentAt: isoSeconds(sentAt) }))
    return rawRequest(
      '/v1/batch',
      [
        `Authorization: Basic ${btoa(`${key}:`)}`,
        'Accept: */*',
        'Content-Type: application/json',
        'Content-Encoding: gzip',
        'User-Agent: analytics-php/3.8.2',
      ],
      gzipSync(escaped(json, /[\u0080-\uffff]/g)),
    )
  },
  readsJson: false,
  isImport: false,
  // Anything but exactly 200 is an error.
  after: (status) =>
    status === 200 ? 'done' : status === 429 || (status >= 500 && status <= 600) ? 'sent again' : 'given up',
}

/** Analytics/Request/BlockingRequestHandler.cs: the request and what is sent again; Model/Batch.cs, Model/BaseAction.cs: the fields, absent ones as null. .NET Framework asks before it sends a body. */
const dotNet: SdkRecording = {
  sdk: 'Analytics.NET 3.8.1',
  library: 'Analytics.NET',
  types: six,
  settings: null,
  batch(key, { at, sentAt }) {
    const batch = six.map((type) => ({
      ...contentOf(type),
      ...((type === 'page' || type === 'screen') && { category: null }),
      type,
      messageId: idOf(dotNet.sdk, type),
      timestamp: roundTripLocal(at),
      context: { library: { name: 'Analytics.NET', version: '3.8.1' } },
      integrations: {},
      anonymousId: null,
      userId: userOf(type),
    }))
    return rawRequest(
      '/v1/import',
      [
        'User-Agent: Analytics.NET/3.8.1',
        `Authorization: Basic ${btoa(`${key}:`)}`,
        'Content-Type: application/json',
        'Expect: 100-continue',
      ],
      JSON.stringify({ messageId: '5f0e0ad0', sentAt: roundTripLocal(sentAt), batch }),
    )
  },
  readsJson: false,
  isImport: true,
  after: (status) =>
    status === 200 ? 'done' : status === 429 || (status >= 500 && status <= 600) ? 'sent again' : 'given up',
}

/** Analytics-CSharp/Segment/Analytics/Utilities/HTTPClient.cs: paths, headers (no Content-Type), gzip, what is kept; Utilities/Storage.cs: the batch; Types.cs: the fields. System.Text.Json escapes what is not ASCII, and what HTML could take for its own. */
const cSharp: SdkRecording = {
  sdk: 'Analytics-CSharp 2.6.0',
  library: 'Analytics-CSharp',
  types: six,
  settings: (key) =>
    rawRequest(
      `/v1/projects/${key}/settings`,
      ['Connection: close', 'Accept: application/json', 'Accept-Encoding: gzip, deflate'],
      '',
      'GET',
    ),
  batch(key, { at, sentAt }) {
    const events = six.map((type) =>
      JSON.stringify({
        type,
        anonymousId: said.anonymousId,
        messageId: idOf(cSharp.sdk, type),
        userId: userOf(type),
        timestamp: roundTrip(at),
        context: {
          library: { name: 'Analytics-CSharp', version: '2.6.0' },
          os: 'Unix 5.15',
          platform: '.NET 8',
        },
        integrations: {},
        metrics: null,
        _metadata: metadata,
        ...contentOf(type),
      }),
    )
    const json = `{"batch":[${events.join(',')}],"sentAt":"${roundTrip(sentAt)}","writeKey":"${key}"}`
    return rawRequest(
      '/v1/b',
      ['Connection: close', 'Accept: text/plain', 'Accept-Encoding: gzip, deflate', 'Content-Encoding: gzip'],
      gzipSync(escaped(json, /[\u0080-\uffff<>&'+]/g)),
    )
  },
  readsJson: false,
  isImport: false,
  after: (status) =>
    status < 300 ? 'done' : status >= 400 && status < 500 && status !== 429 ? 'given up' : 'sent again',
}

export const sdkRecordings: readonly SdkRecording[] = [swift, reactNative, flutter, ruby, php, dotNet, cSharp]
