import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseByteSize } from '../../../src/core/byte-size.ts'
import { batchBody, batchedBytes, batchTermsOf } from '../../../src/core/shape/batch.ts'
import {
  defaultOptions,
  optionsConflicts,
  optionsFaults,
  withDependents,
} from '../../../src/core/settings/destination-options.ts'

const bytes = (text: string) => Buffer.from(text)
const text = (body: Uint8Array) => Buffer.from(body).toString()
const faultsOf = (edit: Parameters<typeof optionsFaults>[0]) =>
  optionsFaults(edit).map(({ field, message }) => `${field}: ${message}`)

test('a batch is an array of the bodies, byte for byte, or each in a line that ends', () => {
  const bodies = ['{"a":1.50}', '{}', '{"b":"é"}'].map(bytes)
  assert.equal(text(batchBody(bodies, 'array')), '[{"a":1.50},{},{"b":"é"}]')
  assert.equal(text(batchBody(bodies, 'lines')), '{"a":1.50}\n{}\n{"b":"é"}\n')
  assert.equal(text(batchBody([bytes('{}')], 'array')), '[{}]')
  const counted = bodies.reduce((sum, body) => sum + batchedBytes(body), 1)
  assert.equal(batchBody(bodies, 'array').length, counted)
  assert.ok(batchBody(bodies, 'lines').length <= counted)
})

test('sizes are written in bytes, KB of 1,024, or MB', () => {
  const sizes = ['100B', '500KB', '2MB', ' 1KB ', '1kb', '1.5MB', 'KB', '-1KB', '1234567890B', ''].map(
    parseByteSize,
  )
  assert.deepEqual(sizes, [100, 512_000, 2_097_152, 1_024, null, null, null, null, null, null])
})

test('a destination has batches of the calls, bytes and time that it says; as long as it says how many calls', () => {
  assert.equal(batchTermsOf(defaultOptions), null)
  assert.deepEqual(batchTermsOf({ ...defaultOptions, batch: 100 }), {
    ...{ size: 100, bytes: 512_000, waitMs: 1_000, format: 'array' },
  })
  const given = { batch: 2, batchBytes: '1MB', batchWait: '250ms', batchFormat: 'lines' as const }
  assert.deepEqual(batchTermsOf({ ...defaultOptions, ...given }), {
    ...{ size: 2, bytes: 1_048_576, waitMs: 250, format: 'lines' },
  })
})

test('what no batch can be is refused and named', () => {
  assert.deepEqual(faultsOf({ batch: 1, batchBytes: '500', batchWait: '11s' }), [
    'batch: 1 is not a whole number from 2 to 1000',
    'batchBytes: "500" is no size from 1KB to 5MB, such as 500KB',
    'batchWait: "11s" is no duration from 1ms to 10s, such as 1s',
  ])
  assert.deepEqual(faultsOf({ batch: 1_000, batchBytes: '5MB', batchWait: '10s' }), [])
  assert.deepEqual(faultsOf({ batch: null }), [])
})

test('a request of several calls has nothing that is of one call', () => {
  const conflicts = (edit: object, hasHoles = false) =>
    optionsConflicts(
      'usage',
      { ...defaultOptions, batch: 10, ...edit },
      { isSigned: true, hasHoles, hasClientSecret: false, hasAuthorization: false },
    ).map(({ message }) => message)
  assert.deepEqual(conflicts({}), [])
  assert.deepEqual(conflicts({ contentType: 'form', traceContext: true }, true), [
    'a form holds one call',
    'a request of several calls has no hole in its URL or in a header, which is of one call',
    'a request of several calls has no trace context, which is of one call',
  ])
  assert.deepEqual(conflicts({ order: 'strict' }), [
    'strict order sends each call alone: it goes without batches',
  ])
  assert.deepEqual(conflicts({ batch: null, contentType: 'form', traceContext: true }, true), [])
})

test('without batches nothing is left of how they were', () => {
  const { batchBytes, batchWait, batchFormat } = defaultOptions
  const edit = withDependents({ batch: null, batchWait: '5s', method: 'PUT' })
  assert.deepEqual(edit, { batch: null, batchBytes, batchWait, batchFormat, method: 'PUT' })
  assert.deepEqual(withDependents({ batch: 10, batchWait: '5s' }), { batch: 10, batchWait: '5s' })
})
