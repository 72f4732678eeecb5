import assert from 'node:assert/strict'
import { test } from 'node:test'
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
    const mended = withoutFuture(retry, appendedAt)
    assert.equal(mended.handedOverAt, appendedAt)
    return [mended.firstAttemptAt, mended.firstHandOverAt, mended.notBefore]
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
