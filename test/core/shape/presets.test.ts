import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { AnalyticsCall } from '../../../src/core/call/analytics-call.ts'
import { defaultOptions } from '../../../src/core/settings/destination-options.ts'
import { bodyFaults, Shape } from '../../../src/core/shape/shape.ts'
import { someCall } from '../../support/calls/calls.ts'

const folder = join(import.meta.dirname, '../../../presets')
const read = (name: string): string => readFileSync(join(folder, name), 'utf8')

function rendered(name: string, call: Partial<AnalyticsCall>): Record<string, unknown> {
  const options = { ...defaultOptions, body: { all: read(name) } }
  const shape = new Shape({ id: 'x', name: 'X', urls: [], options }, () => '')
  return JSON.parse(shape.render(someCall(call), 'm-1:x').body) as Record<string, unknown>
}

const down: Partial<AnalyticsCall> = {
  userId: null,
  anonymousId: 'postrider:crm',
  event: 'Endpoint Down',
  properties: '{"destination":"crm","urlId":"u1","since":"2026-07-03T09:12:41.007Z","lastResponse":null}',
}
const lost: Partial<AnalyticsCall> = {
  ...down,
  event: 'Records Lost',
  properties: '{"destination":null,"topic":"analytics.calls","count":3}',
}

test('each preset is a template without faults', () => {
  const names = readdirSync(folder)
  assert.deepEqual(names.toSorted(), ['ga4.json', 'pagerduty.json', 'slack.json', 'teams.json'])
  for (const name of names) assert.deepEqual(bodyFaults(read(name)), [], name)
})

test('PagerDuty gets what its Events API needs, and a recovery ends what an outage began', () => {
  const event = rendered('pagerduty.json', down)
  assert.deepEqual(
    [event.event_action, event.dedup_key, event.payload],
    [
      'trigger',
      'postrider crm u1 Endpoint Down',
      {
        summary: 'Endpoint Down: crm u1 ',
        source: 'postrider',
        severity: 'error',
        timestamp: '2026-01-02T03:04:05.006Z',
        custom_details: JSON.parse(down.properties!),
      },
    ],
  )
  const recovered = rendered('pagerduty.json', { ...down, event: 'Endpoint Recovered' })
  assert.deepEqual([recovered.event_action, recovered.dedup_key], ['resolve', event.dedup_key])
  assert.equal((rendered('pagerduty.json', lost).payload as { severity: string }).severity, 'critical')
})

test('Slack and Teams get a message that names what has happened to which destination', () => {
  for (const name of ['slack.json', 'teams.json']) {
    const text = JSON.stringify(rendered(name, down))
    assert.match(text, /Endpoint Down/)
    assert.match(text, /crm u1/)
    assert.match(JSON.stringify(rendered(name, lost)), /Records Lost/)
  }
  assert.equal(rendered('slack.json', down).text, 'Endpoint Down crm')
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
