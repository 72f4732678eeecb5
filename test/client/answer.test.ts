import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readAnswer } from '../../src/client/http-transport.ts'
import { backoffMs } from '../../src/client/backoff.ts'

const now = Date.UTC(2026, 0, 2, 3, 4, 5)
const kindOf = (status: number, body = '{"success":false}', retryAfter?: string) =>
  readAnswer({ status, retryAfter, body }, 3, now)

test('only a 200 with success true counts as accepted', () => {
  assert.deepEqual(kindOf(200, '{"success":true}'), { kind: 'accepted', rejected: [] })
  for (const body of ['', 'OK', '<html>', '{"success":false}', '{}', 'null', '[]', '{"success":"true"}'])
    assert.equal(kindOf(200, body).kind, 'unavailable', body)
  assert.equal(kindOf(204, '').kind, 'unavailable')
})

test('errors that may pass are retried, all others are final', () => {
  for (const status of [408, 425, 429, 500, 502, 503, 504, 507, 599])
    assert.equal(kindOf(status).kind, 'unavailable', String(status))
  for (const status of [301, 302, 307, 308, 400, 401, 403, 404, 410, 413, 415, 501, 505, 511])
    assert.equal(kindOf(status).kind, 'refused', String(status))
})

test('Retry-After is parsed as seconds and as a date', () => {
  const wait = (retryAfter?: string) => {
    const result = kindOf(429, '', retryAfter)
    return result.kind === 'unavailable' ? result.retryAfterMs : assert.fail()
  }
  assert.equal(wait('7'), 7_000)
  assert.equal(wait('Fri, 02 Jan 2026 03:04:15 GMT'), 10_000)
  assert.equal(wait('soon'), null)
  assert.equal(wait(undefined), null)
})

test('rejected calls are identified in order, with 200 and with 400', () => {
  const rejected = [
    { index: 2, code: 'b', message: 'two\nlines' },
    { index: 0, code: 'a', message: 'm' },
  ]
  const expected = [
    { index: 0, code: 'a', message: 'm' },
    { index: 2, code: 'b', message: 'two lines' },
  ]
  assert.deepEqual(kindOf(200, JSON.stringify({ success: true, rejected })), {
    kind: 'accepted',
    rejected: expected,
  })
  assert.deepEqual(kindOf(400, JSON.stringify({ success: false, rejected })), {
    kind: 'rejected',
    rejected: expected,
  })
})

test('if not all rejected calls are identified, the others are sent again', () => {
  const rejected = [{ index: 0, code: 'a', message: 'm' }]
  assert.deepEqual(kindOf(200, JSON.stringify({ success: true, rejected, moreRejected: 2 })), {
    kind: 'rejected',
    rejected,
  })
})

test('an implausible list of rejected calls is ignored', () => {
  for (const rejected of [[], {}, 'x', [{ index: 3 }], [{ index: -1 }], [{ index: 0.5 }], [null], [{}]])
    assert.equal(kindOf(400, JSON.stringify({ rejected })).kind, 'refused', JSON.stringify(rejected))
})

test('the collector’s error text is passed on in one short line', () => {
  const body = JSON.stringify({ code: 'unknown_key', message: `no such\n\u0007key ${'x'.repeat(1_000)}` })
  const result = kindOf(401, body)
  assert.ok('message' in result)
  assert.match(result.message, /^HTTP 401 unknown_key: no such key x+$/)
  assert.ok(result.message.length < 400)
})

test('waits double up to a maximum, get jitter in their upper half, and are never shorter than Retry-After', () => {
  const policy = { retries: 10, initialBackoffMs: 100, maxBackoffMs: 1_000 }
  const min = [1, 2, 3, 4, 5, 50].map((retry) => backoffMs(policy, retry, null, 0))
  assert.deepEqual(min, [50, 100, 200, 400, 500, 500])
  assert.equal(backoffMs(policy, 3, null, 0.5), 300)
  assert.ok(backoffMs(policy, 2_000, null, 0.999999) <= 1_000)
  assert.equal(backoffMs({ ...policy, initialBackoffMs: 0 }, 2_000, null, 0), 0)
  assert.equal(backoffMs(policy, 1, 7_000, 0), 7_000)
  assert.equal(backoffMs(policy, 5, 10, 0), 500)
  assert.equal(backoffMs(policy, 1, 86_400_000, 0), 300_000)
})
