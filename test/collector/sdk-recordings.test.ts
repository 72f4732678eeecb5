// SDKs that cannot run here, played over a socket as their sources write them: test/support/calls/sdk-recordings.ts.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import type { AnalyticsCall } from '../../src/core/call/analytics-call.ts'
import { checkCall } from '../../src/core/call/check-call.ts'
import {
  collected,
  post,
  startCollector,
  track,
  withSource,
  writeKey,
  type RunningCollector,
} from '../support/calls/collectors.ts'
import { sendRaw, type RawAnswer } from '../support/calls/raw-http.ts'
import {
  idOf,
  said,
  sdkRecordings,
  type Backoff,
  type RecordedType,
  type SdkRecording,
} from '../support/calls/sdk-recordings.ts'
import { deploy, type Deployment } from '../support/deployment/deployment.ts'
import { ownKafka } from '../support/deployment/rig.ts'
import { until } from '../support/until.ts'

const hourMs = 3_600_000

async function answerTo(collector: RunningCollector, request: Buffer): Promise<RawAnswer> {
  const answer = await sendRaw(collector.port, request)
  assert.ok(answer, 'no answer')
  return answer
}

/** Its calls by type, as they lie in Kafka; each once. */
async function callsOf(
  deployment: Deployment,
  { sdk, types }: SdkRecording,
): Promise<Map<RecordedType, AnalyticsCall>> {
  const all = await collected(deployment)
  return new Map(
    types.map((type) => {
      const found = all.filter(({ messageId }) => messageId === idOf(sdk, type))
      assert.equal(found.length, 1, `${sdk}: ${type}`)
      return [type, found[0]!]
    }),
  )
}

interface Settings {
  integrations: { 'Segment.io': { apiKey: string; apiHost: string; httpConfig: { backoffConfig: Backoff } } }
  metrics: { sampleRate: number }
}

/** How often it is to be tried again, as the collector says it to every SDK that asks. */
async function backoffOf(collector: RunningCollector): Promise<Backoff> {
  const response = await fetch(`${collector.url}/v1/projects/${writeKey}/settings`)
  const { integrations } = (await response.json()) as Settings
  return integrations['Segment.io'].httpConfig.backoffConfig
}

const parsed = (text: string | null): unknown => (text === null ? null : JSON.parse(text))

test('requests written after the sources of SDKs arrive with their values, and refusals are what these send again', async (t) => {
  const deployment = await deploy(t)
  await withSource(deployment)
  // Their User-Agents are in lists of bots; they are none.
  await deployment.settings.execute({ type: 'update_source', id: 'shop', bots: 'drop' })
  const collector = await startCollector(deployment)
  const quota = (maxRate: string | null) =>
    deployment.settings.execute({ type: 'update_source', id: 'shop', maxRate })

  const backoff = await backoffOf(collector)

  for (const recording of sdkRecordings) {
    const { sdk, library, settings, types, isImport } = recording
    await t.test(sdk, async () => {
      if (settings) {
        const answer = await answerTo(collector, settings(writeKey))
        assert.equal(answer.status, 200)
        const { integrations, metrics } = JSON.parse(answer.body) as Settings
        const { apiKey, apiHost } = integrations['Segment.io']
        assert.deepEqual([apiKey, apiHost, metrics.sampleRate], [writeKey, '127.0.0.1/v1', 0])
        const unknown = await answerTo(collector, settings('nobody'))
        assert.equal(unknown.status, 404)
      }

      // The device's clock is an hour ahead; what is imported keeps its times.
      const skewMs = isImport ? 0 : hourMs
      const sentAt = Date.now()
      const at = sentAt - 10_000
      const request = recording.batch(writeKey, { at: at + skewMs, sentAt: sentAt + skewMs })
      await quota('1/m')
      let spent = 0
      await until(async () => (await post(collector, '/v1/track', track(`${sdk}-${spent++}`))).status === 429)
      const busy = await answerTo(collector, request)
      assert.equal(busy.status, 429)
      assert.match(busy.headers['retry-after']!, /^[1-9]\d*$/)
      assert.equal(recording.after(busy.status, backoff), 'sent again')
      if (recording.readsJson) assert.equal(typeof JSON.parse(busy.body), 'object')
      await quota(null)
      await until(async () => (await post(collector, '/v1/track', track(`${sdk}-${spent++}`))).status === 200)

      const before = Date.now()
      for (let time = 0; time < 2; time++) {
        const answer = await answerTo(collector, request)
        assert.equal(answer.body, '{"success":true}', 'also where the first answer was lost')
        assert.equal(recording.after(answer.status, backoff), 'done')
      }
      const calls = await callsOf(deployment, recording)
      for (const [type, call] of calls) {
        assert.equal(checkCall(call).fault, null)
        assert.equal(call.type, type)
        assert.equal(call.userId, type === 'alias' ? said.newId : said.userId)
        // The same bytes are sent again: what passed until they were taken is for the collector the device's clock.
        const lateMs = isImport ? [0, 0] : [before - sentAt, call.receivedAt - sentAt]
        const offMs = call.timestamp - at
        assert.ok(offMs > lateMs[0]! - 2_000 && offMs < lateMs[1]! + 2_000, `${type} happened at ${offMs} ms`)
        const context = parsed(call.context) as { library: { name: string } }
        assert.equal(context.library.name, library)
      }
      const { properties, event } = calls.get('track')!
      assert.deepEqual([event, parsed(properties)], [said.event, said.properties])
      assert.deepEqual(parsed(calls.get('identify')!.traits), said.traits)
      const { groupId, traits } = calls.get('group')!
      assert.deepEqual([groupId, parsed(traits)], [said.groupId, said.traits])
      for (const type of types.filter((each) => each === 'page' || each === 'screen')) {
        const { name, properties } = calls.get(type)!
        assert.deepEqual([name, parsed(properties)], [said.page, said.properties], type)
      }
      assert.equal(calls.get('alias')!.previousId, said.userId)
    })
  }

  await t.test('one that asks before it sends a body is told to go on', async (t) => {
    const asking = sdkRecordings.find(({ library }) => library === 'Analytics.NET')!
    const request = asking.batch(writeKey, { at: Date.now(), sentAt: Date.now() })
    const headEnd = request.indexOf('\r\n\r\n') + 4
    const socket = connect(collector.port, '127.0.0.1')
    t.after(() => socket.destroy())
    socket.write(request.subarray(0, headEnd))
    const [first] = (await once(socket, 'data')) as [Buffer]
    assert.equal(first.toString(), 'HTTP/1.1 100 Continue\r\n\r\n')
    socket.write(request.subarray(headEnd))
    const [second] = (await once(socket, 'data')) as [Buffer]
    assert.match(second.toString(), /^HTTP\/1\.1 200 /)
  })

  await t.test('what a wrong key leads to is what docs/senders.md says', async () => {
    const after = []
    for (const recording of sdkRecordings) {
      const { status } = await answerTo(
        collector,
        recording.batch('nobody', { at: Date.now(), sentAt: Date.now() }),
      )
      after.push([recording.sdk.split(' ')[0], status, recording.after(status, backoff)])
    }
    assert.deepEqual(after, [
      ['analytics-swift', 401, 'given up'],
      ['analytics-react-native', 401, 'given up'],
      ['analytics_flutter', 401, 'sent again'],
      ['analytics-ruby', 401, 'given up'],
      ['analytics-php', 401, 'given up'],
      ['Analytics.NET', 401, 'given up'],
      ['Analytics-CSharp', 401, 'given up'],
    ])
  })
})

test('while Kafka is away each of these SDKs gets an answer that it sends again for, and then nothing is lost or twice there', async (t) => {
  const kafka = await ownKafka(t)
  // A test within, for its topics must be gone before its broker is.
  await t.test('one broker', async (t) => {
    const deployment = await deploy(t, { KAFKA_BROKERS: kafka.brokers.join(',') })
    await withSource(deployment)
    const collector = await startCollector(deployment)
    const backoff = await backoffOf(collector)
    const now = Date.now()
    const requests = sdkRecordings.map((recording) => ({
      recording,
      request: recording.batch(writeKey, { at: now, sentAt: now }),
    }))
    await kafka.kill()
    await until(() => collector.problem() !== null, 20_000, 'a problem')
    for (const { recording, request } of requests) {
      const { status, body } = await answerTo(collector, request)
      assert.equal(status, 503, recording.sdk)
      assert.equal(recording.after(status, backoff), 'sent again')
      if (recording.readsJson) assert.equal(typeof JSON.parse(body), 'object')
    }
    await kafka.start()
    for (const { recording, request } of requests) {
      await until(async () => (await answerTo(collector, request)).status === 200, 30_000, recording.sdk)
      await callsOf(deployment, recording)
    }
  })
})
