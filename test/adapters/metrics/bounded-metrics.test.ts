import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CollectorCounts } from '../../../src/adapters/metrics/collector-metrics.ts'
import { ForwarderCounts } from '../../../src/adapters/metrics/forwarder-metrics.ts'
import type { EndpointGauges, ForwarderGauges } from '../../../src/forwarder/metrics.ts'
import { parseExposition } from '../../support/exposition.ts'

const destinations = 10_000

const endpoint = (index: number, given: Partial<EndpointGauges> = {}): EndpointGauges => ({
  ...{
    destinationId: `destination-${index}`,
    urlId: 'u1',
    inFlight: 2,
    limit: 64,
    queued: 0,
    phase: 'closed',
  },
  ...{ breakerOpen: false, down: false, paused: false, pausedUntil: null, downSince: null },
  ...{ lastSuccessAt: null, lastFailure: null, turns: 1 },
  ...given,
})

const gaugesOf = (endpoints: readonly EndpointGauges[]): ForwarderGauges => ({
  inFlight: () => 0,
  endpoints: () => endpoints,
  lag: () => [],
  partitions: () => [],
  notSetUp: () => endpoints.map(({ destinationId }) => destinationId),
  gone: () => endpoints,
  waiting: () => [],
  withoutToken: () => [],
  certificates: () => [],
  pauses: () => endpoints.map(({ destinationId }, index) => ({ destinationId, since: 5_000_000 - index })),
  settingsVersion: () => 0,
})

/** A forwarder with many destinations that each got three attempts; `down` of its endpoints are down, the last ones. */
function page(maxDestinations: number, down = 0) {
  const counts = new ForwarderCounts(undefined, maxDestinations)
  const all = Array.from({ length: destinations }, (_, index) => {
    const one = counts.destination(`destination-${index}`)
    for (const durationMs of [3, 30, 300])
      one.attempt({ kind: 'success', status: 200, durationMs, retryAfterMs: null, body: null, detail: null })
    one.disposition('delivered')
    const isDown = index >= destinations - down
    return endpoint(index, isDown ? { down: true, breakerOpen: true, phase: 'open' } : {})
  })
  counts.watch(gaugesOf(all))
  counts.retention = { callsMs: 0, heldMs: 0 }
  const text = [...counts.expose()].join('')
  const { samples } = parseExposition(text)
  const of = (name: string) => [...samples].filter(([series]) => series.startsWith(`${name}{`))
  return {
    bytes: text.length,
    value: (series: string) => samples.get(series),
    count: (name: string) => of(name).length,
    sum: (name: string) => of(name).reduce((total, [, value]) => total + value, 0),
  }
}

test('a page of 10,000 destinations has at most 4 MB by default, and 1 MB with none by name', () => {
  const { bytes } = page(1_000, 2_000)
  assert.ok(bytes <= 4_000_000, `${bytes} bytes`)
  const aggregated = page(0, 2_000)
  assert.ok(aggregated.bytes <= 1_000_000, `${aggregated.bytes} bytes`)
  assert.equal(aggregated.count('postrider_webhook_timeouts_total'), 1)
})

test('whatever is shown by name, sums over all destinations are exact', () => {
  for (const max of [0, 1, 1_000, destinations]) {
    const { count, sum } = page(max, 2_500)
    const summed = [
      ['postrider_webhook_attempts_total', 3 * destinations],
      ['postrider_webhook_attempt_duration_seconds_count', 3 * destinations],
      ['postrider_deliveries_total', destinations],
      ['postrider_endpoint_in_flight', 2 * destinations],
      ['postrider_endpoint_limit', 64 * destinations],
      ['postrider_endpoint_down', 2_500],
      ['postrider_endpoint_breaker_open', 2_500],
      ['postrider_destination_not_set_up', destinations],
      ['postrider_endpoint_gone', destinations],
      ['postrider_destination_paused', destinations],
    ] as const
    for (const [name, expected] of summed) assert.equal(sum(name), expected, `${name} with ${max} by name`)
    assert.equal(count('postrider_webhook_timeouts_total'), Math.min(max + 1, destinations))
  }
})

test('an endpoint that is down is shown by name although its destination has no series of its own', () => {
  const { value, count } = page(10, 3)
  const last = `{destination="destination-${destinations - 1}",url_id="u1"}`
  assert.equal(value(`postrider_endpoint_down${last}`), 1)
  assert.equal(value(`postrider_endpoint_breaker_open${last}`), 1)
  assert.equal(count('postrider_endpoint_down'), 10 + 3 + 1)
  assert.equal(value('postrider_endpoint_down{destination="other",url_id="other"}'), 0)
})

test('the earliest end of what is held for destinations without series of their own is shown', () => {
  const { value } = page(0)
  const others = value('postrider_destination_held_until_seconds{destination="other"}')
  assert.equal(others, (5_000_000 - (destinations - 1)) / 1_000)
})

test('sources beyond the bound are counted together on the page, and each for itself in summaries', () => {
  const counts = new CollectorCounts([], 2)
  for (let index = 0; index < 5; index++) counts.calls(`source-${index}`, 'track', 'accepted', index + 1)
  const { samples } = parseExposition([...counts.expose()].join(''))
  const accepted = (source: string) =>
    samples.get(`postrider_collector_calls_total{source="${source}",type="track",result="accepted"}`)
  assert.deepEqual(['source-0', 'source-1', 'source-2', 'other'].map(accepted), [1, 2, undefined, 12])
  assert.deepEqual([...counts.takeCollected().keys()].length, 5)
})
