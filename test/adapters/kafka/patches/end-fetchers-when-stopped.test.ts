import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { installPatches } from '../../../../src/adapters/kafka/patches/index.ts'
import { silentLogger } from '../../../../src/adapters/kafka/patches/patch.ts'
import { until } from '../../../support/until.ts'

installPatches()
const require = createRequire(import.meta.url)
const Runner = require('kafkajs/src/consumer/runner') as new (options: object) => {
  start(): Promise<void>
  stop(): Promise<void>
}
/** An endless loop without a pause would leave no time even for the timeout of a test. */
const maxQuestions = 1_000

test('a consumer that is stopped while its brokers change ends, and does not fetch for ever', async () => {
  let brokers = ['1', '2']
  let isChange = false
  let stopped: Promise<void> | undefined
  let questions = 0
  const runner = new Runner({
    logger: silentLogger,
    instrumentationEmitter: new EventEmitter(),
    consumerGroup: {
      connect: async () => {},
      joinAndSync: async () => {},
      leave: async () => {},
      heartbeat: async () => {},
      fetch: async () => {
        await delay(5)
        return []
      },
      getNodeIds() {
        if (stopped && ++questions > maxQuestions) throw new Error('it fetches for ever')
        if (isChange) {
          isChange = false
          brokers = ['1']
          // The fetcher that asks is about to end for the change, and with it the others: they will be replaced.
          stopped = runner.stop()
        }
        return brokers
      },
    },
    concurrency: 1,
    heartbeatInterval: 1_000,
    onCrash: () => {},
  })
  await runner.start()
  await delay(20)
  isChange = true
  await until(() => stopped !== undefined)
  await stopped
  assert.ok(questions < 20, `${questions} questions`)
})
