import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Hold, Room } from '../../src/collector/room.ts'

const limits = { calls: 1_000, bytes: 8_000 }

test('a source alone gets half of the room, and all whose source is not known an eighth of its bytes', () => {
  const room = new Room(limits)
  const [shop, stranger, other] = [new Hold(room, 'shop'), new Hold(room, null), new Hold(room, null)]
  assert.equal(shop.hasBytes(4_001), false)
  assert.equal(shop.takeBytes(4_000), true)
  assert.deepEqual([stranger.takeBytes(600), other.takeBytes(401), other.takeBytes(400)], [true, false, true])
  assert.equal(new Hold(room, 'blog').takeBytes(1_500), true)
  assert.equal(room.bytes, 6_500)
})

test('what was taken for a stranger is counted as its source’s once that is known, if it has room', () => {
  const room = new Room(limits)
  const [known, early] = [new Hold(room, null), new Hold(room, null)]
  known.takeBytes(1_000)
  assert.equal(early.takeBytes(1), false)
  assert.equal(known.moveTo('shop'), true)
  assert.equal(early.takeBytes(1_000), true)
  new Hold(room, 'shop').takeBytes(2_500)
  assert.equal(early.moveTo('shop'), false)
  assert.equal(new Hold(room, null).takeBytes(1), false, 'still a stranger’s')
  known.release()
  assert.equal(early.moveTo('shop'), true)
  assert.equal(room.bytes, 3_500)
})

test('property: the room is never exceeded, one that has nothing finds some, and all is free in the end', () => {
  const step = fc.record({
    source: fc.integer({ min: 0, max: 6 }),
    calls: fc.nat(400),
    bytes: fc.nat(3_000),
    releases: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
      const room = new Room(limits)
      const holds: Hold[] = []
      for (const { source, calls, bytes, releases } of steps) {
        const hold = new Hold(room, source === 0 ? null : `s${source}`)
        holds.push(hold)
        if (hold.hasCalls(calls)) hold.addCalls(calls)
        hold.takeBytes(bytes)
        if (releases) holds[Math.floor(holds.length / 2)]!.release()
        assert.ok(room.calls <= limits.calls && room.bytes <= limits.bytes)
        const newcomer = new Hold(room, 'new')
        // Seven want all they can get.
        assert.ok(newcomer.hasCalls(Math.floor(limits.calls / 2 ** 8)))
        assert.ok(newcomer.hasBytes(Math.floor(limits.bytes / 2 ** 8)))
      }
      for (const hold of holds) hold.release()
      assert.deepEqual([room.calls, room.bytes], [0, 0])
    }),
  )
})
