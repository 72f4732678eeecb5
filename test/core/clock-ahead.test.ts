import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { withoutFuture } from '../../src/core/clock-ahead.ts'
import type { RetryDelivery } from '../../src/core/delivery.ts'
import { delivery } from '../support/dead-letters.ts'

const appendedAt = 1_800_000_000_000
const hour = 3_600_000

const handedOver = (given: Partial<RetryDelivery>): RetryDelivery => ({
  ...delivery('m-1', {
    firstAttemptAt: appendedAt - 9_000,
    firstHandOverAt: appendedAt - 8_000,
    notBefore: null,
  }),
  handedOverAt: appendedAt,
  from: null,
  owner: 'member/1',
  ...given,
})

test('times of a hand-over stay as they are when it was made before the broker took it, or by an ordinary clock', () => {
  for (const handedOverAt of [appendedAt - hour, appendedAt - 1, appendedAt, appendedAt + 5_000]) {
    const retry = handedOver({ handedOverAt })
    assert.equal(withoutFuture(retry, appendedAt), retry)
  }
  const retry = handedOver({ handedOverAt: appendedAt + hour })
  assert.equal(withoutFuture(retry, null), retry)
})

test('a clock that was far ahead makes nobody wait for its time: its times become those of the broker', () => {
  const ahead = (firstAttemptAt: number | null, firstHandOverAt: number | null, notBefore: number | null) => {
    const retry = handedOver({
      handedOverAt: appendedAt + hour,
      firstAttemptAt,
      firstHandOverAt,
      notBefore,
    })
    const { handedOverAt, ...corrected } = withoutFuture(retry, appendedAt)
    assert.equal(handedOverAt, appendedAt)
    return [corrected.firstAttemptAt, corrected.firstHandOverAt, corrected.notBefore]
  }
  assert.deepEqual(ahead(appendedAt + hour - 10, appendedAt + hour, null), [appendedAt, appendedAt, null])
  assert.deepEqual(ahead(null, appendedAt + hour, null), [null, appendedAt, null])
  // What was told by a clock that was right before stays.
  assert.deepEqual(ahead(appendedAt - 7, appendedAt - 5, null), [appendedAt - 7, appendedAt - 5, null])
  // What the receiver asked for is as long as it was.
  assert.deepEqual(ahead(appendedAt - 7, appendedAt - 5, appendedAt + hour + 3_000), [
    appendedAt - 7,
    appendedAt - 5,
    appendedAt + 3_000,
  ])
})

test('a first attempt or hand-over after the broker took the record is no way to a longer window', () => {
  const far = appendedAt + 1_000 * hour
  const times = (given: Partial<RetryDelivery>) => {
    const { handedOverAt, firstAttemptAt, firstHandOverAt } = withoutFuture(handedOver(given), appendedAt)
    assert.equal(handedOverAt, appendedAt)
    return [firstAttemptAt, firstHandOverAt]
  }
  assert.deepEqual(times({ firstAttemptAt: far, firstHandOverAt: far }), [appendedAt, appendedAt])
  assert.deepEqual(times({ firstAttemptAt: far, firstHandOverAt: null }), [appendedAt, null])
  assert.deepEqual(times({ firstAttemptAt: null, firstHandOverAt: far }), [null, appendedAt])
  // One that names no beginning has begun by then.
  assert.deepEqual(times({ firstAttemptAt: null, firstHandOverAt: null }), [null, appendedAt])
})

test('property: nothing of a retry begins later than the broker took it, and what was right stays as it is', () => {
  const time = fc.option(fc.integer({ min: appendedAt - 10 * hour, max: appendedAt + 10 * hour }))
  fc.assert(
    fc.property(time, time, time, (attempt, handOver, handed) => {
      const given = { firstAttemptAt: attempt, firstHandOverAt: handOver, handedOverAt: handed ?? appendedAt }
      const { firstAttemptAt, firstHandOverAt, handedOverAt } = withoutFuture(handedOver(given), appendedAt)
      const beginnings = [firstAttemptAt, firstHandOverAt].filter((each) => each !== null)
      assert.ok(beginnings.length > 0)
      for (const each of [...beginnings, handedOverAt]) assert.ok(each <= appendedAt + 5_000)
      if (attempt !== null && attempt <= appendedAt) assert.equal(firstAttemptAt, attempt)
      if (handOver !== null && handOver <= appendedAt) assert.equal(firstHandOverAt, handOver)
    }),
  )
})
