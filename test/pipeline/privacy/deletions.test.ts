// A deletion request from the command to the receivers, with real forwarders on a real Kafka.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DeletionStatus } from '../../../src/operators/deletions/deletions.ts'
import { someCall } from '../../support/calls/calls.ts'
import { callsOf, deletionsIn, erasuresOf, nothingWaits, ok, shownOnce } from '../../support/deletions.ts'
import { runCommand, startCommand } from '../../support/deployment/deployment-cli.ts'
import { deploy } from '../../support/deployment/deployment.ts'
import { until } from '../../support/until.ts'
import { startReceiver, type Receiver } from '../../support/receivers.ts'
import { counted, dispositions, tierRecords } from '../../support/calls/samples.ts'

const bodies = (receiver: Receiver): string[] => receiver.requests.map(({ body }) => body.toString())

test('every destination of every source is notified of each user, after that user’s earlier calls', async (t) => {
  const deployment = await deploy(t)
  const [crm, mail, blog, off] = await Promise.all([1, 2, 3, 4].map(() => startReceiver(t)))
  await deployment.destination({ id: 'crm', urls: [crm!.url] })
  await deployment.destination({ id: 'mail', urls: [mail!.url] })
  await deployment.destination({ id: 'blogs', source: 'blog', urls: [blog!.url] })
  await deployment.destination({ id: 'off', source: 'dark', urls: [off!.url] })
  await deployment.destination({ id: 'closed', source: 'shut', urls: [off!.url] })
  await deployment.settings.execute({ type: 'disable_destination', id: 'off' })
  await deployment.settings.execute({ type: 'disable_source', id: 'shut' })
  await deployment.settings.execute({
    type: 'create_source',
    id: 'quiet',
    name: 'Q',
    writeKey: 'q',
    enabled: true,
  })
  const earlier = Array.from({ length: 20 }, (_, n) => someCall({ messageId: `e${n}`, userId: 'ada' }))
  await deployment.produce(earlier)
  const said = await runCommand(t, deployment, '', 'delete-user', 'ada', 'bob')
  assert.equal(said.status, 0, said.stderr)
  const [id] = /[0-9a-z]{9}-[0-9a-f]{10}/.exec(said.stderr)!
  assert.match(
    said.stdout,
    /^2 users erased at shop, blog, dark, shut, quiet; 4 delete calls written for the /,
  )
  assert.match(said.stdout, /; no destination to notify at dark, shut, quiet\n/)

  await deployment.forwarder()
  await Promise.all([crm!.waitFor(22, 60_000), mail!.waitFor(22, 60_000), blog!.waitFor(2, 60_000)])
  for (const receiver of [crm!, mail!]) {
    const last = receiver.requests.findIndex(
      (request) => request.json().type === 'delete' && request.json().userId === 'ada',
    )
    const before = receiver.requests.slice(0, last).filter((request) => request.json().userId === 'ada')
    assert.equal(before.length, 20, 'the delete call came first')
  }
  const [erasure] = await erasuresOf(deployment)
  const timestamp = new Date(erasure!.at).toISOString()
  assert.deepEqual(
    bodies(blog!).sort(),
    ['ada', 'bob'].map((user) => `{"type":"delete","userId":"${user}","timestamp":"${timestamp}"}`),
  )
  assert.equal(off!.requests.length, 0)

  const status = await shownOnce(deletionsIn(deployment), id, nothingWaits)
  assert.equal(status.state, 'finished')
  assert.deepEqual(
    status.progress.map(({ sourceId, users, requested, delivered, destinations }) => [
      sourceId,
      users,
      requested,
      delivered,
      destinations.map(({ destinationId, delivered: each }) => `${destinationId} ${each}`).join(),
    ]),
    [
      ['shop', 2, 2, 2, 'crm 2,mail 2'],
      ['blog', 2, 2, 2, 'blogs 2'],
      ['dark', 2, 0, 0, ''],
      ['shut', 2, 0, 0, ''],
      ['quiet', 2, 0, 0, ''],
    ],
  )
  const page = await ok(t, deployment, '', 'deletions', 'show', id)
  assert.match(page, /\nshop +mail +2 +2 +0 +0 +0\n/)
  assert.match(page, /\nquiet +no destination +0 +/)
  assert.match(
    await ok(t, deployment, '', 'deletions', 'list'),
    new RegExp(`\\n${id} +\\S+Z +2 +finished +shop, blog`),
  )
})

test('waiting deliveries of a deleted user are not sent, later ones are, and other users lose nothing', async (t) => {
  const deployment = await deploy(t)
  const [crm, strict] = await Promise.all([startReceiver(t), startReceiver(t)])
  crm.answer({ status: 503 })
  strict.answer({ status: 404 })
  await deployment.destination({ urls: [crm.url] })
  await deployment.destination({ id: 'strict', urls: [strict.url] })
  const call = (messageId: string, userId: string) => someCall({ messageId, userId })
  const first = await deployment.forwarder()
  await deployment.produce([call('w1', 'ada'), call('w2', 'ada'), call('b1', 'bob')])
  await counted(first, dispositions('strict', 'dead_lettered'), 3, 60_000)
  await until(
    async () => new Set((await tierRecords(deployment, 'crm')).map(({ id }) => id)).size === 3,
    60_000,
    'that all three wait in a tier',
  )
  await first.stop()

  // Still in front of the forwarder when the user is deleted: it goes out, before the delete call.
  await deployment.produce([call('queued', 'ada')])
  const { id: requestId } = JSON.parse(await ok(t, deployment, '', 'delete-user', 'ada', '--json')) as {
    id: string
  }
  await deployment.produce([call('later', 'ada')])
  crm.answer({ status: 200 })
  const [crmBefore, strictBefore] = [crm.requests.length, strict.requests.length]
  const second = await deployment.forwarder()
  await counted(second, dispositions('crm', 'erased'), 2, 60_000)
  await counted(second, dispositions('crm', 'delivered'), 4, 60_000)
  // What fails for good of what came before the request is not kept.
  await counted(second, dispositions('strict', 'erased'), 1, 60_000)
  await counted(second, dispositions('strict', 'dead_lettered'), 2, 60_000)
  const sent = (receiver: Receiver, from: number) =>
    receiver.requests.slice(from).map((request) => {
      const { type, messageId } = request.json()
      return type === 'delete' ? 'delete' : String(messageId)
    })
  const ofAda = sent(crm, crmBefore).filter((id) => id !== 'b1')
  assert.deepEqual(ofAda, ['queued', 'delete', 'later'])
  assert.deepEqual(sent(crm, crmBefore).filter((id) => id === 'b1').length, 1)
  assert.deepEqual(sent(strict, strictBefore), ['queued', 'delete', 'later'])

  const listed = (await ok(t, deployment, '', 'dead-letters', 'list', '--json')).trimEnd().split('\n')
  const ids = listed.map((line) => (JSON.parse(line) as { deliveryId: string }).deliveryId).sort()
  assert.equal(ids.length, 3)
  assert.deepEqual([ids[0], ids[2]], ['b1:strict', 'later:strict'])
  assert.ok(ids[1]!.startsWith(`delete-${requestId}-`), ids[1])
  const shown = await runCommand(t, deployment, '', 'dead-letters', 'show', 'w1:strict')
  assert.deepEqual([shown.status, shown.stdout], [1, ''])
  strict.answer({ status: 200 })
  await ok(t, deployment, '', 'dead-letters', 'replay', '--all')
  await counted(second, dispositions('strict', 'delivered'), 3, 60_000)
  assert.deepEqual(sent(strict, strictBefore + 3).sort(), ['b1', 'delete', 'later'])
  // The forwarder counts a delivery before it records it in the ledger.
  const status = await shownOnce(
    deletionsIn(deployment),
    requestId,
    ({ progress: [shop] }) => shop!.delivered === 1,
  )
  assert.equal(status.progress[0]!.failed, 0)
  assert.ok(nothingWaits(status))
})

test('failed and waiting delete calls are distinguished, and a replay that arrives counts', async (t) => {
  const deployment = await deploy(t, { RETRY_TIERS: '300ms,1h' })
  const [bad, slow, good] = await Promise.all([1, 2, 3].map(() => startReceiver(t)))
  bad!.answer({ status: 404 })
  slow!.answer({ status: 503 })
  await deployment.destination({ id: 'bad', urls: [bad!.url] })
  await deployment.destination({ id: 'slow', source: 'blog', urls: [slow!.url] })
  await deployment.destination({ id: 'good', source: 'blog', urls: [good!.url] })
  await deployment.forwarder()
  const out = await ok(t, deployment, '', 'delete-user', 'ada', 'bob', '--json')
  const id = (JSON.parse(out) as { id: string }).id
  await Promise.all([bad!.waitFor(2, 60_000), slow!.waitFor(4, 60_000), good!.waitFor(2, 60_000)])
  const of = (status: DeletionStatus, source: string) => {
    const { delivered, failed, waiting, destinations } = status.progress.find(
      ({ sourceId }) => sourceId === source,
    )!
    return [
      delivered,
      failed,
      waiting,
      ...destinations.map((each) => `${each.destinationId} ${each.delivered}/${each.failed}/${each.waiting}`),
    ]
  }
  const deletions = deletionsIn(deployment)
  const status = await shownOnce(
    deletions,
    id,
    ({ progress: [shop, blog] }) => shop!.failed === 2 && blog!.destinations[0]!.delivered === 2,
  )
  assert.deepEqual(of(status, 'shop'), [0, 2, 0, 'bad 0/2/0'])
  assert.deepEqual(of(status, 'blog'), [0, 0, 2, 'good 2/0/0', 'slow 0/0/2'])
  // Deletes that failed are not erased by their own request.
  bad!.answer({ status: 200 })
  await ok(t, deployment, '', 'dead-letters', 'replay', '--destination', 'bad')
  await shownOnce(deletions, id, (later) => of(later, 'shop')[0] === 2)
})

test('a process killed at any point among 5,000 users loses none of them, and repeats have the same ids', async (t) => {
  const deployment = await deploy(t)
  const receiver = await startReceiver(t)
  await deployment.destination({ urls: [receiver.url] })
  const users = Array.from({ length: 5_000 }, (_, n) => `user-${n}`)
  const killAt = Math.floor(Math.random() * 5_000)
  t.diagnostic(`killed once ${killAt} delete calls are written`)
  const command = startCommand(t, deployment, 'delete-user', '--file', '-')
  command.process.stdin.end(users.join('\n'))
  const { topics, ranges } = deployment
  const records = async (topic: string) => (await ranges(topic)).reduce((sum, { high }) => sum + high, 0)
  await until(async () => (await records(topics.erasures)) >= 5_000, 60_000, 'erasures')
  await until(async () => (await records(topics.calls)) >= killAt, 60_000, 'delete calls')
  command.process.kill('SIGKILL')
  await command.ended
  await ok(t, deployment, '', 'deletions', 'resume')
  assert.equal(await ok(t, deployment, '', 'deletions', 'resume'), 'nothing is to be resumed\n')
  const calls = await callsOf(deployment)
  assert.deepEqual([...new Set(calls.map(({ userId }) => userId!))].sort(), users.sort())
  assert.equal(new Set(calls.map(({ messageId }) => messageId)).size, 5_000)
  const [only, ...more] = await deletionsIn(deployment).list()
  assert.deepEqual([only!.state, only!.users, more], ['finished', 5_000, []])

  await deployment.forwarder()
  await receiver.waitFor(calls.length, 60_000)
  const idsOf = new Map<unknown, Set<unknown>>()
  for (const request of receiver.requests) {
    const { type, userId } = request.json()
    assert.equal(type, 'delete')
    idsOf.set(userId, (idsOf.get(userId) ?? new Set()).add(request.headers['idempotency-key']))
  }
  assert.equal(idsOf.size, 5_000)
  assert.ok([...idsOf.values()].every(({ size }) => size === 1))
})
