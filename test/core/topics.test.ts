import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tierOfTopic, topicNames } from '../../src/core/topics.ts'

test('the name of a retry topic gives its tier and delay', () => {
  const names = topicNames('eu.')
  assert.deepEqual(tierOfTopic(names, 'eu.webhooks.retry.90s'), { name: '90s', delayMs: 90_000 })
  assert.deepEqual(tierOfTopic(names, names.retry('2h')), { name: '2h', delayMs: 7_200_000 })
  for (const name of ['replay', 'strict'])
    assert.deepEqual(tierOfTopic(names, names.retry(name)), { name, delayMs: 0 })
  for (const topic of [
    'webhooks.retry.10s',
    'eu.webhooks.retry.',
    'eu.webhooks.retry.soon',
    'eu.webhooks.retry.0s',
    names.calls,
  ])
    assert.equal(tierOfTopic(names, topic), null, topic)
})
