import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { someCall } from '../../support/calls/calls.ts'
import { adminToken, startConsole } from '../../support/consoles.ts'
import { deploy } from '../../support/deployment/deployment.ts'
import { temporaryFolder } from '../../support/deployment/rig.ts'

/** Needs: a token of any role. Bounded: the disk of the console. */
test('the index of messages keeps the newest within its bound, and says since when', async (t) => {
  const deployment = await deploy(t)
  await deployment.destination({ urls: ['http://127.0.0.1:9/'] })
  const storePath = await temporaryFolder(t)
  // Room for some 2,900 records at first.
  const config = { ...deployment.config, consolePort: 0, adminToken, storePath, messageIndexBytes: 1_040_000 }
  const { ok, call } = await startConsole(deployment, { config })
  let produced = 0
  const produce = async (count: number) => {
    for (const end = produced + count; produced < end; produced += 500)
      await deployment.produce(
        Array.from({ length: 500 }, (_, at) =>
          someCall({ messageId: `m-${produced + at}`, userId: `u-${at}` }),
        ),
      )
  }
  const file = join(storePath, `${deployment.topics.deliveries}.index.sqlite`)
  const rows = () => {
    const database = new DatabaseSync(file, { readOnly: true })
    const count = (table: string) => Number(database.prepare(`SELECT count(*) AS n FROM ${table}`).get()!.n)
    const found = { traces: count('traces'), keys: count('keys') }
    database.close()
    return found
  }

  await produce(2_000)
  assert.equal((await ok(200, 'GET', '/messages/m-0')).indexedSince, null)

  let since = ''
  for (const total of [6_000, 9_000, 14_000]) {
    await produce(total - produced)
    const newest = await ok(200, 'GET', `/messages/m-${total - 1}`)
    assert.ok(String(newest.indexedSince) > since, 'it moves on')
    since = String(newest.indexedSince)
    const { traces, keys } = rows()
    assert.ok(traces >= 500 && traces <= 3_900, `${traces} of ${total}`)
    assert.equal(keys, 2 * traces, 'of a call its messageId and its user')
    const oldest = await call('GET', '/messages/m-0')
    assert.equal(oldest.status, 404)
    assert.ok(String(oldest.body.message).includes(`no call since ${since} has it`), oldest.text)
    assert.match(String(oldest.body.message), /MESSAGE_INDEX_MB/)
    const page = await ok(200, 'GET', '/users/u-1/messages')
    assert.equal(page.indexedSince, since)
    const { knownSince, events } = await ok(200, 'GET', '/events?source=shop')
    assert.equal(knownSince, since, 'what was passed over was not counted')
    assert.ok((events as { calls: number }[])[0]!.calls >= 2_000, 'what was counted stays')
    assert.ok((page.data as unknown[]).length >= 1)
  }
})

test('calls that came in a transaction are read once: the mark behind them is no sign of another topic', async (t) => {
  const deployment = await deploy(t)
  const { kafka, topics } = deployment
  const { ok, log } = await startConsole(deployment)
  await deployment.produce([someCall({ messageId: 'm-1' })])
  const producer = kafka.producer({ transactionalId: topics.calls, maxInFlightRequests: 1, idempotent: true })
  t.after(() => producer.disconnect())
  await producer.connect()
  const transaction = await producer.transaction()
  const partitions = [...(await deployment.ranges(topics.calls)).keys()]
  await transaction.send({
    topic: topics.calls,
    messages: partitions.map((partition) => ({ partition, value: 'no call' })),
  })
  await transaction.commit()
  for (let time = 0; time < 2; time++) await ok(200, 'GET', '/messages/m-1')
  assert.deepEqual(
    log.filter(({ msg }) => msg.includes('recreated')),
    [],
  )
})
