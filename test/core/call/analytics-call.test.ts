import assert from 'node:assert/strict'
import { test } from 'node:test'
import { partitionKey, usersOf } from '../../../src/core/call/analytics-call.ts'
import { someCall } from '../../support/calls/calls.ts'

const alias = (given = {}) => someCall({ type: 'alias', userId: 'new', previousId: 'old', ...given })

test('the key of every call is its userId, else its anonymousId; the key of an alias is the new id', () => {
  assert.equal(partitionKey(someCall({ anonymousId: 'a' })), 'u-1')
  assert.equal(partitionKey(someCall({ userId: null, anonymousId: 'a' })), 'a')
  assert.equal(partitionKey(someCall({ userId: '', anonymousId: 'a' })), 'a')
  assert.equal(partitionKey(alias()), 'new')
  assert.equal(partitionKey(alias({ anonymousId: 'a' })), 'new')
  assert.equal(partitionKey(someCall({ userId: null })), null)
})

test('for deletions a call belongs to the user who is its key, and an alias also to the old id', () => {
  assert.deepEqual(usersOf(someCall({ anonymousId: 'a', previousId: 'old' })), ['u-1'])
  assert.deepEqual(usersOf(someCall({ userId: null, anonymousId: 'a' })), ['a'])
  assert.deepEqual(usersOf(alias()), ['new', 'old'])
  assert.deepEqual(usersOf(alias({ previousId: 'new' })), ['new'])
  assert.deepEqual(usersOf(alias({ userId: '', previousId: 'old' })), ['old'])
  assert.deepEqual(usersOf(someCall({ userId: null })), [])
})
