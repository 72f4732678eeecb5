import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { withoutFuture } from '../../../src/core/delivery/clock-ahead.ts'
import type { RetryDelivery } from '../../../src/core/delivery/delivery.ts'
import { delivery } from '../../support/replay/dead-letters.ts'

const appendedAt = 1_800_000_000_000
const hour = 3_600_000

const scheduled = (given: Partial<RetryDelivery>): RetryDelivery => ({
  ...delivery('m-1', {
    firstAttemptAt: appendedAt - 9_000,
    firstScheduledAt: appendedAt - 8_000,
    notBefore: null,
  }),
  scheduledAt: appendedAt,
  from: null,
  owner: 'member/1',
  ...given,
})

test('the times of a retry are kept if it was scheduled before the broker appended it, or by a clock with a usual error', () => {
  for (const scheduledAt of [appendedAt - hour, appendedAt - 1, appendedAt, appendedAt + 5_000]) {
    const retry = scheduled({ scheduledAt })
    assert.equal(withoutFuture(retry, appendedAt), retry)
  }
  const retry = scheduled({ scheduledAt: appendedAt + hour })
  assert.equal(withoutFuture(retry, null), retry)
})

test('a clock that was far ahead delays nothing: its times are replaced by those of the broker', () => {
  const ahead = (
    firstAttemptAt: number | null,
    firstScheduledAt: number | null,
    notBefore: number | null,
  ) => {
    const retry = scheduled({
      scheduledAt: appendedAt + hour,
      firstAttemptAt,
      firstScheduledAt,
      notBefore,
    })
    const { scheduledAt, ...corrected } = withoutFuture(retry, appendedAt)
    assert.equal(scheduledAt, appendedAt)
    return [corrected.firstAttemptAt, corrected.firstScheduledAt, corrected.notBefore]
  }
  assert.deepEqual(ahead(appendedAt + hour - 10, appendedAt + hour, null), [appendedAt, appendedAt, null])
  assert.deepEqual(ahead(null, appendedAt + hour, null), [null, appendedAt, null])
  // Times from a clock that was right before are kept.
  assert.deepEqual(ahead(appendedAt - 7, appendedAt - 5, null), [appendedAt - 7, appendedAt - 5, null])
  // What the receiver asked for is as long as it was.
  assert.deepEqual(ahead(appendedAt - 7, appendedAt - 5, appendedAt + hour + 3_000), [
    appendedAt - 7,
    appendedAt - 5,
    appendedAt + 3_000,
  ])
})

test('a first attempt or scheduling after the broker appended the record does not lengthen the window', () => {
  const far = appendedAt + 1_000 * hour
  const times = (given: Partial<RetryDelivery>) => {
    const { scheduledAt, firstAttemptAt, firstScheduledAt } = withoutFuture(scheduled(given), appendedAt)
    assert.equal(scheduledAt, appendedAt)
    return [firstAttemptAt, firstScheduledAt]
  }
  assert.deepEqual(times({ firstAttemptAt: far, firstScheduledAt: far }), [appendedAt, appendedAt])
  assert.deepEqual(times({ firstAttemptAt: far, firstScheduledAt: null }), [appendedAt, null])
  assert.deepEqual(times({ firstAttemptAt: null, firstScheduledAt: far }), [null, appendedAt])
  // One that names no beginning has begun by then.
  assert.deepEqual(times({ firstAttemptAt: null, firstScheduledAt: null }), [null, appendedAt])
})

test('property: no time of a retry begins later than the broker appended it, and plausible times stay unchanged', () => {
  const time = fc.option(fc.integer({ min: appendedAt - 10 * hour, max: appendedAt + 10 * hour }))
  fc.assert(
    fc.property(time, time, time, (attempt, first, last) => {
      const given = { firstAttemptAt: attempt, firstScheduledAt: first, scheduledAt: last ?? appendedAt }
      const { firstAttemptAt, firstScheduledAt, scheduledAt } = withoutFuture(scheduled(given), appendedAt)
      const beginnings = [firstAttemptAt, firstScheduledAt].filter((each) => each !== null)
      assert.ok(beginnings.length > 0)
      for (const each of [...beginnings, scheduledAt]) assert.ok(each <= appendedAt + 5_000)
      if (attempt !== null && attempt <= appendedAt) assert.equal(firstAttemptAt, attempt)
      if (first !== null && first <= appendedAt) assert.equal(firstScheduledAt, first)
    }),
  )
})
