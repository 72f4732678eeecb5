import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { maxQuotaCount, parseRate, TokenBucket } from '../../../src/core/pacing/token-bucket.ts'

test('a rate is a count a second or a minute, and nothing else', () => {
  assert.deepEqual(parseRate('200/s', maxQuotaCount), { count: 200, perMs: 1_000 })
  assert.deepEqual(parseRate('600/m', maxQuotaCount), { count: 600, perMs: 60_000 })
  assert.deepEqual(parseRate('100000000/s', maxQuotaCount), { count: 100_000_000, perMs: 1_000 })
  for (const text of [
    '',
    '200',
    '0/s',
    '01/s',
    '-1/s',
    '1.5/s',
    '1/h',
    '1/S',
    ' 1/s',
    '100000001/s',
    '1e3/s',
  ])
    assert.equal(parseRate(text, maxQuotaCount), null, text)
})

test('a full bucket gives what its rate allows within its time, and then one by one', () => {
  const bucket = new TokenBucket({ count: 60, perMs: 60_000 }, 0)
  for (let n = 0; n < 60; n++) assert.equal(bucket.take(0, 1), 0)
  assert.equal(bucket.take(0, 1), 1_000)
  assert.equal(bucket.take(999, 1), 1)
  assert.equal(bucket.take(1_000, 1), 0)
  assert.equal(bucket.take(1_000, 1), 1_000)
})

test('more than it ever holds is given at once, and made up for afterwards', () => {
  const bucket = new TokenBucket({ count: 10, perMs: 1_000 }, 0)
  assert.equal(bucket.take(0, 500), 0)
  assert.equal(bucket.take(0, 1), 49_100)
  assert.equal(bucket.take(49_100, 500), 0)
})

test('what is given back can be taken again, and fills it no further than full', () => {
  const bucket = new TokenBucket({ count: 10, perMs: 1_000 }, 0)
  bucket.take(0, 30)
  bucket.giveBack(20)
  assert.equal(bucket.waitMs(0), 100)
  bucket.giveBack(1_000)
  for (let n = 0; n < 10; n++) assert.equal(bucket.take(0, 1), 0)
  assert.equal(bucket.take(0, 1), 100)
})

test('property: over any time it gives no more than the rate, one full bucket and the last that was taken', () => {
  const steps = fc.array(fc.record({ afterMs: fc.nat(2_000), count: fc.integer({ min: 1, max: 100 }) }))
  const rate = fc.record({ count: fc.integer({ min: 1, max: 1_000 }), perMs: fc.constantFrom(1_000, 60_000) })
  fc.assert(
    fc.property(rate, steps, (rate, tries) => {
      const bucket = new TokenBucket(rate, 0)
      let now = 0
      let given = 0
      for (const { afterMs, count } of tries) {
        now += afterMs
        const waitMs = bucket.take(now, count)
        if (waitMs === 0) given += count
        else assert.equal(bucket.waitMs(now), waitMs)
        assert.ok(given <= rate.count + (now * rate.count) / rate.perMs + 100)
      }
      // The wait that it names is enough.
      now += bucket.waitMs(now)
      assert.equal(bucket.waitMs(now), 0)
    }),
  )
})
