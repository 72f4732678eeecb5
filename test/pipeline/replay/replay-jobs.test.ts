// Replays as jobs: they outlive processes, rest and end when told to, and say what is missing.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { withoutScheduled } from '../../support/calls/numbered-calls.ts'
import { startConsole } from '../../support/consoles.ts'
import { runCommand, startCommand } from '../../support/deployment/deployment-cli.ts'
import { deploy, type Deployment } from '../../support/deployment/deployment.ts'
import { startReceiver, type Receiver } from '../../support/receivers.ts'
import {
  assertInOrder,
  callsOfUsers,
  idsOf,
  keysOf,
  replayIn,
  startReplay,
} from '../../support/replay/replays.ts'
import { until } from '../../support/until.ts'
import { deleteRecords } from '../../support/kafka/delete-records.ts'

/** A destination that has had none of the calls that lie there, and a forwarder. */
async function backfill(
  t: TestContext,
  count: number,
  env: Record<string, string> = {},
): Promise<{ deployment: Deployment; receiver: Receiver }> {
  const deployment = await deploy(t, env)
  const [old, receiver] = [await startReceiver(t), await startReceiver(t)]
  await deployment.destination({ id: 'old', urls: [old.url] })
  await deployment.forwarder()
  await deployment.produce(callsOfUsers(count, 10))
  await old.waitFor(count, 60_000)
  await deployment.drained()
  await deployment.destination({ id: 'crm', urls: [receiver.url] })
  return { deployment, receiver }
}

test('a replay whose process is killed goes on in another one, and repeats no more than was in the air', async (t) => {
  const { deployment, receiver } = await backfill(t, 2_400, { SESSION_TIMEOUT: '3s' })
  const args = ['replay', '--destination', 'crm', '--since', '1h', '--rate', '250/s']
  const running = startCommand(t, deployment, ...args)
  await receiver.waitFor(1_000, 60_000)
  running.process.kill('SIGKILL')
  await running.ended
  const arrived = receiver.requests.length
  assert.ok(arrived < 2_400, 'it was killed in the middle')
  const list = await runCommand(t, deployment, '', 'replays', 'list', '--json')
  const { id, state } = JSON.parse(list.stdout) as { id: string; state: string }
  assert.equal(state, 'running')

  const console = await startConsole(deployment)
  const { totals } = await replayIn(console, id, 'finished', 90_000)
  await until(() => new Set(idsOf(receiver.requests)).size === 2_400, 30_000, 'all calls')
  assert.equal(totals.looked, 2_400)
  const repeated = receiver.requests.length - 2_400
  // Progress is noted twice a second, with what was acknowledged by then: of 125 calls, or of more where the machine is full.
  assert.ok(repeated <= arrived / 2, `${repeated} of ${arrived} came twice`)
  assert.equal(new Set(keysOf(receiver)).size, 2_400, 'a repeated call has another delivery id')
})

test('a replay rests while it is paused, goes on where it was, and a cancelled one sends nothing more', async (t) => {
  const { deployment, receiver } = await backfill(t, 1_200)
  const console = await startConsole(deployment)
  // It would take 20 s: nothing here takes as long, on whatever machine.
  const { id } = await startReplay(console, { destinationId: 'crm', rate: 60 })
  await receiver.waitFor(50, 60_000)
  await console.ok(200, 'POST', `/replays/${id}/pause`)
  // Its runner leaves once it has seen that, and has noted what was sent by then, which arrives.
  const { groupId, topicPrefix } = deployment.config
  const lease = `${groupId}.replay.${topicPrefix}${id}`
  const hasLeft = async () => (await deployment.admin.describeGroups([lease])).groups[0]!.state === 'Empty'
  await until(hasLeft, 30_000, 'that the runner leaves')
  const { sent } = await replayIn(console, id, 'paused')
  assert.ok(sent >= 50)
  await receiver.waitFor(sent, 30_000)
  const before = receiver.requests.length
  assert.ok(before < 1_200)
  const second = await startReplay(console, {
    destinationId: 'crm',
    only: ['skipped'],
    rate: 100,
    events: ['None'],
  })
  assert.deepEqual(second.overlapping, [id])
  await replayIn(console, second.id, 'finished')
  assert.equal(receiver.requests.length, before, 'a paused replay went on')
  await console.ok(200, 'POST', `/replays/${id}/resume`)
  await receiver.waitFor(before + 100, 60_000)
  await console.ok(200, 'POST', `/replays/${id}/cancel`)
  const cancelled = await replayIn(console, id, 'cancelled')
  assert.equal((await console.call('POST', `/replays/${id}/resume`)).status, 409)
  assert.equal((await console.call('POST', '/replays/nobody/pause')).status, 404)
  assert.ok(cancelled.sent < 1_200)
  assertInOrder(await withoutScheduled(deployment, receiver.requests))
})

test('the command shows what it did, a dry run sends nothing, and every wrong flag is named', async (t) => {
  const { deployment, receiver } = await backfill(t, 60)
  const run = (...args: string[]) => runCommand(t, deployment, '', 'replay', '--destination', 'crm', ...args)
  const dry = await run('--since', '1h', '--dry-run')
  assert.equal(dry.status, 0, dry.stderr)
  assert.match(dry.stdout, /^60 deliveries would be sent, and nothing was\n/)
  const done = await run(
    '--since',
    '1h',
    '--types',
    'track,page',
    '--types',
    'screen',
    '--only',
    'skipped',
    '--only',
    'held,failed',
    '--user',
    'u3',
  )
  assert.equal(done.status, 0, done.stderr)
  assert.match(done.stdout, /\nstate +finished\n/)
  assert.match(done.stdout, /\nsent +6 \(held 0, skipped 6, failed 0, delivered 0\)\n/)
  await receiver.waitFor(6, 30_000)
  assert.equal(receiver.requests.length, 6)
  const wrong = await run('--since', '1h', '--only', 'lost')
  assert.equal(wrong.status, 2)
  assert.match(wrong.stderr, /--only is "lost"; it takes held, skipped, failed, delivered/)
  const future = await run('--since', '1h', '--until', '2999-01-01', '--rate', '0')
  assert.equal(future.status, 2, future.stderr)
  const detached = await run('--since', '1h', '--detach')
  assert.match(detached.stdout, /waits for a console to run it/)
  const shown = await runCommand(t, deployment, '', 'replays', 'list')
  assert.match(shown.stdout, /crm +finished[^]*crm +running/)
  const newest = await runCommand(t, deployment, '', 'replays', 'list', '--limit', '1')
  assert.match(newest.stdout, /crm +running/)
  assert.doesNotMatch(newest.stdout, /finished/)
  assert.match(newest.stderr, /^the newest 1; --limit shows more\n$/)
  const oldest = await runCommand(t, deployment, '', 'replays', 'list', '--order', 'oldest', '--limit', '1')
  assert.match(oldest.stdout, /crm +finished/)
})

test('a replay waits while its destination is disabled, and says what retention has taken', async (t) => {
  const { deployment, receiver } = await backfill(t, 80)
  const { admin, topics } = deployment
  const ends = await deployment.ranges(topics.calls)
  await deleteRecords(
    admin,
    topics.calls,
    ends.map(({ partition, high }) => ({
      partition,
      offset: Math.floor(high / 2),
    })),
  )
  const left = ends.reduce((sum, { high }) => sum + Math.ceil(high / 2), 0)
  const console = await startConsole(deployment)
  const report = await console.ok(200, 'POST', '/replays/dry-run', { destinationId: 'crm', since: '1h' })
  assert.equal((report.counts as { skipped: number }).skipped, left)
  assert.ok(report.keptSince !== null)
  // So slow that it cannot end before its destination is disabled.
  const started = await startReplay(console, { destinationId: 'crm', rate: 1 })
  assert.ok(started.keptSince !== null)
  await receiver.waitFor(1, 60_000)
  await deployment.settings.execute({ type: 'disable_destination', id: 'crm' })
  await until(async () => (await replayIn(console, started.id, 'running')).waitsFor === 'disabled', 10_000)
  const refused = await console.call('POST', '/replays', {
    json: { destinationId: 'crm', since: '1h', only: [], until: '2999-01-01' },
  })
  assert.equal(refused.status, 400, refused.text)
  assert.deepEqual(
    (refused.body.fields as { field: string }[]).map(({ field }) => field),
    ['destinationId', 'only', 'until'],
  )
  const before = receiver.requests.length
  await deployment.settings.execute({ type: 'enable_destination', id: 'crm' })
  await receiver.waitFor(before + 2, 30_000)
  await console.ok(200, 'POST', `/replays/${started.id}/cancel`)
  const rest = await startReplay(console, { destinationId: 'crm' })
  await replayIn(console, rest.id, 'finished')
})
