import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { deploy } from '../support/deployment/deployment.ts'

const run = promisify(execFile)

interface Outcome {
  objects: number
  different: string[]
  loaded: string[]
}

async function outcomeOf(args: string[], env: Record<string, string | undefined>): Promise<Outcome> {
  const program = join(import.meta.dirname, '../support/kafka/kafkajs-differences.ts')
  const { stdout } = await run(process.execPath, [program, ...args], { env: { ...process.env, ...env } })
  return JSON.parse(stdout) as Outcome
}

test('an application that sends through `postrider/kafka` has an unchanged kafkajs', async (t) => {
  const deployment = await deploy(t)
  const { different, loaded } = await outcomeOf([], deployment.env)
  assert.deepEqual(different, [])
  assert.ok(loaded.includes('src/kafka-transport.ts'))
  assert.deepEqual(
    loaded.filter((file) => file.startsWith('src/adapters/kafka/patch')),
    [],
  )
  const [sent] = await deployment.read(deployment.topics.calls)
  assert.equal((await deployment.codecs.calls.decode(sent!.value)).messageId, 'sent-beside-kafkajs')
})

test('the comparison detects each of the patches', async () => {
  const { objects, different } = await outcomeOf(['--patch'], {})
  assert.ok(objects > 1_000, `${objects} objects`)
  for (const member of [
    'network/requestQueue/index.js prototype scheduleCheckPendingRequests',
    'network/requestQueue/index.js prototype inflight',
    'network/connection.js prototype connect',
    'consumer/consumerGroup.js prototype joinAndSync',
    'consumer/consumerGroup.js prototype heartbeat',
    'consumer/consumerGroup.js prototype fetch',
    'consumer/runner.js prototype fetch',
  ])
    assert.ok(different.includes(member), `${member} is not among ${different.join()}`)
})
