import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { AnalyticsCall } from '../../../src/core/call/analytics-call.ts'
import { defaultOptions } from '../../../src/core/settings/destination-options.ts'
import { bodyForPeople } from '../../../src/core/shape/secret-holes.ts'
import { bodyFaults, Shape } from '../../../src/core/shape/shape.ts'
import { someCall } from '../../support/calls/calls.ts'

const folder = join(import.meta.dirname, '../../../presets')
const read = (name: string): string => readFileSync(join(folder, name), 'utf8')

function rendered(name: string, call: Partial<AnalyticsCall>): Record<string, unknown> {
  const options = { ...defaultOptions, body: { all: read(name) } }
  const shape = new Shape({ id: 'x', name: 'X', urls: [], options }, (text) => hash('sha256', text))
  return JSON.parse(shape.render(someCall(call), 'm-1:x').body) as Record<string, unknown>
}

const down: Partial<AnalyticsCall> = {
  userId: null,
  anonymousId: 'postrider:crm',
  event: 'Endpoint Down',
  properties: JSON.stringify({
    ...{ destination: 'crm', urlId: 'u1', since: '2026-07-03T09:12:41.007Z', lastResponse: null },
    ...{ text: 'Down: crm (u1)', cause: 'destination:crm:down', ended: false, more: 0 },
  }),
}
const lost: Partial<AnalyticsCall> = {
  ...down,
  event: 'Records Lost',
  properties: JSON.stringify({
    ...{ destination: null, topic: 'analytics.calls', count: 3 },
    ...{ text: 'Lost: 3 records', cause: 'lost:analytics.calls/0', ended: null, more: 0 },
  }),
}

test('each preset is a template without faults', () => {
  const names = readdirSync(folder).filter((name) => name.endsWith('.json'))
  assert.deepEqual(names.toSorted(), ['ga4.json', 'pagerduty.json', 'slack.json', 'teams.json'])
  for (const name of names) assert.deepEqual(bodyFaults(read(name)), [], name)
})

test('PagerDuty gets what its Events API needs, and a recovery ends what an outage began', () => {
  const event = rendered('pagerduty.json', down)
  assert.deepEqual(
    [event.event_action, String(event.dedup_key).slice(0, 18), event.payload],
    [
      'trigger',
      'postrider 3779e75c',
      {
        summary: 'Down: crm (u1)',
        source: 'postrider',
        severity: 'error',
        timestamp: '2026-01-02T03:04:05.006Z',
        custom_details: JSON.parse(down.properties!),
      },
    ],
  )
  const recoveredOf = (ended: boolean) => {
    const properties = { ...(JSON.parse(down.properties!) as object), ended }
    return rendered('pagerduty.json', {
      ...{ ...down, event: 'Endpoint Recovered', properties: JSON.stringify(properties) },
    })
  }
  // One of two URLs: the other one is still down.
  assert.equal(recoveredOf(false).event_action, 'trigger')
  const recovered = recoveredOf(true)
  assert.deepEqual([recovered.event_action, recovered.dedup_key], ['resolve', event.dedup_key])
  assert.equal((rendered('pagerduty.json', lost).payload as { severity: string }).severity, 'critical')
})

test('Slack and Teams get a message that names what has happened to which destination', () => {
  for (const name of ['slack.json', 'teams.json']) {
    const text = JSON.stringify(rendered(name, down))
    assert.match(text, /Endpoint Down/)
    assert.match(text, /crm \(u1\)/)
    assert.match(JSON.stringify(rendered(name, lost)), /Records Lost/)
  }
  assert.equal(rendered('slack.json', down).text, 'Down: crm (u1)')
})

/** As far as the schemas of Adaptive Cards 1.4 ask for more than the parts' names. */
test('each fact of a card in Teams has a title and a value that are texts, whatever an event does not have', () => {
  for (const event of [
    down,
    lost,
    { ...down, event: 'Destination Paused', properties: '{"since":null,"text":"Paused: crm"}' },
  ]) {
    const { attachments } = rendered('teams.json', event) as {
      attachments: {
        content: { body: { type: string; text?: unknown; facts?: Record<string, unknown>[] }[] }
      }[]
    }
    const [title, factSet] = attachments[0]!.content.body
    assert.deepEqual([title!.type, typeof title!.text, factSet!.type], ['TextBlock', 'string', 'FactSet'])
    for (const { title, value } of factSet!.facts!)
      assert.deepEqual([typeof title, typeof value], ['string', 'string'], String(title))
  }
})

/** As far as its published OpenAPI document has bounds. */
test('PagerDuty gets a severity that it knows, and a summary and a source of text, for every event', () => {
  for (const event of [down, lost]) {
    const { payload, routing_key, event_action } = rendered('pagerduty.json', event) as {
      payload: Record<string, unknown>
      routing_key: unknown
      event_action: unknown
    }
    assert.ok(['critical', 'warning', 'error', 'info'].includes(payload.severity as string))
    assert.deepEqual(
      [payload.summary, payload.source, payload.timestamp, routing_key].map((each) => typeof each),
      Array(4).fill('string'),
    )
    assert.equal(bodyForPeople(JSON.stringify({ routing_key })), '{"routing_key":"${secret.routing_key}"}')
    assert.equal(typeof payload.custom_details, 'object')
    assert.equal(event_action, 'trigger')
  }
})

/** As far as Block Kit has bounds for these. */
test('no text of a Slack message is empty, and none is longer than a block takes', () => {
  for (const event of [down, lost]) {
    const { text, blocks } = rendered('slack.json', event) as {
      text: string
      blocks: { text?: { text: string }; elements?: { text: string }[] }[]
    }
    const texts = [
      text,
      ...blocks.flatMap((block) =>
        [block.text, ...(block.elements ?? [])].flatMap((each) => each?.text ?? []),
      ),
    ]
    assert.equal(texts.length, 3)
    for (const each of texts) assert.ok(each.trim().length > 0 && each.length <= 3_000, each)
  }
})

test('Google Analytics gets a client, a user where there is one, and the event with its properties', () => {
  assert.deepEqual(rendered('ga4.json', { anonymousId: 'a-1', userId: null, properties: '{"value":3}' }), {
    client_id: 'a-1',
    timestamp_micros: 1767323045000000,
    events: [{ name: 'Order Completed', params: { value: 3 } }],
  })
  const known = rendered('ga4.json', {})
  assert.deepEqual([known.client_id, known.user_id], ['u-1', 'u-1'])
})
