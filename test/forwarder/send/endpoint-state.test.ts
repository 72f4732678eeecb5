import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  endpointTransitions,
  type EndpointEvent,
  type EndpointState,
} from '../../../src/forwarder/send/endpoint-admission.ts'
import { Engine } from '../fakes.ts'

const states = Object.keys(endpointTransitions) as EndpointState[]
const events: EndpointEvent[] = ['set_up', 'unset', 'shed', 'drained', 'remove']
/** How an endpoint that is open gets there. */
const ways: Record<EndpointState, EndpointEvent[]> = {
  not_set_up: ['unset'],
  open: [],
  shedding: ['shed'],
  removed: ['remove'],
}

test('an endpoint moves between its states as the table says, and what is not in it is a bug', () => {
  for (const from of states) {
    for (const event of events) {
      const { admission } = new Engine().endpoint('crm', 'u1')
      for (const step of ways[from]) admission.become(step)
      assert.equal(admission.state, from)
      const to = endpointTransitions[from][event]
      if (to === undefined) assert.throws(() => admission.become(event), /^Error: bug: an endpoint that is/)
      else admission.become(event)
      assert.equal(admission.state, to ?? from, `${from}, ${event}`)
    }
  }
})

test('an endpoint that is open takes what comes; any other state defers it, or may', () => {
  for (const from of states) {
    const { admission } = new Engine().endpoint('crm', 'u1')
    for (const step of ways[from]) admission.become(step)
    assert.equal(admission.defers(0), from !== 'open', from)
  }
})
