import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { RecentIds } from '../../../src/core/call/recent-ids.ts'

/** By ids alone, all of one scope. */
function underTest(units: number, seed: number) {
  const recent = new RecentIds(units, seed)
  return {
    has: (id: string, scope = 1) => recent.has(scope, id, recent.hashOf(scope, id)),
    add: (id: string, scope = 1) => recent.add(scope, id, recent.hashOf(scope, id)),
    size: () => recent.size,
  }
}

test('the newest ids are remembered and the oldest forgotten', () => {
  const recent = underTest(120, 7)
  for (let n = 0; n < 50; n++) recent.add(`id-${String(n).padStart(6, '0')}`)
  assert.ok(recent.has('id-000049'))
  assert.ok(!recent.has('id-000000'))
  assert.ok(recent.size() >= 7 && recent.size() <= 10, `${recent.size()}`)
})

test('700,000 ids of a usual length fit into 64 MB', () => {
  const recent = underTest(32 << 20, 7)
  const id = (n: number) => `node-next-1767225600000-${String(n).padStart(12, '0')}`
  for (let n = 0; n < 1_000_000; n++) recent.add(id(n))
  assert.ok(recent.size() > 700_000, `${recent.size()}`)
  assert.ok(recent.has(id(999_999)) && recent.has(id(300_001)) && !recent.has(id(1)))
})

test('ids of different scopes are distinct, whatever the number of the scope', () => {
  const recent = underTest(1_000, 7)
  const scopes = [0, 1, 0xffff, 0x1_0000, 0x1_0001, 0xffff_ffff]
  for (const scope of scopes) {
    assert.ok(!recent.has('id', scope))
    recent.add('id', scope)
    assert.ok(recent.has('id', scope))
  }
  assert.equal(recent.size(), scopes.length)
})

test('property: an id is never mistaken for another, and exactly a run of the newest is remembered', () => {
  const id = fc.oneof(fc.string({ maxLength: 20 }), fc.integer({ min: 0, max: 60 }).map(String))
  fc.assert(
    fc.property(fc.array(id, { maxLength: 300 }), fc.integer({ min: 12, max: 600 }), (ids, units) => {
      const recent = underTest(units, units)
      /** In the order of their first sighting, the oldest first. */
      let model: string[] = []
      for (const id of ids) {
        assert.equal(recent.has(id), model.includes(id))
        recent.add(id)
        if (!model.includes(id) && id.length + 3 <= units / 4) model.push(id)
        model = model.slice(model.length - recent.size())
        for (const known of model) assert.ok(recent.has(known))
      }
      // Not forgetful beyond need: what it holds and one id more would not fit, or nothing was forgotten.
      const seen = new Set(ids.filter((id) => id.length + 3 <= units / 4)).size
      if (recent.size() < seen) assert.ok(recent.size() > 0)
    }),
    { numRuns: 3_000 },
  )
})
