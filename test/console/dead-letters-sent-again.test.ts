import assert from 'node:assert/strict'
import { test } from 'node:test'
import { settledBy } from '../../src/operators/dead-letters/dead-letters.ts'
import { startConsole } from '../support/consoles.ts'
import { deploy } from '../support/deployment/deployment.ts'
import { runCommand } from '../support/deployment/deployment-cli.ts'
import { temporaryFolder } from '../support/deployment/rig.ts'
import { startReceiver } from '../support/receivers.ts'
import { callsOfUsers, replayIn } from '../support/replay/replays.ts'
import { until } from '../support/until.ts'

interface Listed {
  data: {
    id: string
    messageId: string
    sentAgain?: { at: string; replay: string | null; state: string; endedAt: string | null } | null
  }[]
}

test('what is no dead letter any more is done, as far as the statistics know', () => {
  const store = {
    reach: () => ({ asOf: 100_000, since: 10_000 }),
    deadLettersSince: () => 20_000,
    isDeadLetter: (id: string) => id === 'open',
  }
  const isSettled = settledBy(store)
  assert.equal(isSettled('done', 50_000), true)
  assert.equal(isSettled('open', 50_000), false)
  assert.equal(isSettled('done', 19_999), false, 'before all of them are known')
  assert.equal(isSettled('done', 91_000), false, 'it may not have been counted yet')
  assert.equal(settledBy({ ...store, deadLettersSince: () => null })('done', 50_000), false)
})

test('a dead letter that a replay got delivered says so: when, by which, in the list, by itself and in its group', async (t) => {
  const deployment = await deploy(t, { STORE_PATH: await temporaryFolder(t) })
  const receiver = await startReceiver(t)
  await deployment.destination({ urls: [receiver.url] })
  const console = await startConsole(deployment)
  const { ok } = console
  await deployment.forwarder()
  // What failed before the ledger began is not known to be done.
  await deployment.produce(callsOfUsers(1, 1, 'first'))
  await receiver.waitFor(1, 30_000)
  await deployment.drained(40_000)
  receiver.answer({ status: 404 })
  await deployment.produce(callsOfUsers(3, 3, 'dead'))
  await receiver.waitFor(4, 30_000)
  await deployment.drained(40_000)
  const list = async (query: string) =>
    ((await ok(200, 'GET', `/dead-letters?${query}`)) as unknown as Listed).data
  const before = await list('replays=true')
  assert.deepEqual(
    before.map(({ sentAgain }) => sentAgain),
    [null, null, null],
  )
  assert.equal('sentAgain' in (await list(''))[0]!, false, 'where it is not asked, it is not looked up')

  receiver.answer({ status: 200 })
  const { id } = before.find(({ messageId }) => messageId === 'dead1')!
  const job = await ok(201, 'POST', '/replays', { deadLetters: { ids: [id] } })
  await replayIn(console, String(job.id), 'finished')
  const marks = async () =>
    Object.fromEntries((await list('replays=true')).map((each) => [each.messageId, each.sentAgain]))
  await until(async () => (await marks()).dead1?.state === 'delivered', 40_000)
  const { dead0, dead1, dead2 } = await marks()
  assert.deepEqual([dead0, dead2], [null, null])
  assert.equal(dead1!.replay, job.id)
  assert.ok(dead1!.endedAt! >= dead1!.at, JSON.stringify(dead1))
  assert.deepEqual((await ok(200, 'GET', `/dead-letters/${id}?replays=true`)).sentAgain, dead1)
  const shown = await runCommand(t, deployment, '', 'dead-letters', 'show', id, '--replays')
  assert.match(shown.stdout, new RegExp(`^sent again +\\S+ by ${String(job.id)}: delivered `, 'm'))

  const settled = async () => {
    const { groups } = (await ok(200, 'GET', '/dead-letters/groups?replays=true')) as unknown as {
      groups: { count: number; settled: number }[]
    }
    return groups.map((group) => [group.count, group.settled])
  }
  await until(async () => JSON.stringify(await settled()) === '[[3,1]]', 40_000)
})
