import assert from 'node:assert/strict'
import { createHook } from 'node:async_hooks'
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { readBody } from '../../src/adapters/http/body.ts'
import { TurnsBySender } from '../../src/adapters/http/turns-by-sender.ts'
import { Reservation, RequestBudget } from '../../src/collector/request-budget.ts'

const limits = { calls: 1_000, bytes: 8_000 }

test('a single source gets half of the budget, and all unknown sources together get an eighth of its bytes', () => {
  const budget = new RequestBudget(limits)
  const [shop, stranger, other] = [
    new Reservation(budget, 'shop', 'a'),
    new Reservation(budget, null, 'a'),
    new Reservation(budget, null, 'b'),
  ]
  assert.equal(shop.hasBytes(4_001), false)
  assert.equal(shop.takeBytes(4_000), true)
  // Of the eighth, a sender gets half, and another one half of what is left.
  assert.deepEqual([stranger.takeBytes(501), stranger.takeBytes(500)], [false, true])
  assert.deepEqual([other.takeBytes(251), other.takeBytes(250)], [false, true])
  assert.equal(new Reservation(budget, 'blog', 'a').takeBytes(1_500), true)
  assert.equal(budget.bytes, 6_250)
})

test('a reservation of an unknown source moves to its source once that is known, if the source has space', () => {
  const budget = new RequestBudget(limits)
  const [known, early] = [new Reservation(budget, null, 'a'), new Reservation(budget, null, 'a')]
  known.takeBytes(500)
  assert.equal(early.takeBytes(1), false)
  assert.equal(known.moveTo('shop'), true)
  assert.equal(early.takeBytes(500), true)
  new Reservation(budget, 'shop', 'b').takeBytes(3_250)
  assert.equal(early.moveTo('shop'), false)
  assert.equal(new Reservation(budget, null, 'a').takeBytes(1), false, 'still a stranger’s')
  known.release()
  assert.equal(early.moveTo('shop'), true)
  assert.equal(budget.bytes, 3_750)
})

test('property: the budget is never exceeded, a source without reservations always gets one, and in the end everything is released', () => {
  const step = fc.record({
    source: fc.integer({ min: 0, max: 6 }),
    sender: fc.integer({ min: 0, max: 6 }),
    calls: fc.nat(400),
    bytes: fc.nat(3_000),
    releases: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
      const budget = new RequestBudget(limits)
      const holds: Reservation[] = []
      for (const { source, sender, calls, bytes, releases } of steps) {
        const reservation = new Reservation(budget, source === 0 ? null : `s${source}`, `a${sender}`)
        holds.push(reservation)
        if (reservation.hasCalls(calls)) reservation.addCalls(calls)
        reservation.takeBytes(bytes)
        if (releases) holds[Math.floor(holds.length / 2)]!.release()
        assert.ok(budget.calls <= limits.calls && budget.bytes <= limits.bytes)
        const newcomer = new Reservation(budget, 'new', 'new')
        // Seven want all they can get.
        assert.ok(newcomer.hasCalls(Math.floor(limits.calls / 2 ** 8)))
        assert.ok(newcomer.hasBytes(Math.floor(limits.bytes / 2 ** 8)))
        // And so do seven senders, of the eighth of strangers.
        const stranger = new Reservation(budget, null, 'new')
        assert.ok(stranger.hasBytes(Math.floor(limits.bytes / 8 / 2 ** 8)))
        for (const each of [newcomer, stranger]) each.release()
      }
      for (const reservation of holds) reservation.release()
      assert.deepEqual([budget.calls, budget.bytes, budget.requests], [0, 0, 0])
      const whole = new Reservation(budget, null, 'a1')
      assert.ok(whole.hasBytes(limits.bytes / 16), 'a sender that is known holds nothing any more')
    }),
  )
})

test('of many small bodies that unpack to large ones, a few at a time hold memory that is not counted yet', async (t) => {
  const maxBytes = 500 << 10
  const packed = gzipSync(' '.repeat(maxBytes), { level: 9 })
  assert.ok(packed.length < 1_000, `${packed.length} bytes`)
  let begun = 0
  let counted = 0
  let most = 0
  const hook = createHook({ init: (_id, type) => void (begun += Number(type === 'ZLIB')) }).enable()
  t.after(() => hook.disable())
  const count = 100
  const budget = new RequestBudget({ calls: 1, bytes: 3 * count * maxBytes })
  const bodies = Array.from({ length: count }, () => {
    const reservation = new Reservation(budget, 'shop', 'a')
    const takeBytes = reservation.takeBytes.bind(reservation)
    reservation.takeBytes = (bytes) => {
      if (bytes === maxBytes) most = Math.max(most, begun - counted++)
      return takeBytes(bytes)
    }
    const message = Object.assign(Readable.from([packed]), { headers: { 'content-encoding': 'gzip' } })
    return readBody(message as unknown as IncomingMessage, reservation, maxBytes)
  })
  for (const body of await Promise.all(bodies)) assert.equal(body.length, maxBytes)
  assert.deepEqual([begun, counted], [count, count])
  assert.ok(most <= 16, `${most} at a time`)
})

test('tasks that wait begin sender by sender, and one that fails lets the next begin', async () => {
  const turns = new TurnsBySender(2)
  const begun: string[] = []
  const running: PromiseWithResolvers<void>[] = []
  const ended = ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1'].map((name) =>
    turns
      .run(name[0]!, () => {
        begun.push(name)
        const task = Promise.withResolvers<void>()
        running.push(task)
        return task.promise
      })
      .catch((error: unknown) => error),
  )
  for (let done = 0; done < ended.length; done++) {
    await nextTurn()
    assert.equal(running.length, Math.min(done + 2, ended.length))
    if (done % 2 === 0) running[done]!.resolve()
    else running[done]!.reject(new Error('failed'))
  }
  await Promise.all(ended)
  assert.deepEqual(begun, ['a1', 'a2', 'a3', 'b1', 'c1', 'a4', 'b2'])
  // There is room again.
  assert.equal(await turns.run('d', async () => 'done'), 'done')
})
