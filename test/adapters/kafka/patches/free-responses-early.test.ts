import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import fc from 'fast-check'
import { RequestsInFlight } from '../../../../src/adapters/kafka/patches/free-responses-early.ts'
import { installPatches } from '../../../../src/adapters/kafka/patches/index.ts'
import { maxPromoted } from '../../../support/promotion.ts'

installPatches()
const require = createRequire(import.meta.url)

test('property: for kafkajs’s request queue, the array of requests in flight behaves like a Map', () => {
  const step = fc.tuple(fc.constantFrom('set', 'delete', 'clear'), fc.nat(8))
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const inFlight = new RequestsInFlight<string>()
      const map = new Map<number, string>()
      for (const [index, [what, id]] of steps.entries()) {
        if (what === 'set') {
          // kafkajs refuses an id that is in flight.
          if (map.has(id)) continue
          inFlight.set(id, `request ${index}`)
          map.set(id, `request ${index}`)
        } else if (what === 'delete') assert.equal(inFlight.delete(id), map.delete(id))
        else if (index % 7 === 0) {
          inFlight.clear()
          map.clear()
        }
        assert.equal(inFlight.size, map.size)
        assert.equal(inFlight.has(id), map.has(id))
        assert.equal(inFlight.get(id), map.get(id))
        assert.deepEqual([...inFlight.values()], [...map.values()])
        const seen: [string, number][] = []
        inFlight.forEach((request, id) => seen.push([request, id]))
        assert.deepEqual(
          seen,
          [...map].map(([id, request]) => [request, id]),
        )
      }
    }),
  )
})

test('responses of a Kafka connection are freed with the young generation', () => {
  const RequestQueue = require('kafkajs/src/network/requestQueue') as new (options: object) => {
    inflight: Map<number, object>
  }
  const logger = { namespace: () => logger, debug() {}, warn() {} }
  const queue = new RequestQueue({
    ...{ instrumentationEmitter: null, maxInFlightRequests: null, requestTimeout: 1_000 },
    ...{
      enforceRequestTimeout: false,
      clientId: 'test',
      broker: 'test:9092',
      logger,
      isConnected: () => true,
    },
  })
  const promoted = maxPromoted((index) => {
    queue.inflight.set(index, { answer: new Array<number>(100).fill(index) })
    if (index >= 3) queue.inflight.delete(index - 3)
  })
  assert.ok(promoted < 2_000_000, `${promoted} bytes`)
})
