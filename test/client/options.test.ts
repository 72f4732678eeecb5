import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Analytics, AnalyticsError, type AnalyticsOptions } from '../../src/client/index.ts'
import { readOptions } from '../../src/client/options.ts'

test('every option has the documented default', () => {
  const { transport, onError, ...settings } = readOptions('key', {})
  assert.deepEqual(settings, {
    flushAt: 20,
    flushAfterMs: 5_000,
    policy: { retries: 10, initialBackoffMs: 100, maxBackoffMs: 30_000 },
    limits: { calls: 10_000, bytes: 16_777_216 },
    closeTimeoutMs: 10_000,
  })
  assert.equal(transport.name, 'http://127.0.0.1:8080/v1/batch')
  assert.equal(typeof onError, 'function')
})

test('undefined counts as absent, and size is used as flushAt', () => {
  assert.equal(readOptions('key', { flushAt: undefined, endpoint: undefined }).flushAt, 20)
  assert.equal(readOptions('key', { size: 5 }).flushAt, 5)
  assert.equal(readOptions('key', { size: 5, flushAt: 5 }).flushAt, 5)
  assert.equal(readOptions('key', { retries: Infinity }).policy.retries, Infinity)
})

const transport = {
  name: 'own',
  send: async () => ({ kind: 'accepted', rejected: [] }) as const,
  close: async () => {},
}

test('invalid options are named by the constructor, and the write key is never repeated', () => {
  const table: [unknown, unknown, RegExp][] = [
    ['key', { flushAt: 5, size: 6 }, /size is another name of flushAt/],
    ['key', { flushAt: 0 }, /flushAt must be a whole number from 1 .* not 0/],
    ['key', { size: 1.5 }, /size must be a whole number/],
    ['key', { flushAt: '20' }, /flushAt must be/],
    ['key', { flushAfter: -1 }, /flushAfter must be/],
    ['key', { flushAfter: NaN }, /flushAfter must be/],
    ['key', { flushAfter: Infinity }, /flushAfter must be/],
    ['key', { retries: -1 }, /retries must be/],
    ['key', { timeout: 0 }, /timeout must be/],
    ['key', { initialBackoff: 50, maxBackoff: 10 }, /maxBackoff must be a number from 50/],
    ['key', { maxQueued: 10 }, /maxQueued \(10\) is less than flushAt \(20\)/],
    ['key', { maxQueuedBytes: 1_000 }, /maxQueuedBytes must be a whole number from 32768/],
    ['key', { closeTimeout: -1 }, /closeTimeout/],
    ['key', { onError: 'x' }, /onError must be a function/],
    ['key', { flushInterval: 10 }, /no option flushInterval; there are endpoint, flushAt/],
    ['key', null, /options must be an object/],
    ['key', { endpoint: 'collector:8080' }, /endpoint must be a URL/],
    ['key', { endpoint: 'ftp://collector' }, /endpoint must be a URL/],
    ['key', { endpoint: '' }, /endpoint must be a URL/],
    ['key', { endpoint: 'http://me:s3cret@collector' }, /endpoint holds a user name or password/],
    ['key', { endpoint: 'http://collector', transport }, /endpoint or transport, not both/],
    ['key', { transport: {} }, /transport must have send and close/],
    ['', {}, /write key of the source is needed/],
    ['se:cret', {}, /write key/],
    ['se cret', {}, /write key/],
    ['s3cret\n', {}, /write key/],
    [undefined, {}, /write key must be a string/],
  ]
  for (const [key, options, message] of table) {
    assert.throws(
      () => new Analytics(key as string, options as AnalyticsOptions),
      (error: unknown) => {
        assert.ok(error instanceof AnalyticsError)
        assert.equal(error.code, 'invalid_option')
        assert.match(error.message, message)
        assert.doesNotMatch(error.message, /s3cret|se.cret/)
        return true
      },
    )
  }
})

test('with a transport no write key is needed', () => {
  assert.equal(readOptions('', { transport }).transport, transport)
})
