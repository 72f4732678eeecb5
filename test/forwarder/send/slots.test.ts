import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Slots, type SlotUser } from '../../../src/forwarder/send/slots.ts'
import { wideOpen } from '../fakes.ts'

/** Takes as many slots as it can get, up to `wants`, and releases them on request. */
class User implements SlotUser {
  inFlight = 0
  queued = 0
  isQueued = false
  next: SlotUser | null = null
  wants: number
  readonly #slots: Slots

  constructor(slots: Slots, wants: number) {
    this.#slots = slots
    this.wants = wants
  }

  pump(): void {
    while (this.inFlight < this.wants && this.#slots.take(this)) this.inFlight++
  }

  end(): void {
    this.inFlight--
    this.#slots.release()
    this.pump()
    this.#slots.grantWaiting(0)
  }
}

function users(max: number, wants: readonly number[]) {
  const slots = new Slots(max, wideOpen)
  return { slots, all: wants.map((each) => new User(slots, each)) }
}

test('one endpoint alone gets half of the slots, and each of n unbounded endpoints gets one share of n+1', () => {
  for (const [count, each] of [
    [1, 2_048],
    [3, 1_024],
    [7, 512],
  ] as const) {
    const { slots, all } = users(
      4_096,
      Array.from({ length: count }, () => Infinity),
    )
    // They take by turns, as their work comes.
    for (let left = 4_096; left > 0; left--) for (const user of all) if (slots.take(user)) user.inFlight++
    for (const { inFlight } of all) assert.ok(Math.abs(inFlight - each) <= count, `${count}: ${inFlight}`)
    assert.ok(4_096 - slots.taken >= each - count)
  }
})

test('forty endpoints that hang leave slots for the next one', () => {
  const { slots, all } = users(
    4_096,
    Array.from({ length: 40 }, () => 64),
  )
  for (const user of all) user.pump()
  const late = new User(slots, 5)
  late.pump()
  assert.ok(late.inFlight >= 1)
  for (let rounds = 1_000; rounds > 0; rounds--) {
    late.end()
    assert.ok(late.inFlight >= 1)
  }
})

test('a single slot serves all endpoints in turns', () => {
  const { all } = users(1, [9, 9, 9])
  for (const user of all) user.pump()
  const order: number[] = []
  for (let left = 6; left > 0; left--) {
    const index = all.findIndex(({ inFlight }) => inFlight > 0)
    order.push(index)
    all[index]!.end()
  }
  assert.deepEqual(order, [0, 0, 1, 2, 0, 1])
})

test('deliveries that wait for a slot are counted, at one endpoint or at many, unless no slots are left', () => {
  const hasWaiting = (count: number, queued: readonly number[], max = 100) => {
    const slots = new Slots(max, { ...wideOpen, size: 1 })
    assert.ok(slots.take(new User(slots, 1)))
    for (const each of queued) {
      // At its turn it wants none any more.
      const user = new User(slots, 0)
      user.queued = each
      assert.equal(slots.take(user), false)
    }
    const found = slots.hasWaiting(count)
    slots.release()
    slots.grantWaiting(0)
    assert.equal(slots.hasWaiting(1), false)
    return found
  }
  assert.equal(hasWaiting(8, Array<number>(8).fill(1)), true)
  assert.equal(hasWaiting(8, Array<number>(7).fill(1)), false)
  assert.equal(hasWaiting(8, [2, 6]), true)
  assert.equal(hasWaiting(8, [2, 5]), false)
  assert.equal(hasWaiting(8, [8], 1), false)
})

test('property: no more slots are taken than exist, and no waiting endpoint is forgotten', () => {
  const steps = fc.array(fc.record({ user: fc.nat(5), wants: fc.nat(12) }), { maxLength: 300, size: 'max' })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 20 }), steps, (max, given) => {
      const { slots, all } = users(max, [0, 0, 0, 0, 0, 0])
      for (const { user: index, wants } of given) {
        const user = all[index]!
        user.wants = wants
        if (user.inFlight > 0) user.end()
        else user.pump()
        const taken = all.reduce((sum, { inFlight }) => sum + inFlight, 0)
        assert.equal(taken, slots.taken)
        assert.ok(taken <= max)
      }
      // As everything ends, every user that wants a slot gets one.
      for (const user of all) user.wants = Math.max(user.wants, 1)
      const served = new Set<User>()
      for (let left = 500; left > 0 && served.size < all.length; left--) {
        for (const user of all) if (user.inFlight > 0) served.add(user)
        const busy = all.find(({ inFlight }) => inFlight > 0)
        if (busy) {
          if (served.has(busy)) busy.wants = 0
          busy.end()
        } else for (const user of all) user.pump()
      }
      assert.equal(served.size, all.length)
    }),
  )
})
