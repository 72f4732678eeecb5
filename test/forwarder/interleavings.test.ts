import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import type { OutcomeKind } from '../../src/core/delivery/outcome.ts'
import type { ActiveDelivery, Attempt } from '../../src/forwarder/send/active-delivery.ts'
import type { EndpointQueue } from '../../src/forwarder/send/endpoint-queue.ts'
import type { AssignedPartition } from '../../src/forwarder/consume/assigned-partition.ts'
import { steadyClock } from '../../src/forwarder/steady-clock.ts'
import { Engine, FakeClient, nothingHeld } from './fakes.ts'

type Step =
  | { kind: 'admit'; destination: number; partition: number; key: number; retry: boolean }
  | {
      kind: 'answer'
      client: number
      pick: number
      outcome: OutcomeKind
      retryAfterMs: number | null
      durationMs: number
    }
  | { kind: 'connect'; client: number; pick: number }
  | {
      kind: 'lose' | 'toggle' | 'remove' | 'restore' | 'defer' | 'shed' | 'fault' | 'unset' | 'expire'
      which: number
    }
  | { kind: 'fresh'; is: boolean }
  | { kind: 'pass'; ms: number }
  | { kind: 'pump' }
  | { kind: 'turn' }

const outcomes: OutcomeKind[] = [
  'success',
  'timeout',
  'status_5xx',
  'status_4xx',
  'status_429',
  'network',
  'network',
  'network',
]
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      kind: fc.constant('admit' as const),
      destination: fc.nat(2),
      partition: fc.nat(2),
      key: fc.nat(4),
      retry: fc.boolean(),
    }),
  },
  {
    weight: 10,
    arbitrary: fc.record({
      kind: fc.constant('answer' as const),
      client: fc.nat(9),
      pick: fc.nat(9),
      outcome: fc.constantFrom(...outcomes),
      retryAfterMs: fc.option(fc.nat(10_000), { freq: 2 }),
      // Of slow ones only a few calls of a key may wait.
      durationMs: fc.constantFrom(1, 1, 4_000, 20_000),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('connect' as const), client: fc.nat(9), pick: fc.nat(9) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constantFrom(
        'lose' as const,
        'toggle' as const,
        'remove' as const,
        'restore' as const,
        'defer' as const,
        'shed' as const,
        'fault' as const,
        'unset' as const,
        'expire' as const,
      ),
      which: fc.nat(9),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('fresh' as const), is: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('pump' as const) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('turn' as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('pass' as const),
      ms: fc.constantFrom(1, 300, 1_000, 5_000, 60_000),
    }),
  },
)

/** The engine in a world where everything happens in any order, with a check after each step. */
class World {
  readonly engine = new Engine(
    { inFlight: 2, places: 8, breaker: { failures: 3, rampFailures: 2, rampTo: 3 }, budget: { burst: 2 } },
    5,
  )
  now = Date.UTC(2026, 0, 1)
  readonly admitted: ActiveDelivery[] = []
  readonly #partitions: AssignedPartition[] = [0, 1, 2].map((id) => this.engine.partition(id))
  readonly #ids = ['a', 'b', 'c']
  readonly #wrong: string[] = []
  #made = 0
  #replaced = 0

  constructor() {
    this.#ids.forEach((id, index) => this.engine.destination(id, index + 1))
    // Whatever is sent must be allowed at that moment.
    for (const [name, client] of this.engine.clients) this.#watch(name, client)
  }

  #watch(name: string, client: ReturnType<Engine['client']>): void {
    const send = client.send.bind(client)
    client.send = (request, sink) => {
      const delivery = (sink as Attempt).active
      // Noted, not thrown: an exception at sending is one of the things that the engine puts up with.
      const must = (holds: boolean, otherwise: string) => {
        if (!holds) this.#wrong.push(`${delivery.delivery.id} at ${name}: ${otherwise}`)
      }
      must(delivery.work.partition.alive, 'sent although its partition is lost')
      must(delivery.destination.enabled, 'sent to a disabled destination')
      must(this.engine.owner.fresh, 'sent without fresh heartbeats')
      must(!client.closed, 'sent to a URL that was removed, or is not set up')
      must(!this.engine.expired.has(delivery.delivery.id), 'sent after its window')
      // A run that one URL has taken leaves its lane; what is still queued of it at other URLs goes out all the same.
      if (!delivery.isRetry && delivery.key !== null && !delivery.settled) {
        for (const other of this.admitted) {
          const sameLane =
            other.destination === delivery.destination && other.key === delivery.key && !other.isRetry
          const inFlight = other !== delivery && other.sent > 0 && !other.settled
          must(!sameLane || !inFlight, `sent beside ${other.delivery.id} of the same lane`)
        }
      }
      send(request, sink)
    }
  }

  async do(step: Step): Promise<void> {
    const { engine } = this
    const { dispatcher, endpoints } = engine
    switch (step.kind) {
      case 'admit': {
        const destination = engine.destinations.get(this.#ids[step.destination]!)!
        const id = `d${this.#made++}`
        const retry = destination.endpoints.filter((_, index) => index !== step.key).map((each) => each.id)
        const delivery = engine.newDelivery(id, destination, {
          partition: this.#partitions[step.partition]!,
          key: step.key === 0 ? null : `k${step.key}`,
          ...(step.retry ? { retry } : {}),
        })
        this.admitted.push(delivery)
        dispatcher.admit(delivery)
        return
      }
      case 'answer': {
        const busy = [...engine.clients.values()].filter((client) => client.onWire.length > 0)
        const client = busy[step.client % busy.length]
        const id = client?.onWire[step.pick % client.onWire.length]!.request.idempotencyKey ?? undefined
        client?.answer(step.outcome, id, { retryAfterMs: step.retryAfterMs, durationMs: step.durationMs })
        return
      }
      case 'connect': {
        const busy = [...engine.clients.values()].filter((client) => client.onWire.length > 0)
        const client = busy[step.client % busy.length]
        client?.connected(client.onWire[step.pick % client.onWire.length]!.request.idempotencyKey!)
        return
      }
      case 'lose': {
        const index = step.which % 3
        this.#partitions[index]!.drop()
        this.#partitions[index] = engine.partition(index)
        engine.dropLost()
        return
      }
      case 'toggle': {
        const destination = engine.destinations.get(this.#ids[step.which % 3]!)!
        destination.enabled = !destination.enabled
        return
      }
      case 'remove': {
        const destination = engine.destinations.get(this.#ids[step.which % 3]!)!
        const [gone, ...others] = destination.endpoints
        if (!gone) return
        destination.endpoints = others
        gone.close()
        dispatcher.removed(gone)
        return
      }
      case 'restore': {
        const id = this.#ids[step.which % 3]!
        const destination = engine.destinations.get(id)!
        const name = `n${endpoints.length}`
        destination.endpoints = [...destination.endpoints, engine.endpoint(id, name)].slice(-5)
        this.#watch(`${id}/${name}`, engine.client(id, name))
        return
      }
      case 'defer': {
        dispatcher.deferWaiting(engine.destinations.get(this.#ids[step.which % 3]!)!, Infinity, Infinity)
        return
      }
      case 'shed': {
        this.#present(step.which)?.shed(this.now)
        return
      }
      case 'fault': {
        const client = [...engine.clients.values()][step.which % engine.clients.size]!
        client.fault = new Error('a bug')
        return
      }
      case 'unset': {
        const endpoint = this.#present(step.which)
        if (!endpoint) return
        if (endpoint.target) endpoint.use(null)
        else this.#setUp(endpoint)
        endpoint.goOn()
        return
      }
      case 'expire': {
        const retries = this.admitted.filter((delivery) => delivery.isRetry && !delivery.settled)
        const delivery = retries[step.which % retries.length]
        if (delivery) engine.expired.add(delivery.delivery.id)
        return
      }
      case 'fresh':
        engine.owner.fresh = step.is
        return
      case 'pass':
        this.now += step.ms
        return
      case 'pump':
        engine.pumpAll()
        return
      case 'turn':
        await turn()
    }
  }

  /** One that was not removed: nothing else is known to the settings. */
  /** Undefined once all are removed. */
  #present(which: number): EndpointQueue | undefined {
    const present = this.engine.endpoints.filter(({ admission }) => admission.state !== 'removed')
    return present[which % present.length]
  }

  /** Over new connections. */
  #setUp(endpoint: EndpointQueue): void {
    const { clients } = this.engine
    const client = new FakeClient()
    const name = `${endpoint.destinationId}/${endpoint.id}`
    // What is on the wire of the old ones still has to end.
    clients.set(`${name} until ${this.#replaced++}`, clients.get(name)!)
    clients.set(name, client)
    this.#watch(name, client)
    endpoint.use({ webhook: { url: '', headers: {} }, client })
  }

  check(): void {
    const { engine } = this
    assert.deepEqual(this.#wrong, [])
    for (const [name, count] of Object.entries(engine.held())) assert.ok(count >= 0, `${name}: ${count}`)
    const onWire = [...engine.clients.values()].reduce((sum, client) => sum + client.onWire.length, 0)
    assert.equal(engine.dispatcher.inFlight, onWire)
    assert.ok(onWire <= 5, 'more on the wire than the process may have')
    for (const endpoint of engine.endpoints) assert.ok(endpoint.inFlight <= 2)
    const over = this.#ended()
    assert.equal(new Set(over).size, over.length, 'a run ended twice')
    assert.equal(engine.dispatcher.admitted, this.admitted.length - over.length)
  }

  #ended(): ActiveDelivery[] {
    const { settled, skipped, failed, abandoned } = this.engine
    return [...settled, ...skipped, ...failed.map(({ delivery }) => delivery), ...abandoned]
  }

  /** The world calms down: heartbeats come, everything on the wire is answered. */
  async end(outcome: OutcomeKind): Promise<void> {
    const { engine } = this
    engine.owner.fresh = true
    // Whatever breakers wait for is over.
    this.now += 600_000
    const busy = () => Object.values(engine.held()).some((count) => count > 0)
    for (let left = 10_000; busy(); left--) {
      assert.ok(left > 0, `stuck: ${JSON.stringify(engine.held())}`)
      this.now += 10
      await turn()
      engine.pumpAll()
      for (const client of engine.clients.values()) if (client.onWire.length > 0) client.answer(outcome)
    }
    this.check()
    assert.deepEqual(engine.held(), nothingHeld)
    for (const delivery of this.admitted)
      assert.ok(delivery.settled || this.engine.skipped.includes(delivery))
  }
}

/** The steady clock of whichever world is under test. */
function virtualClock(t: TestContext): { of: { now: number } } {
  const clock = { of: { now: 0 } }
  t.mock.method(steadyClock, 'now', () => clock.of.now)
  return clock
}

test('property: in any interleaving each delivery ends once, lanes keep their order, and all places are released', async (t) => {
  const clock = virtualClock(t)
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { maxLength: 150, size: 'max' }),
      fc.constantFrom<OutcomeKind[]>('success', 'network', 'status_4xx'),
      async (steps, last) => {
        const world = new World()
        clock.of = world
        for (const each of steps) {
          await world.do(each)
          world.check()
        }
        await world.end(last)
      },
    ),
    { numRuns: 300 },
  )
})

test('losing every partition releases every place once the requests on the wire have ended', async (t) => {
  const clock = virtualClock(t)
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 80, size: 'max' }), async (steps) => {
      const world = new World()
      clock.of = world
      for (const each of steps) await world.do(each)
      for (const which of [0, 1, 2]) await world.do({ kind: 'lose', which })
      const { engine } = world
      const before = [...engine.clients.values()].reduce((sum, client) => sum + client.sent.length, 0)
      assert.equal(engine.held().queued, 0)
      for (const client of engine.clients.values()) while (client.onWire.length > 0) client.answer('timeout')
      const after = [...engine.clients.values()].reduce((sum, client) => sum + client.sent.length, 0)
      assert.equal(after, before)
      world.check()
      assert.deepEqual(engine.held(), nothingHeld)
    }),
    { numRuns: 200 },
  )
})
