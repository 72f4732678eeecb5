import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readable } from '../../../src/adapters/schema-registry/readable.ts'
import { PostriderError } from '../../../src/errors.ts'

const ways = [
  { when: 'at once', failing: (error: Error) => () => assert.fail(error) },
  { when: 'once a schema is there', failing: (error: Error) => () => Promise.reject(error) },
]

for (const { when, failing } of ways) {
  test(`only what can never be read counts as unreadable, where that is known ${when}`, async () => {
    const told: string[] = []
    const decode = async (error: Error) => readable(failing(error), (why) => told.push(why))
    assert.equal(await decode(new PostriderError('undecodable', 'no call')), null)
    assert.deepEqual(told, ['no call'])
    for (const error of [new PostriderError('registry_unavailable', 'away'), new TypeError('a bug')])
      await assert.rejects(decode(error), error)
    assert.deepEqual(told, ['no call'])
  })
}

test('what can be read is there at once where its schema is known', () => {
  assert.equal(
    readable(() => 7),
    7,
  )
})
