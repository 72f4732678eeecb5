import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Heartbeat, HeartbeatEndpoint } from '../../../src/core/ledger/heartbeat.ts'
import { EndpointHealth } from '../../../src/core/operational/operational-fold.ts'

const second = 1_000

function beat(
  instance: string,
  endpoint: Partial<HeartbeatEndpoint> | null,
  given: Partial<Heartbeat> = {},
): Heartbeat {
  const whole: HeartbeatEndpoint = {
    destinationId: 'crm',
    urlId: 'u1',
    limit: 1,
    inFlight: 0,
    queued: 0,
    breaker: 'closed',
    pausedUntil: null,
    downSince: null,
    lastSuccessAt: null,
    lastFailure: null,
    turns: 1,
    ...endpoint,
  }
  return {
    instance,
    sequence: 1,
    isLast: false,
    intervalMs: 10 * second,
    roles: ['forwarder'],
    version: '1',
    host: 'h',
    pid: 1,
    startedAt: 1,
    requestsInFlight: null,
    partitions: [],
    endpoints: endpoint === null ? [] : [whole],
    endpointsOmitted: 0,
    settingsVersion: 1,
    ...given,
  }
}

const down = { breaker: 'open', downSince: 5 * second } as const
const works = (lastSuccessAt: number) => ({ lastSuccessAt })

/** What heartbeats come to, each at its time. */
function events(health: EndpointHealth, ...beats: [at: number, beat: Heartbeat][]): string[] {
  return beats.flatMap(([at, each]) => health.take(each, at * second).map(({ name }) => name))
}

test('several forwarders that see one outage make one event, and it is over once none of them sees it', () => {
  const health = new EndpointHealth()
  const seen = events(
    health,
    [0, beat('a', {})],
    [0, beat('b', {})],
    [10, beat('a', down)],
    [11, beat('b', { ...down, downSince: 9 * second })],
    [20, beat('a', down)],
    [40, beat('a', works(35 * second))],
    [41, beat('b', down)],
  )
  assert.deepEqual(seen, ['Endpoint Down'])
  assert.deepEqual(events(health, [50, beat('a', works(45 * second))]), [])
  assert.deepEqual(events(health, [51, beat('b', works(50 * second))], [61, beat('a', works(60 * second))]), [
    'Endpoint Recovered',
  ])
})

test('a forwarder that was restarted, or ended, is no proof that an endpoint has recovered', () => {
  const health = new EndpointHealth()
  assert.deepEqual(events(health, [0, beat('a', down)], [5, beat('a', null, { isLast: true })]), [
    'Endpoint Down',
  ])
  // The new process knows of no success, or of one before the outage.
  const later = events(health, [40, beat('b', {})], [50, beat('b', works(4 * second))], [60, beat('b', down)])
  assert.deepEqual(later, [])
  assert.deepEqual(events(health, [70, beat('b', works(65 * second))]), ['Endpoint Recovered'])
})

test('a forwarder that was killed is not waited for', () => {
  const health = new EndpointHealth()
  events(health, [0, beat('a', down)], [1, beat('b', {})])
  assert.deepEqual(
    events(health, [20, beat('b', works(15 * second))], [30, beat('b', works(29 * second))]),
    [],
  )
  assert.deepEqual(events(health, [31, beat('b', works(30.5 * second))]), ['Endpoint Recovered'])
})

test('a process that goes on knows what was reported, and first hears all forwarders before it says more', () => {
  const before = new EndpointHealth()
  events(before, [0, beat('a', down)], [0, beat('b', {})])
  const health = new EndpointHealth(before.down)
  assert.deepEqual(
    events(
      health,
      [10, beat('b', works(9 * second))],
      [11, beat('a', down)],
      [20, beat('b', works(19 * second))],
    ),
    [],
  )
  assert.deepEqual(events(health, [21, beat('a', works(20 * second))], [41, beat('b', works(40 * second))]), [
    'Endpoint Recovered',
  ])
})

test('a URL that was removed is forgotten, and one that asks for a pause is not down', () => {
  const health = new EndpointHealth()
  assert.deepEqual(events(health, [0, beat('a', { breaker: 'paused', pausedUntil: 9 * second })]), [])
  events(health, [10, beat('a', down)])
  health.keep(() => false)
  assert.deepEqual([...health.down], [])
  assert.deepEqual(events(health, [60, beat('a', works(59 * second))]), [])
})
