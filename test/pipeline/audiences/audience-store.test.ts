import assert from 'node:assert/strict'
import { copyFile, rm } from 'node:fs/promises'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { ensureTopics } from '../../../src/adapters/kafka/admin/topics.ts'
import { computationsOf, type ComputationsUnderTest } from '../../support/computations.ts'
import { deploy, type Deployment } from '../../support/deployment/deployment.ts'
import { until } from '../../support/until.ts'

const users = (count: number, from = 0) => Array.from({ length: count }, (_, index) => `u${from + index}`)

async function deployed(t: TestContext): Promise<Deployment> {
  const deployment = await deploy(t, { PARTITIONS_MEMBERSHIPS: '2' })
  await deployment.destination({ urls: ['http://127.0.0.1:9/hook'] })
  return deployment
}

/** Empties a view: only one that is trusted then shows no members. */
async function empty({ file, close }: ComputationsUnderTest, also = ''): Promise<void> {
  await close()
  const db = new DatabaseSync(file)
  db.exec(`DELETE FROM memberships; ${also}`)
  db.close()
}

const counts = async (report: Promise<{ entered: number; left: number }>) => {
  const { entered, left } = await report
  return { entered, left }
}
const nobody = { entered: 0, left: 0 }

test('the view can be deleted, and the one rebuilt from Kafka is the same', async (t) => {
  const deployment = await deployed(t)
  const before = await computationsOf(t, deployment)
  await before.create('audience', 'vip', 'VIP')
  await before.create('trait', 'ltv', 'LTV')
  await before.sync('audience', 'vip', users(2_500))
  await before.sync('audience', 'vip', users(2_500, 500))
  const values = users(300).map((userId, index) => JSON.stringify({ userId, value: index % 7 || null }))
  await before.sync('trait', 'ltv', values)
  await before.close()
  const rows = (file: string) => {
    const db = new DatabaseSync(file)
    const found = db.prepare('SELECT * FROM memberships ORDER BY audience, bucket, user').all()
    db.close()
    return found
  }
  const kept = rows(before.file)
  assert.equal(kept.length, 3_000 + 257)
  await rm(before.folder, { recursive: true })
  const after = await computationsOf(t, deployment, before.folder)
  assert.deepEqual(await counts(after.sync('audience', 'vip', users(2_500, 500))), nobody)
  assert.deepEqual(await counts(after.sync('trait', 'ltv', values)), nobody)
  await after.close()
  assert.deepEqual(rows(after.file), kept)
})

test('when processes write concurrently, each view holds the changes of all of them', async (t) => {
  const deployment = await deployed(t)
  const [one, two] = [await computationsOf(t, deployment), await computationsOf(t, deployment)]
  await one.create('audience', 'a', 'A')
  await one.create('audience', 'b', 'B')
  // At once, into the same partitions.
  await Promise.all([one.sync('audience', 'a', users(3_000)), two.sync('audience', 'b', users(3_000, 1_000))])
  for (const { sync, open } of [one, two]) {
    assert.deepEqual(await counts(sync('audience', 'a', users(3_000))), nobody)
    assert.deepEqual(await counts(sync('audience', 'b', users(3_000, 1_000))), nobody)
    assert.equal(await open.count('audience', 'b'), 3_000)
  }
  assert.deepEqual(await counts(two.sync('audience', 'a', users(3_000, 1))), { entered: 1, left: 1 })
  assert.deepEqual(await counts(one.sync('audience', 'a', users(3_000, 1))), nobody)
})

test('a view that was built from another cluster or another topic is rebuilt', async (t) => {
  const [deployment, other] = [await deployed(t), await deployed(t)]
  const one = await computationsOf(t, deployment)
  await one.create('audience', 'vip', 'VIP')
  await one.sync('audience', 'vip', users(10))
  await empty(one, `UPDATE built_from SET origin = 'elsewhere ' || substr(origin, instr(origin, ' ') + 1)`)
  const again = await computationsOf(t, deployment, one.folder)
  assert.deepEqual(await counts(again.sync('audience', 'vip', users(10))), nobody)
  await again.close()

  const unused = await computationsOf(t, other)
  await unused.close()
  await copyFile(again.file, unused.file)
  const copied = await computationsOf(t, other, unused.folder)
  await copied.create('audience', 'vip', 'VIP')
  assert.deepEqual(await counts(copied.sync('audience', 'vip', users(10))), { entered: 10, left: 0 })
})

for (const [what, written] of [
  ['and is empty', 0],
  ['and holds more than before', 400],
] as const)
  test(`a view of a topic that was recreated ${what} is rebuilt`, async (t) => {
    const deployment = await deployed(t)
    const { kafka, admin, topics, config } = deployment
    const one = await computationsOf(t, deployment)
    await one.create('audience', 'vip', 'VIP')
    await one.create('audience', 'other', 'Other')
    await one.sync('audience', 'vip', users(20))
    await one.close()
    await admin.deleteTopics({ topics: [topics.memberships] })
    await until(async () => !(await admin.listTopics()).includes(topics.memberships), 30_000, 'its end')
    await ensureTopics(kafka, admin, config)
    if (written > 0) {
      const elsewhere = await computationsOf(t, deployment)
      await elsewhere.sync('audience', 'other', users(written))
      await elsewhere.close()
    }
    const after = await computationsOf(t, deployment, one.folder)
    assert.deepEqual(await counts(after.sync('audience', 'vip', users(20))), { entered: 20, left: 0 })
    assert.deepEqual(await counts(after.sync('audience', 'other', users(written), true)), nobody)
    assert.match(after.log.map(({ msg }) => msg).join(), /recreated: its view is rebuilt/)
  })

test('a view that was unused for longer than tombstones are kept is rebuilt', async (t) => {
  const deployment = await deployed(t)
  const [one, two] = [await computationsOf(t, deployment), await computationsOf(t, deployment)]
  await one.create('audience', 'vip', 'VIP')
  await one.sync('audience', 'vip', users(10))
  await two.sync('audience', 'vip', users(11))
  const week = 7 * 86_400_000
  await empty(one, `UPDATE built_from SET caught_up_at = ${Date.now() - week}`)
  const again = await computationsOf(t, deployment, one.folder)
  assert.deepEqual(await counts(again.sync('audience', 'vip', users(11))), nobody)
  // Nothing came since: nothing can have been missed, and nothing is read again.
  await empty(again, `UPDATE built_from SET caught_up_at = ${Date.now() - week}`)
  const quiet = await computationsOf(t, deployment, one.folder)
  assert.equal(await quiet.open.count('audience', 'vip'), 0)
})

test('of two concurrent syncs of one audience the second is refused, and a sync of another audience proceeds', async (t) => {
  const deployment = await deployed(t)
  const begun = Promise.withResolvers<void>()
  const goOn = Promise.withResolvers<void>()
  const first = await computationsOf(t, deployment, undefined, async (command) => {
    if (command.type !== 'start_sync' || command.id !== 'a') return
    begun.resolve()
    await goOn.promise
  })
  await first.create('audience', 'a', 'A')
  await first.create('audience', 'b', 'B')
  const syncing = first.sync('audience', 'a', users(2_000))
  await begun.promise
  const conflict = { code: 'conflict', message: /audience "a" is running elsewhere; nothing was changed/ }
  const second = await computationsOf(t, deployment)
  for (const { sync, open } of [first, second]) {
    await assert.rejects(sync('audience', 'a', users(10)), conflict)
    await assert.rejects(open.remove('audience', 'a', true), conflict)
    await sync('audience', 'b', users(1_500))
  }
  goOn.resolve()
  assert.deepEqual(await counts(syncing), { entered: 2_000, left: 0 })
  assert.deepEqual(await counts(second.sync('audience', 'a', users(2_000, 1))), { entered: 1, left: 1 })
  const calls = await deployment.read(deployment.topics.calls)
  assert.equal(calls.length, 2_000 + 1_500 + 2)
})
