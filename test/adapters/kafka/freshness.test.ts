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
  const source = groupMember(deployment, { sessionTimeoutMs: 6_000 })
  let assigned = 0
  await source.start(
    listener({
      assigned: () => void assigned++,
    }),
  )
  await until(() => source.isFresh())
  assert.equal(assigned, 1)

  // As SIGSTOP does, right behind a heartbeat that is on its way: nothing runs until long after its answer is there.
  const { prototype } = require('kafkajs/src/network/connection') as { prototype: Connection }
  const { send } = prototype
  const frozen = Promise.withResolvers<boolean>()
  prototype.send = async function (this: Connection, protocol) {
    const answer = send.call(this, protocol)
    if (protocol.request.apiName !== 'Heartbeat') return answer
    prototype.send = send
    await new Promise((resolve) => setImmediate(resolve))
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 4_200)
    await answer
    setImmediate(() => frozen.resolve(source.isFresh()))
    return answer
  }
  t.after(() => (prototype.send = send))
  assert.equal(await frozen.promise, false)
  // The next heartbeat is asked for and answered: it is a member still.
  await until(() => source.isFresh())
  assert.equal(assigned, 1)
})
