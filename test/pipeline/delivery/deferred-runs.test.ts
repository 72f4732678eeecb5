// Calls that are put off without an attempt: a record of a tier names where they lie, and holds no copy of them.
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { countOf, isRun, type DeferredRun } from '../../../src/core/delivery/deferred-run.ts'
import { auditOf } from '../../support/audit.ts'
import { someCall } from '../../support/calls/calls.ts'
import { messagesOf } from '../../support/calls/messages.ts'
import { connect, counted, dispositions, sampleOf } from '../../support/calls/samples.ts'
import { startConsole } from '../../support/consoles.ts'
import {
  deploy,
  logged,
  type Deployment,
  type RunningForwarder,
} from '../../support/deployment/deployment.ts'
import { appendErasures } from '../../support/erasures.ts'
import { deleteRecords } from '../../support/kafka/delete-records.ts'
import { startReceiver } from '../../support/receivers.ts'
import { replayIn } from '../../support/replay/replays.ts'
import { until } from '../../support/until.ts'

const callsOf = (count: number, prefix = 'm', sourceId = 'crm') =>
  Array.from({ length: count }, (_, index) =>
    someCall({ messageId: `${prefix}-${index}`, userId: `u-${index}`, sourceId, event: 'x'.repeat(200) }),
  )

/** Of a forwarder that is stopped before anything comes due, also where Kafka takes seconds to take what is put off. */
const tierOfStopped = '6s'

const failed = 'postrider_webhook_attempts_total{destination="crm",outcome="status_5xx"}'

/** What the tiers hold as runs. */
async function runsIn({
  topics,
  codecs,
  config,
  read,
}: Deployment): Promise<{ run: DeferredRun; bytes: number }[]> {
  const runs: { run: DeferredRun; bytes: number }[] = []
  for (const { name } of config.retryTiers)
    for (const { value } of await read(topics.retry(name))) {
      const record = await codecs.retries(name).decode(value)
      if (isRun(record)) runs.push({ run: record, bytes: value!.length })
    }
  return runs
}

/** Resolves once the destination's breaker has opened, by calls of their own. It never closes while all fail. */
async function opened(deployment: Deployment, forwarder: RunningForwarder): Promise<void> {
  await deployment.produce(callsOf(20, 'first'))
  // The gauge says so only until the next probe is due, which may be before the next look on a busy machine.
  const hasOpened = () =>
    [...forwarder.report.endpoints!()].some(
      ({ destinationId, breaker }) => destinationId === 'crm' && breaker !== 'closed',
    )
  await until(hasOpened, 10_000, 'an open breaker')
}

/** A destination whose receiver answers 503, and whose breaker is open. */
async function downEndpoint(t: TestContext, deployment: Deployment) {
  const receiver = await startReceiver(t)
  receiver.answer({ status: 503 })
  const forwarder = await deployment.forwarder()
  await connect(deployment, forwarder, { id: 'crm', urls: [receiver.url] })
  await opened(deployment, forwarder)
  return { receiver, forwarder }
}

/** Ends the pause, and resolves with what its replay says once it is through. */
async function resumed(deployment: Deployment, pauseId: string) {
  const { settings } = deployment
  const console = await startConsole(deployment)
  await settings.execute({
    ...{ type: 'resume_destination', id: 'crm', pauseId },
    ...{ at: Date.now(), rate: 500 },
  })
  await until(() => settings.state.replays.has(`held-${pauseId}`), 30_000)
  const replay = await replayIn(console, `held-${pauseId}`, 'finished', 90_000)
  assert.equal(replay.rate, 500, 'what was held is sent by the rate that its pause ended with')
  return replay
}

test('calls for an endpoint that is down lie in the tiers as few small records, and arrive once each when it is back', async (t) => {
  const deployment = await deploy(t, { RETRY_TIERS: '1s,2s' })
  const receiver = await startReceiver(t, { secret: 's3cret' })
  receiver.answer({ status: 503 })
  const forwarder = await deployment.forwarder()
  await connect(deployment, forwarder, { id: 'crm', urls: [receiver.url], secret: 's3cret' })
  await opened(deployment, forwarder)
  await deployment.produce(callsOf(1_500))
  await deployment.drained()
  const runs = await runsIn(deployment)
  const members = runs.reduce((sum, { run }) => sum + countOf(run), 0)
  const bytes = runs.reduce((sum, each) => sum + each.bytes, 0)
  t.diagnostic(`${members} put off in ${runs.length} records of ${bytes} bytes`)
  assert.ok(members >= 1_400, `${members} of 1,500 were put off`)
  assert.ok(runs.length * 20 < members, `${runs.length} records for ${members}`)
  assert.ok(bytes < members * 20, `${bytes} bytes for ${members}`)

  const isPutOffAgain = async () => (await runsIn(deployment)).some(({ run }) => run.timesScheduled > 2)
  await until(isPutOffAgain, 30_000, 'what is still refused goes on')
  receiver.answer({ status: 200 })
  await counted(forwarder, dispositions('crm', 'delivered'), 1_520, 60_000)
  const delivered = receiver.requests.slice(sampleOf(forwarder, failed))
  assert.equal(new Set(delivered.map(({ headers }) => headers['idempotency-key'])).size, 1_520)
  assert.equal(delivered.length, 1_520)
  await forwarder.stop()
  const report = await auditOf(deployment)
  assert.ok(report.ok, JSON.stringify(report.faults))
  const line = report.destinations.find(({ destinationId }) => destinationId === 'crm')!
  assert.deepEqual([line.planned, line.delivered, line.waiting, line.balance], [1_520, 1_520, 0, 0])
})

test('what waits in a run is shown for each of its calls, by why and in the audit', async (t) => {
  const deployment = await deploy(t, { RETRY_TIERS: '20s' })
  const { forwarder } = await downEndpoint(t, deployment)
  await deployment.produce(callsOf(50))
  await deployment.drained()
  const { run } = (await runsIn(deployment))[0]!
  await forwarder.stop()
  const messages = await messagesOf(deployment)
  const call = (await deployment.read(deployment.topics.calls)).find(
    ({ partition, offset }) => partition === run.calls.partition && offset === run.calls.runs[0]!.start,
  )!
  const { messageId } = await deployment.codecs.calls.decode(call.value)
  const [copy] = (await messages.shown(messageId)).copies
  assert.deepEqual(
    copy!.deliveries.map(({ state, tier, attempts, dueAt }) => [state, tier, attempts, dueAt]),
    [['waiting', '20s', 0, new Date(run.scheduledAt + 20_000).toISOString()]],
  )
  assert.deepEqual(
    copy!.steps.map(({ what, tier }) => [what, tier]),
    [['deferred', '20s']],
  )
  const report = await auditOf(deployment)
  assert.ok(report.ok, JSON.stringify(report.faults))
  assert.equal(report.destinations.find(({ destinationId }) => destinationId === 'crm')!.waiting, 70)
  const { ok } = await startConsole(deployment)
  const listed = (await ok(200, 'GET', '/destinations/crm/calls?step=waiting')) as {
    data: { messageId: string; tier: string; dueAt: string }[]
    isCut: boolean
  }
  assert.deepEqual([new Set(listed.data.map((each) => each.messageId)).size, listed.isCut], [70, false])
  assert.deepEqual(
    listed.data.filter((each) => each.messageId === messageId).map(({ tier, dueAt }) => [tier, dueAt]),
    [['20s', new Date(run.scheduledAt + 20_000).toISOString()]],
  )
  const dues = listed.data.map(({ dueAt }) => dueAt)
  assert.deepEqual(dues, dues.toSorted(), 'what is due first comes first')
})

test('a call that is put off for one URL goes there, whatever the template of another URL needs', async (t) => {
  const deployment = await deploy(t, { RETRY_TIERS: '2s' })
  const [plain, filled] = await Promise.all([startReceiver(t), startReceiver(t)])
  plain.answer({ status: 503 })
  const forwarder = await deployment.forwarder()
  const urls = [plain.url, `http://127.0.0.1:${filled.port}/users/\${call.userId}`]
  await deployment.destination({ id: 'crm', source: 'crm', urls })
  await deployment.settings.execute({
    type: 'update_destination',
    id: 'crm',
    options: { deliverTo: 'every' },
  })
  await connect(deployment, forwarder, { id: 'marker', urls: ['http://127.0.0.1:1/'] })
  await opened(deployment, forwarder)
  await deployment.produce(
    callsOf(40).map((call, index) => ({ ...call, userId: null, anonymousId: `a-${index}` })),
  )
  await deployment.drained()
  const waiting = (await runsIn(deployment)).filter(({ run }) => run.urlId === 'u1')
  const count = waiting.reduce((sum, { run }) => sum + countOf(run), 0)
  assert.ok(count >= 30, `${count} of 40 were put off for the first URL`)
  plain.answer({ status: 200 })
  const [delivered, dead] = ['delivered', 'dead_lettered'].map((each) => dispositions('crm', each))
  const ended = () => sampleOf(forwarder, delivered!) + sampleOf(forwarder, dead!)
  await until(() => ended() >= 120, 30_000, 'that all have ended')
  const deadAt = (await deployment.deadLetters()).map(({ reason, delivery }) => [
    reason,
    delivery!.id.split(':')[2],
  ])
  assert.deepEqual(deadAt, Array(40).fill(['unrenderable', 'u2']))
  assert.equal(sampleOf(forwarder, delivered!), 80)
  const ids = plain.requests.map(({ headers }) => String(headers['idempotency-key']))
  assert.equal(new Set(ids.filter((id) => id.startsWith('m-'))).size, 40)
})

test('a user who is erased while calls are put off gets none of them, and all others arrive', async (t) => {
  const deployment = await deploy(t, { RETRY_TIERS: tierOfStopped })
  const { receiver, forwarder: first } = await downEndpoint(t, deployment)
  await deployment.produce(callsOf(40))
  await deployment.produce([someCall({ messageId: 'd', type: 'delete', userId: 'u-30', sourceId: 'crm' })])
  await deployment.drained()
  await first.stop()
  const copied = (await deployment.read(deployment.topics.retry(tierOfStopped))).map(({ value }) =>
    deployment.codecs.retries(tierOfStopped).decode(value),
  )
  const deletes = (await Promise.all(copied)).filter((each) => !isRun(each) && each.type === 'delete')
  assert.equal(deletes.length, 1, 'its deletion request follows each delete by itself')
  await appendErasures(deployment, { sourceId: 'crm', userId: 'u-30' })
  const console = await startConsole(deployment)
  const listed = (await console.ok(200, 'GET', '/destinations/crm/calls?step=waiting')) as {
    data: { messageId: string }[]
  }
  const shown = new Set(listed.data.map(({ messageId }) => messageId))
  assert.ok(!shown.has('m-30') && shown.has('m-31') && shown.has('m-29'))
  receiver.answer({ status: 200 })
  const before = receiver.requests.length
  const second = await deployment.forwarder()
  await counted(second, dispositions('crm', 'erased'), 1, 30_000)
  await counted(second, dispositions('crm', 'delivered'), 60, 30_000)
  const ids = new Set(receiver.requests.slice(before).map((request) => request.json().messageId))
  assert.ok(!ids.has('m-30') && ids.has('m-31') && ids.has('m-29'))
  await second.stop()
  const report = await auditOf(deployment)
  assert.ok(report.ok, JSON.stringify(report.faults))
})

test('a run that comes due while its destination is paused is held as a whole, and sent once by the end of the pause', async (t) => {
  const deployment = await deploy(t, { RETRY_TIERS: '1s' })
  const { settings } = deployment
  const { receiver, forwarder } = await downEndpoint(t, deployment)
  await deployment.produce(callsOf(300))
  await deployment.drained()
  const pauseId = 'p1'
  await settings.execute({ type: 'pause_destination', id: 'crm', pauseId, at: Date.now(), until: null })
  await until(() => sampleOf(forwarder, dispositions('crm', 'held')) >= 320, 30_000, 'that all is held')
  receiver.answer({ status: 200 })
  const before = receiver.requests.length
  const { totals } = await resumed(deployment, pauseId)
  assert.equal(totals.held, 320)
  await receiver.waitFor(before + 320, 30_000)
  const ids = receiver.requests.slice(before).map(({ headers }) => headers['idempotency-key'])
  assert.equal(new Set(ids).size, 320)
  assert.equal(ids.length, 320)
  await forwarder.stop()
  const report = await auditOf(deployment)
  assert.ok(report.ok, JSON.stringify(report.faults))
})

test('a run that was begun when its destination is paused is held in what is left of it, and nothing comes twice', async (t) => {
  const deployment = await deploy(t, { RETRY_TIERS: '1s' })
  const { settings } = deployment
  const { receiver, forwarder } = await downEndpoint(t, deployment)
  await deployment.produce(callsOf(300))
  await deployment.drained()
  // Soon enough for the ramp to begin, and too slow for it to end.
  receiver.answer({ status: 200, delayMs: 500 })
  const before = receiver.requests.length
  const begun = () =>
    receiver.requests.slice(before).filter((request) => String(request.json().messageId).startsWith('m-'))
  await until(() => begun().length >= 3, 30_000, 'that it was begun')
  const pauseId = 'p1'
  await settings.execute({ type: 'pause_destination', id: 'crm', pauseId, at: Date.now(), until: null })
  const ended = () =>
    sampleOf(forwarder, dispositions('crm', 'held')) + sampleOf(forwarder, dispositions('crm', 'delivered'))
  await until(() => ended() >= 320, 30_000, 'that the rest is held')
  assert.ok(sampleOf(forwarder, dispositions('crm', 'held')) > 0, 'something was left to hold')
  receiver.answer({ status: 200 })
  await resumed(deployment, pauseId)
  await counted(forwarder, dispositions('crm', 'delivered'), 320, 30_000)
  const taken = receiver.requests.slice(sampleOf(forwarder, failed))
  assert.equal(new Set(taken.map(({ headers }) => headers['idempotency-key'])).size, 320)
  assert.equal(taken.length, 320)
  await forwarder.stop()
  const report = await auditOf(deployment)
  assert.ok(report.ok, JSON.stringify(report.faults))
})

test('calls that retention removed while they were put off are dead letters of their own, and are said loudly', async (t) => {
  const deployment = await deploy(t, { RETRY_TIERS: tierOfStopped })
  const { receiver, forwarder: first } = await downEndpoint(t, deployment)
  await deployment.produce(callsOf(30))
  await deployment.drained()
  await first.stop()
  const waiting = (await runsIn(deployment)).reduce((sum, { run }) => sum + countOf(run), 0)
  const ends = await deployment.ranges(deployment.topics.calls)
  await deleteRecords(
    deployment.admin,
    deployment.topics.calls,
    ends.map(({ partition, high }) => ({ partition, offset: high })),
  )
  receiver.answer({ status: 200 })
  const second = await deployment.forwarder()
  const series = 'postrider_dead_letters_total{destination="crm",reason="call_removed"}'
  await until(() => sampleOf(second, series) === waiting, 30_000, `${waiting} dead letters`)
  const dead = (await deployment.deadLetters()).filter(({ reason }) => reason === 'call_removed')
  assert.equal(new Set(dead.map(({ origin }) => `${origin.partition}/${origin.offset}`)).size, waiting)
  assert.ok(dead.every(({ delivery }) => delivery!.destinationId === 'crm'))
  assert.equal(sampleOf(second, `postrider_lost_offsets_total{topic="${deployment.topics.calls}"}`), waiting)
  assert.equal((await logged(second, 'is gone before its time')).level, 50)
})

test('while an endpoint answers 503 for a whole window, each call is tried at least once before it is given up', async (t) => {
  const deployment = await deploy(t, { RETRY_TIERS: '300ms,600ms', RETRY_WINDOW: '20s' })
  const { receiver, forwarder } = await downEndpoint(t, deployment)
  // More than a run holds, and few enough for a machine with other work: attempts beside a breaker come one at a time.
  await deployment.produce(callsOf(300))
  // As a sender does that heard no answer.
  await deployment.produce(callsOf(30))
  await counted(forwarder, dispositions('crm', 'dead_lettered'), 350, 60_000)
  const reasons = Map.groupBy(await deployment.deadLetters(), ({ reason }) => reason)
  const [untried] = reasons.get('not_attempted') ?? []
  assert.deepEqual(
    [...reasons].map(([reason, its]) => [reason, its.length]),
    [['expired', 350]],
    untried?.detail ?? '',
  )
  const tried = new Set(receiver.requests.map(({ headers }) => headers['idempotency-key']))
  assert.equal(tried.size, 320)
  await forwarder.stop()
  const report = await auditOf(deployment)
  assert.ok(report.ok, JSON.stringify(report.faults))
})

test('an endpoint that hangs is not asked for each call: what is given up untried says why', async (t) => {
  const deployment = await deploy(t, { RETRY_TIERS: '300ms', RETRY_WINDOW: '3s', WEBHOOK_TIMEOUT: '1s' })
  const receiver = await startReceiver(t)
  receiver.answer({ instead: { do: 'hang' } })
  const forwarder = await deployment.forwarder()
  await connect(deployment, forwarder, { id: 'crm', urls: [receiver.url] })
  await deployment.produce(callsOf(600))
  await counted(forwarder, dispositions('crm', 'dead_lettered'), 600, 60_000)
  const untried = (await deployment.deadLetters()).filter(({ reason }) => reason === 'not_attempted')
  assert.ok(untried.length > 300, `${untried.length} were not tried`)
  assert.match(
    untried[0]!.detail!,
    /^it was put off [1-9]\d* times: its endpoint took nothing, .*, or its destination was at its limit$/,
  )
})
