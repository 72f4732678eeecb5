import assert from 'node:assert/strict'
import { test } from 'node:test'
import { namedEndpoints, type HeartbeatEndpoint } from '../../../src/core/ledger/heartbeat.ts'

const endpoint = (urlId: string, given: Partial<HeartbeatEndpoint> = {}): HeartbeatEndpoint => ({
  destinationId: 'crm',
  urlId,
  limit: 64,
  inFlight: 0,
  queued: 0,
  breaker: 'closed',
  pausedUntil: null,
  downSince: null,
  lastSuccessAt: null,
  lastFailure: null,
  turns: 1,
  ...given,
})

test('a heartbeat names the endpoints in trouble first, then those at work, and says how many it leaves out', () => {
  const all = [
    endpoint('idle'),
    endpoint('queued', { queued: 1 }),
    endpoint('open', { breaker: 'open', pausedUntil: 5 }),
    endpoint('busy', { inFlight: 2 }),
    endpoint('ramp', { breaker: 'ramp' }),
  ]
  const namesOf = (max?: number) => {
    const { endpoints, endpointsOmitted } = namedEndpoints(all, max)
    return [endpoints.map(({ urlId }) => urlId).join(), endpointsOmitted]
  }
  assert.deepEqual(namesOf(), ['open,ramp,queued,busy,idle', 0])
  assert.deepEqual(namesOf(3), ['open,ramp,queued', 2])
  assert.deepEqual(namesOf(1), ['open', 4])
})

test('a heartbeat names at most 1,000 endpoints', () => {
  const { endpoints, endpointsOmitted } = namedEndpoints(
    Array.from({ length: 5_000 }, (_, index) => endpoint(`u${index}`)),
  )
  assert.deepEqual([endpoints.length, endpointsOmitted], [1_000, 4_000])
})
