import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { createKafka } from '../../../../src/adapters/kafka/patched-client.ts'
import { installPatches } from '../../../../src/adapters/kafka/patches/index.ts'
import { silentLogger } from '../../../../src/adapters/kafka/patches/patch.ts'
import { brokers } from '../../../support/deployment/rig.ts'
import { silentLog } from '../../../support/silent-log.ts'

installPatches()
const require = createRequire(import.meta.url)

interface RequestQueue {
  push(request: object): void
  fulfillRequest(response: object): void
  maybeThrottle(ms: number): void
  checkPendingRequests(): void
  destroy(): void
}
const RequestQueue = require('kafkajs/src/network/requestQueue') as {
  new (options: object): RequestQueue
  prototype: RequestQueue
}

test('an idle connection does not poll its queue, and Node prints no warning', async (t) => {
  const warnings: string[] = []
  const onWarning = ({ name }: Error) => void warnings.push(name)
  process.on('warning', onWarning)
  const { prototype } = RequestQueue
  const { checkPendingRequests } = prototype
  let checks = 0
  prototype.checkPendingRequests = function () {
    checks++
    checkPendingRequests.call(this)
  }
  const admin = createKafka({ kafka: { brokers: brokers(), ssl: false, sasl: null } }, silentLog).admin()
  t.after(async () => {
    await admin.disconnect()
    prototype.checkPendingRequests = checkPendingRequests
    process.off('warning', onWarning)
  })
  await admin.connect()
  await admin.listTopics()
  assert.ok(checks > 0, 'each response has the queue checked')
  checks = 0
  await delay(300)
  assert.equal(checks, 0)
  assert.deepEqual(warnings, [])
})

test('a request that is delayed by broker throttling is sent once the throttling ends', async (t) => {
  const queue = new RequestQueue({
    ...{ maxInFlightRequests: null, requestTimeout: 1_000, enforceRequestTimeout: false },
    ...{ clientId: 'test', broker: 'test:9092', logger: silentLogger },
  })
  t.after(() => queue.destroy())
  const sent: { id: number; at: number }[] = []
  const push = (correlationId: number) =>
    queue.push({
      entry: { correlationId, resolve() {}, reject() {} },
      expectResponse: true,
      sendRequest: () => sent.push({ id: correlationId, at: Date.now() }),
    })
  push(1)
  assert.equal(sent.length, 1)
  const began = Date.now()
  queue.maybeThrottle(100)
  queue.fulfillRequest({ correlationId: 1, payload: null, size: 0 })
  push(2)
  push(3)
  assert.equal(sent.length, 1)
  const deadline = began + 10_000
  while (sent.length < 3 && Date.now() < deadline) await delay(5)
  assert.deepEqual(
    sent.map(({ id }) => id),
    [1, 2, 3],
  )
  assert.ok(sent[1]!.at >= began + 100)
})
