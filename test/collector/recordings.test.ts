// Requests as SDKs that are not installed here put them on the wire (facts of their sources: where the key is, what
// the content is called and how it is packed, how times and absent values are written), sent byte for byte.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import type { AnalyticsCall } from '../../src/core/call/analytics-call.ts'
import { checkCall, allowsWebhooks } from '../../src/core/call/check-call.ts'
import { collected, startCollector, withSource, writeKey } from '../support/calls/collectors.ts'
import { rawRequest, sendRaw } from '../support/calls/raw-http.ts'
import { deploy } from '../support/deployment/deployment.ts'

const hourMs = 3_600_000
const anHourAhead = Date.now() + hourMs
const pad = (n: number, length = 2) => String(n).padStart(length, '0')

/** As Python's `datetime.isoformat()` writes UTC. */
const python = (ms: number) => new Date(ms).toISOString().replace('Z', '123+00:00')
/** As Go's `2006-01-02T15:04:05-0700` writes UTC, in v2 of the SDK. */
const goV2 = (ms: number) => new Date(ms).toISOString().replace(/\.\d+Z$/, '+0000')
/** As Go's RFC3339Nano writes a zone east of UTC. */
const goV3 = (ms: number) => {
  const local = new Date(ms + 2 * hourMs)
  return `${local.toISOString().slice(0, 19)}.${pad(local.getMilliseconds(), 3)}456789+02:00`
}

interface Recording {
  sdk: string
  request: Buffer
  /** What must lie in Kafka for the messageId. */
  messageId: string
  expected: Partial<AnalyticsCall>
  /** When it happened by the server's clock; null: now. */
  at: number | null
}

const basic = (key: string) => `Authorization: Basic ${btoa(key)}`

const recordings: Recording[] = [
  {
    sdk: 'analytics-node 6.2',
    messageId: 'node-0c1a',
    at: null,
    request: rawRequest(
      '/v1/batch',
      [
        'Accept: application/json, text/plain, */*',
        'Content-Type: application/json',
        'user-agent: analytics-node/6.2.0',
        basic(`${writeKey}:`),
        'Connection: close',
      ],
      JSON.stringify({
        batch: [
          {
            userId: 'u-1',
            event: 'Item Purchased',
            properties: { revenue: 39.95 },
            type: 'track',
            context: { library: { name: 'analytics-node', version: '6.2.0' } },
            _metadata: { nodeVersion: '16.0.0' },
            timestamp: new Date(anHourAhead).toISOString(),
            messageId: 'node-0c1a',
          },
        ],
        timestamp: new Date(anHourAhead).toISOString(),
        sentAt: new Date(anHourAhead).toISOString(),
      }),
    ),
    expected: {
      event: 'Item Purchased',
      properties: '{"revenue":39.95}',
      channel: null,
      originalTimestamp: anHourAhead,
    },
  },
  {
    sdk: 'analytics-python 2.3',
    messageId: '5f0e0ad0-0000-4000-8000-00000000cafe',
    at: null,
    request: rawRequest(
      '/v1/batch',
      [
        'User-Agent: analytics-python/2.3.2',
        'Accept-Encoding: gzip, deflate',
        'Content-Type: application/json',
        'Content-Encoding: gzip',
      ],
      gzipSync(
        `{"sentAt": "${python(anHourAhead)}", "writeKey": "${writeKey}", "batch": [{"integrations": {}, "anonymousId": null, "properties": {"amount": 1.0}, "timestamp": "${python(anHourAhead)}", "context": {"library": {"name": "analytics-python", "version": "2.3.2"}}, "userId": 7331, "type": "page", "category": null, "name": "Home", "messageId": "5f0e0ad0-0000-4000-8000-00000000cafe"}]}`,
      ),
    ),
    expected: {
      type: 'page',
      userId: '7331',
      anonymousId: null,
      category: null,
      name: 'Home',
      properties: '{"amount": 1.0}',
    },
  },
  {
    sdk: 'analytics-go v2',
    messageId: 'go-v2',
    at: null,
    request: rawRequest(
      '/v1/batch',
      [
        'User-Agent: analytics-go (version: 2.1.0)',
        'Content-Type: application/json',
        basic(`${writeKey}:`),
        'Accept-Encoding: gzip',
      ],
      `{"context":{"library":{"name":"analytics-go","version":"2.1.0"}},"messages":null,"batch":[{"messageId":"go-v2","sentAt":"","type":"identify","userId":"u-1","traits":{"a":1},"timestamp":"${goV2(anHourAhead)}"}],"messageId":"b-1","sentAt":"${goV2(anHourAhead)}","timestamp":""}`,
    ),
    expected: {
      type: 'identify',
      traits: '{"a":1}',
      context: '{"library":{"name":"analytics-go","version":"2.1.0"}}',
    },
  },
  {
    sdk: 'analytics-go v3',
    messageId: 'go-v3',
    at: null,
    request: rawRequest(
      '/v1/batch',
      ['User-Agent: analytics-go (version: 3.0.0)', 'Content-Type: application/json', basic(`${writeKey}:`)],
      `{"messageId":"b-2","sentAt":"${goV3(anHourAhead)}","batch":[{"type":"group","messageId":"go-v3","userId":"u-1","groupId":"g","timestamp":"${goV3(anHourAhead)}","traits":{"size":3},"integrations":{"all":false}}],"context":{"library":{"name":"analytics-go","version":"3.0.0"}}}\n`,
    ),
    expected: {
      type: 'group',
      groupId: 'g',
      integrations: '{"all":false}',
      context: '{"library":{"name":"analytics-go","version":"3.0.0"}}',
    },
  },
  {
    sdk: 'a browser’s beacon',
    messageId: 'ajs-1',
    at: null,
    request: rawRequest(
      '/v1/p',
      ['Origin: https://shop.example', 'Content-Type: text/plain;charset=UTF-8', 'Sec-Fetch-Mode: no-cors'],
      JSON.stringify({
        timestamp: new Date(anHourAhead).toISOString(),
        integrations: {},
        anonymousId: 'a-1',
        type: 'page',
        properties: { path: '/', url: 'https://shop.example/' },
        context: { page: { path: '/' }, userAgent: 'x' },
        messageId: 'ajs-1',
        userId: null,
        writeKey,
        sentAt: new Date(anHourAhead).toISOString(),
        _metadata: { bundled: [] },
      }),
    ),
    expected: {
      anonymousId: 'a-1',
      userId: null,
      context: '{"page":{"path":"/"},"userAgent":"x","ip":"127.0.0.1"}',
    },
  },
  {
    sdk: 'a historical import',
    messageId: 'import-1',
    at: Date.UTC(2019, 1, 3, 4, 5, 6, 7),
    request: rawRequest(
      '/v1/import',
      ['Content-Type: application/json', basic(writeKey)],
      `{"batch":[{"type":"track","userId":"u-1","event":"Old","messageId":"import-1","timestamp":"2019-02-03T04:05:06.007Z","integrations":{"All":true}}],"sentAt":"${new Date(anHourAhead).toISOString()}"}`,
    ),
    expected: { event: 'Old', originalTimestamp: Date.UTC(2019, 1, 3, 4, 5, 6, 7) },
  },
]

test('recorded requests of other SDKs are understood as they are meant', async (t) => {
  const deployment = await deploy(t)
  await withSource(deployment)
  const collector = await startCollector(deployment)
  const began = Date.now()
  for (const { sdk, request } of recordings) {
    const answer = await sendRaw(collector.port, request)
    // Python's SDK sends anything but exactly this again.
    assert.deepEqual([answer?.status, answer?.body], [200, '{"success":true}'], sdk)
  }
  const calls = new Map((await collected(deployment)).map((call) => [call.messageId, call]))
  assert.equal(calls.size, recordings.length)
  for (const { sdk, messageId, expected, at } of recordings) {
    const call = calls.get(messageId)!
    assert.equal(checkCall(call).fault, null, sdk)
    for (const [field, value] of Object.entries(expected))
      assert.equal(call[field as keyof AnalyticsCall], value, `${sdk}: ${field}`)
    if (at !== null) assert.equal(call.timestamp, at, sdk)
    // The recordings' clock is an hour ahead, and some write no fractions.
    else
      assert.ok(
        call.timestamp > began - 10_000 && call.timestamp < Date.now() + 10_000,
        `${sdk}: ${call.timestamp}`,
      )
  }
  assert.equal(allowsWebhooks(calls.get('go-v3')!), false)
})
