import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { groupMember, listener } from './group-member.ts'
import { deploy } from '../../support/deployment/deployment.ts'
import { until } from '../../support/until.ts'

const require = createRequire(import.meta.url)
interface Connection {
  send(request: { request: { apiName: string } }): Promise<unknown>
}

test('a heartbeat answer that arrived while the process was frozen does not make the member fresh', async (t) => {
  const deployment = await deploy(t)
  const sessionTimeoutMs = 12_000
  const source = groupMember(deployment, { sessionTimeoutMs })
  let assigned = 0
  await source.start(
    listener({
      assigned: () => void assigned++,
    }),
  )
  await until(() => source.isFresh())
  assert.equal(assigned, 1)

  // As SIGSTOP does, right behind a heartbeat that is on its way: once its answer is read, both clocks are far ahead. They
  // are put ahead, for after a pause that long, and what a busy machine adds, it would be no member any more. It is
  // shorter than kafkajs waits for an answer (12 s).
  const { prototype } = require('kafkajs/src/network/connection') as { prototype: Connection }
  const { send } = prototype
  const frozen = Promise.withResolvers<boolean>()
  let passedMs = 0
  const clocks = [Date.now, performance.now.bind(performance)] as const
  t.mock.method(Date, 'now', () => clocks[0]() + passedMs)
  t.mock.method(performance, 'now', () => clocks[1]() + passedMs)
  prototype.send = async function (this: Connection, protocol) {
    const answer = send.call(this, protocol)
    if (protocol.request.apiName !== 'Heartbeat') return answer
    prototype.send = send
    await new Promise((resolve) => setImmediate(resolve))
    passedMs = (sessionTimeoutMs * 2) / 3 + 100
    answer.then(() => setImmediate(() => frozen.resolve(source.isFresh())), frozen.reject)
    return answer
  }
  t.after(() => (prototype.send = send))
  assert.equal(await frozen.promise, false)
  // The next heartbeat is asked for and answered: it is a member still.
  await until(() => source.isFresh())
  assert.equal(assigned, 1)
})
