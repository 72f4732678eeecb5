import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ForwarderCounts } from '../../../src/adapters/metrics/forwarder-metrics.ts'
import { MetricsPage } from '../../../src/adapters/metrics/page.ts'
import { deadLetterReasons } from '../../../src/core/delivery/delivery.ts'
import { outcomeKinds } from '../../../src/core/delivery/outcome.ts'
import type { Outcome, OutcomeKind } from '../../../src/core/delivery/outcome.ts'
import { parseExposition } from '../../support/exposition.ts'

const outcome = (kind: OutcomeKind, status: number | null, durationMs: number): Outcome => ({
  kind,
  status,
  durationMs,
  retryAfterMs: null,
  body: null,
  detail: null,
})

const shown = (counts: ForwarderCounts) => parseExposition([...counts.expose()].join(''))

test('the page shows what was counted, by destination and by outcome, response, disposition and reason', () => {
  const counts = new ForwarderCounts()
  const crm = counts.destination('crm')
  assert.equal(counts.destination('crm'), crm)
  crm.attempt(outcome('success', 200, 3))
  crm.attempt(outcome('success', 204, 5))
  crm.attempt(outcome('status_5xx', 503, 700))
  crm.attempt(outcome('timeout', null, 5_000))
  crm.attempt(outcome('status_4xx', 999, 8_000))
  crm.disposition('delivered')
  crm.disposition('delivered')
  crm.disposition('dead_lettered')
  crm.deadLetter('expired')
  crm.deferral('budget')
  crm.deferral('budget')
  counts.destination('none').disposition('skipped')
  counts.retryScheduled('10s')
  counts.retryScheduled('10s')
  counts.lostOffsets('analytics.calls', 7)
  Object.assign(counts.connections, { opened: 5, resumed: 4, retired: 3, restarts: 2, malformed: 1 })
  const { samples } = shown(counts)
  const d = 'destination="crm"'
  const expected: Record<string, number> = {
    postrider_webhook_connections_opened_total: 5,
    postrider_webhook_connections_resumed_total: 4,
    postrider_webhook_connections_retired_total: 3,
    postrider_webhook_requests_restarted_total: 2,
    postrider_webhook_malformed_responses_total: 1,
    [`postrider_webhook_attempts_total{${d},outcome="success"}`]: 2,
    [`postrider_webhook_attempts_total{${d},outcome="status_5xx"}`]: 1,
    [`postrider_webhook_attempts_total{${d},outcome="timeout"}`]: 1,
    [`postrider_webhook_timeouts_total{${d}}`]: 1,
    [`postrider_webhook_timeouts_total{destination="none"}`]: 0,
    [`postrider_webhook_responses_total{${d},code_class="2xx"}`]: 2,
    [`postrider_webhook_responses_total{${d},code_class="5xx"}`]: 1,
    [`postrider_webhook_responses_total{${d},code_class="other"}`]: 1,
    [`postrider_webhook_attempt_duration_seconds_bucket{${d},le="0.005"}`]: 2,
    [`postrider_webhook_attempt_duration_seconds_bucket{${d},le="0.5"}`]: 2,
    [`postrider_webhook_attempt_duration_seconds_bucket{${d},le="1"}`]: 3,
    [`postrider_webhook_attempt_duration_seconds_bucket{${d},le="5"}`]: 4,
    [`postrider_webhook_attempt_duration_seconds_bucket{${d},le="+Inf"}`]: 5,
    [`postrider_webhook_attempt_duration_seconds_count{${d}}`]: 5,
    [`postrider_deliveries_total{${d},disposition="delivered"}`]: 2,
    [`postrider_deliveries_total{${d},disposition="dead_lettered"}`]: 1,
    [`postrider_deliveries_total{${d},disposition="erased"}`]: 0,
    [`postrider_deliveries_total{destination="none",disposition="skipped"}`]: 1,
    [`postrider_dead_letters_total{${d},reason="expired"}`]: 1,
    [`postrider_deferrals_total{${d},reason="budget"}`]: 2,
    [`postrider_retries_scheduled_total{tier="10s"}`]: 2,
    [`postrider_lost_offsets_total{topic="analytics.calls"}`]: 7,
  }
  for (const [series, value] of Object.entries(expected)) assert.equal(samples.get(series), value, series)
  assert.ok(
    Math.abs(samples.get(`postrider_webhook_attempt_duration_seconds_sum{${d}}`)! - 13.708) < 1e-9,
    'the sum is in seconds',
  )
})

test('property: the counts of outcomes and durations and the last bucket always agree', () => {
  const attempts = fc.array(
    fc.record({
      kind: fc.constantFrom(...outcomeKinds.filter((kind) => kind !== 'deferred')),
      status: fc.option(fc.integer({ min: 100, max: 599 })),
      durationMs: fc.integer({ min: 0, max: 6_000 }),
    }),
  )
  fc.assert(
    fc.property(attempts, (all) => {
      const counts = new ForwarderCounts()
      const one = counts.destination('a')
      for (const { kind, status, durationMs } of all) one.attempt(outcome(kind, status, durationMs))
      const { samples } = shown(counts)
      const sum = (name: string) =>
        [...samples]
          .filter(([series]) => series.startsWith(name))
          .reduce((total, [, value]) => total + value, 0)
      assert.equal(sum('postrider_webhook_attempts_total'), all.length)
      assert.equal(sum('postrider_webhook_attempt_duration_seconds_count'), all.length)
      assert.equal(
        sum('postrider_webhook_responses_total'),
        all.filter(({ status }) => status !== null).length,
      )
      const within = (limit: number) => all.filter(({ durationMs }) => durationMs / 1_000 <= limit).length
      for (const [series, value] of samples) {
        const bound = /^postrider_webhook_attempt_duration_seconds_bucket.*le="([\d.]+)"/.exec(series)?.[1]
        if (bound) assert.equal(value, within(Number(bound)), series)
      }
    }),
    { numRuns: 50 },
  )
})

test('every dead-letter reason has its own count', () => {
  const counts = new ForwarderCounts()
  for (const reason of deadLetterReasons) counts.destination('a').deadLetter(reason)
  const { samples } = shown(counts)
  for (const reason of deadLetterReasons)
    assert.equal(samples.get(`postrider_dead_letters_total{destination="a",reason="${reason}"}`), 1)
})

test('lateness and produce durations are histograms in seconds', () => {
  const counts = new ForwarderCounts()
  counts.retryLateness(0.2)
  counts.retryLateness(4_000)
  counts.produced(0.004)
  const { samples, types } = shown(counts)
  assert.equal(types.get('postrider_retry_lateness_seconds'), 'histogram')
  assert.equal(samples.get('postrider_retry_lateness_seconds_bucket{le="0.25"}'), 1)
  assert.equal(samples.get('postrider_retry_lateness_seconds_bucket{le="1800"}'), 1)
  assert.equal(samples.get('postrider_retry_lateness_seconds_bucket{le="+Inf"}'), 2)
  assert.equal(samples.get('postrider_retry_lateness_seconds_sum'), 4_000.2)
  assert.equal(samples.get('postrider_kafka_produce_duration_seconds_bucket{le="0.005"}'), 1)
})

test('gauges are evaluated when the page is read', () => {
  const counts = new ForwarderCounts()
  let inFlight = 1
  const endpoint = {
    destinationId: 'crm',
    breakerOpen: false,
    down: false,
    paused: false,
    queued: 0,
    pausedUntil: null,
    downSince: null,
    lastSuccessAt: null,
    lastFailure: null,
    turns: 1,
  }
  counts.watch({
    inFlight: () => inFlight,
    endpoints: () => [
      { ...endpoint, urlId: 'u1', inFlight: 3, limit: 64, paused: true, phase: 'paused' },
      {
        ...endpoint,
        urlId: 'u2',
        inFlight: 0,
        limit: 1,
        turns: 0.25,
        breakerOpen: true,
        down: true,
        phase: 'open',
      },
    ],
    lag: () => [{ topic: 'analytics.calls', partition: 4, lag: 12 }],
    partitions: () => [],
    notSetUp: () => ['typo'],
    gone: () => [{ destinationId: 'crm', urlId: 'u3' }],
    waiting: () => [
      { topic: 'analytics.calls', partition: 4, isRetry: false, ageMs: 90_000, overdueMs: 90_000 },
      { topic: 'webhooks.retry.10s', partition: 0, isRetry: true, ageMs: 9_000, overdueMs: 0 },
      { topic: 'webhooks.retry.10s', partition: 1, isRetry: true, ageMs: 12_500, overdueMs: 2_500 },
    ],
    withoutToken: () => ['crm'],
    certificates: () => [{ destinationId: 'crm', of: 'client', expiresAt: 7_000 }],
    pauses: () => [{ destinationId: 'crm', since: 1_000_000 }],
    settingsVersion: () => 0,
  })
  counts.retention = { callsMs: 900_000, heldMs: 500_000 }
  inFlight = 9
  const { samples } = shown(counts)
  assert.equal(samples.get('postrider_in_flight'), 9)
  assert.equal(samples.get('postrider_endpoint_in_flight{destination="crm",url_id="u1"}'), 3)
  assert.equal(samples.get('postrider_endpoint_breaker_open{destination="crm",url_id="u1"}'), 0)
  assert.equal(samples.get('postrider_endpoint_breaker_open{destination="crm",url_id="u2"}'), 1)
  assert.equal(samples.get('postrider_endpoint_limit{destination="crm",url_id="u1"}'), 64)
  assert.equal(samples.get('postrider_endpoint_limit{destination="crm",url_id="u2"}'), 0.25)
  assert.equal(samples.get('postrider_endpoint_paused{destination="crm",url_id="u1"}'), 1)
  assert.equal(samples.get('postrider_endpoint_paused{destination="crm",url_id="u2"}'), 0)
  assert.equal(samples.get('postrider_consumer_lag{topic="analytics.calls",partition="4"}'), 12)
  assert.equal(samples.get('postrider_destination_not_set_up{destination="typo"}'), 1)
  assert.equal(samples.get('postrider_destination_paused{destination="crm"}'), 1)
  assert.equal(samples.get('postrider_destination_without_token{destination="crm"}'), 1)
  const expiry = 'postrider_destination_certificate_expiry_seconds'
  assert.equal(samples.get(`${expiry}{destination="crm",certificate="client"}`), 7)
  assert.equal(samples.get('postrider_destination_held_until_seconds{destination="crm"}'), 1_500)
  assert.equal(samples.get('postrider_endpoint_down{destination="crm",url_id="u1"}'), 0)
  assert.equal(samples.get('postrider_endpoint_down{destination="crm",url_id="u2"}'), 1)
  assert.equal(samples.get('postrider_endpoint_gone{destination="crm",url_id="u3"}'), 1)
  assert.equal(samples.get('postrider_calls_kept_seconds'), 900)
  const age = 'postrider_oldest_waiting_call_age_seconds'
  assert.equal(samples.get(`${age}{topic="analytics.calls",partition="4"}`), 90)
  assert.ok(![...samples.keys()].some((series) => series.startsWith(`${age}{topic="webhooks`)))
  assert.equal(samples.get('postrider_retry_overdue_seconds{topic="webhooks.retry.10s"}'), 2.5)
})

test('topics are shown with zero lost records before any is lost, so that the first loss is an increase', () => {
  const counts = new ForwarderCounts()
  counts.watchLosses(['analytics.calls'])
  assert.equal(shown(counts).samples.get('postrider_lost_offsets_total{topic="analytics.calls"}'), 0)
  counts.lostOffsets('analytics.calls', 3)
  assert.equal(shown(counts).samples.get('postrider_lost_offsets_total{topic="analytics.calls"}'), 3)
})

test('labels cannot escape their quotes or grow without bound', () => {
  const counts = new ForwarderCounts()
  counts.destination('a"} 1\nforged{b="\\').disposition('delivered')
  assert.equal(
    shown(counts).samples.get(
      'postrider_deliveries_total{destination="a\\"} 1\\nforged{b=\\"\\\\",disposition="delivered"}',
    ),
    1,
  )
  for (let index = 0; index < 20_000; index++) {
    counts.destination(`forged-${index}`).disposition('delivered')
    counts.retryScheduled(`forged-${index}`)
  }
  const { samples } = shown(counts)
  const series = (name: string) => [...samples.keys()].filter((key) => key.startsWith(name)).length
  assert.ok(series('postrider_webhook_timeouts_total') <= 1_001)
  assert.ok(series('postrider_retries_scheduled_total') <= 1_001)
  assert.equal(
    samples.get('postrider_deliveries_total{destination="other",disposition="delivered"}'),
    20_000 - 999,
  )
})

test('the page also has Node’s own metrics, and no metric twice', async () => {
  const page = new MetricsPage()
  const counts = new ForwarderCounts()
  counts.destination('crm')
  page.add(counts)
  let text = ''
  for await (const piece of page.pieces()) text += piece
  const { samples, types } = parseExposition(text)
  assert.ok(samples.get('process_resident_memory_bytes')! > 1_000_000)
  assert.equal(types.get('postrider_webhook_attempts_total'), 'counter')
  for (const [name, type] of types) {
    if (name.startsWith('postrider_')) assert.equal(name.endsWith('_total'), type === 'counter', name)
  }
})

test('a page of 1,000 destinations is rendered in small pieces that do not block the event loop', () => {
  const counts = new ForwarderCounts()
  for (let index = 0; index < 1_000; index++) {
    const one = counts.destination(`destination-${index}`)
    one.attempt(outcome('success', 200, index))
    one.disposition('delivered')
  }
  const pieces = [...counts.expose()]
  assert.ok(Math.max(...pieces.map((piece) => piece.length)) < 200_000)
  assert.equal(parseExposition(pieces.join('')).types.size, 20)
})
