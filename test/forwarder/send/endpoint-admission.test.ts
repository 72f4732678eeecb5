import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  endpointTransitions,
  type EndpointEvent,
  type EndpointState,
} from '../../../src/forwarder/send/endpoint-admission.ts'
import { closedBreaker, defaultBreakerLimits } from '../../../src/core/pacing/breaker.ts'
import { steadyClock } from '../../../src/forwarder/steady-clock.ts'
import { Engine } from '../fakes.ts'

const states = Object.keys(endpointTransitions) as EndpointState[]
const events: EndpointEvent[] = ['set_up', 'unset', 'token_lost', 'token_got', 'shed', 'drained', 'remove']
/** How an endpoint that is open gets there. */
const ways: Record<EndpointState, EndpointEvent[]> = {
  not_set_up: ['unset'],
  no_token: ['token_lost'],
  open: [],
  shedding: ['shed'],
  removed: ['remove'],
}

test('an endpoint moves between its states as the table says, and a transition outside of it is a bug', () => {
  for (const from of states) {
    for (const event of events) {
      const { admission } = new Engine().endpoint('crm', 'u1')
      for (const step of ways[from]) admission.become(step)
      assert.equal(admission.state, from)
      const to = endpointTransitions[from][event]
      if (to === undefined) assert.throws(() => admission.become(event), /^Error: a bug: /)
      else admission.become(event)
      assert.equal(admission.state, to ?? from, `${from}, ${event}`)
    }
  }
})

test('an open endpoint takes deliveries; in any other state it may defer them', () => {
  for (const from of states) {
    const { admission } = new Engine().endpoint('crm', 'u1')
    for (const step of ways[from]) admission.become(step)
    assert.equal(admission.defers(0), from !== 'open', from)
  }
})

test('asking whether an endpoint takes a delivery changes nothing, whatever the time', (t) => {
  let now = 1_000
  t.mock.method(steadyClock, 'now', () => now)
  const { failures, coolDownMs } = defaultBreakerLimits
  const engine = new Engine()
  const crm = engine.destination('crm')
  const [endpoint] = crm.endpoints as [(typeof crm.endpoints)[0]]
  for (let index = 0; index < failures; index++) {
    engine.admit(`f${index}`, crm)
    engine.client('crm').answer('network')
  }
  const asked = engine.newDelivery('asked', crm)
  const open = endpoint.breaker
  assert.notDeepEqual(open, closedBreaker)
  assert.equal(endpoint.admission.refusal(asked, now)?.reason, 'breaker')
  now += coolDownMs
  // As a probe it may come; the others are deferred.
  assert.equal(endpoint.admission.refusal(asked, now), null)
  assert.equal(endpoint.admission.defers(now), true)
  assert.equal(endpoint.breaker, open)
  endpoint.advance(now)
  assert.equal(endpoint.breaker.phase, 'half_open')
})
