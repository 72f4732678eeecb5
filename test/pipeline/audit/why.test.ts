// The life of single calls, as it is shown after forwarders have worked on a real Kafka.
import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { clusterIdOf } from '../../../src/adapters/kafka/admin/cluster-id.ts'
import { TraceDatabase } from '../../../src/operators/why/trace-database.ts'
import { pageOf } from '../../../src/operators/why/command.ts'
import { planCall } from '../../../src/core/delivery/call-plan.ts'
import { ledgerEvents } from '../../support/audit.ts'
import { someCall } from '../../support/calls/calls.ts'
import { deploy, type Deployment } from '../../support/deployment/deployment.ts'
import { until } from '../../support/until.ts'
import { appendErasures } from '../../support/erasures.ts'
import { startForwarderProcess } from '../../support/deployment/forwarder-process.ts'
import { messagesOf, type ShownCopy } from '../../support/calls/messages.ts'
import { startReceiver } from '../../support/receivers.ts'

const stepsOf = ({ steps }: ShownCopy, destinationId: string): string[] =>
  steps
    .filter(({ deliveryId }) => deliveryId?.endsWith(`:${destinationId}`))
    .map(({ what, outcome, status, tier, repeat }) =>
      [what, outcome, status, tier, repeat ? 'repeat' : null]
        .filter((part) => part !== null && part !== undefined)
        .join(' '),
    )

const stateOf = ({ deliveries }: ShownCopy, destinationId: string) =>
  deliveries.find((delivery) => delivery.destinationId === destinationId)!

/** Resolves once every retry and every call is finished. */
async function settled(deployment: Deployment): Promise<void> {
  const { ranges, topics, config, committed } = deployment
  await deployment.drained(40_000)
  for (const tier of config.retryTiers) {
    const topic = topics.retry(tier.name)
    await until(async () => {
      const [ends, offsets] = await Promise.all([
        ranges(topic),
        committed(topic, `${config.groupId}.retries`),
      ])
      return ends.every(({ partition, high }) => offsets[partition]! >= high)
    }, 40_000)
  }
}

test('the ledger of failures shows each attempt of a call and how it ended, also from a rebuilt index', async (t) => {
  const deployment = await deploy(t)
  const [well, limping, refusing] = await Promise.all([1, 2, 3].map(() => startReceiver(t)))
  limping!.answer({ status: 503 }, { status: 200 })
  refusing!.answer({ status: 404, body: 'no such page' })
  await deployment.destination({ id: 'crm', urls: [well!.url] })
  await deployment.destination({ id: 'mail', urls: [limping!.url] })
  await deployment.destination({
    id: 'old',
    urls: [refusing!.url],
    headers: [{ urlNumber: 1, name: 'X-Key', value: 'hush-hush' }],
  })
  await deployment.destination({ id: 'profiles', urls: [well!.url] })
  await deployment.settings.execute({
    type: 'update_destination',
    id: 'profiles',
    options: { types: ['identify'] },
  })
  await deployment.destination({ id: 'big', urls: [well!.url] })
  await deployment.settings.execute({
    type: 'update_destination',
    id: 'big',
    options: { where: 'call.properties.secret == "another"' },
  })
  await deployment.destination({ id: 'off', urls: [well!.url] })
  await deployment.settings.execute({ type: 'disable_destination', id: 'off' })
  await deployment.destination({ id: 'elsewhere', source: 'blog', urls: [well!.url] })
  await deployment.forwarder()
  const secret = '{"secret":"of the call"}'
  await deployment.produce([
    someCall({ messageId: 'm-1', properties: secret }),
    someCall({ messageId: 'm-2' }),
  ])
  await limping!.waitFor(3, 40_000)
  await settled(deployment)

  const messages = await messagesOf(deployment)
  const shown = await messages.shown('m-1')
  assert.equal(shown.copies.length, 1)
  const [copy] = shown.copies as [ShownCopy]
  assert.equal(copy.received.receivedBy, 'producer')
  assert.equal(copy.plan!.by, 'settings')
  const reasons = copy.plan!.destinations.map(({ destinationId, reason }) => [destinationId, reason])
  assert.deepEqual(reasons, [
    ['crm', null],
    ['mail', null],
    ['old', null],
    ['profiles', 'not_chosen'],
    ['big', 'filtered'],
    ['off', 'destination_disabled'],
  ])
  const crm = stateOf(copy, 'crm')
  assert.deepEqual([crm.state, crm.byTally, crm.attempts], ['delivered', true, 1])
  assert.deepEqual(stepsOf(copy, 'crm'), [])
  const mail = stateOf(copy, 'mail')
  assert.deepEqual([mail.state, mail.byTally, mail.attempts], ['delivered', false, 2])
  assert.deepEqual(stepsOf(copy, 'mail'), ['attempt status_5xx 503', 'retried 300ms', 'delivered'])
  const old = stateOf(copy, 'old')
  assert.deepEqual([old.state, old.reason, old.attempts], ['dead_letter', 'rejected', 1])
  assert.deepEqual(stepsOf(copy, 'old'), ['attempt status_4xx 404', 'dead_lettered'])
  assert.equal(copy.record, null)
  const times = copy.steps.map(({ at }) => at)
  assert.deepEqual(times, times.toSorted())
  const [retried] = copy.steps.filter(({ what }) => what === 'retried')
  const due = Date.parse(String(retried!.dueAt)) - Date.parse(retried!.at)
  // It is recorded once the broker has the retry, whose delay began a moment before.
  assert.ok(due <= 300, `${due}`)
  assert.equal(
    old.deadLetterId,
    (await deployment.read(deployment.topics.deadLetters))
      .filter(({ value }) => value!.includes('m-1'))
      .map(({ partition, offset }) => `${partition}-${offset}`)
      .join(),
  )

  const page = pageOf(await messages.life('m-1'))
  assert.doesNotMatch(page, /: *$/m, 'no line promises more than it says')
  assert.match(page, /not planned +for big: its condition does not hold \(--where\)/)
  assert.match(page, /=> crm: delivered at the first attempt, by 2/)
  assert.match(page, /=> mail: delivered 2.*, after 2 attempts/)
  assert.match(page, /=> old: dead letter .*rejected; `postrider dead-letters show 0-\d+`/)
  for (const hidden of ['of the call', 'hush-hush', 's3cret'])
    assert.ok(!(page + JSON.stringify(shown)).includes(hidden))
  assert.equal((await messages.shown('m-2')).copies.length, 1)

  const other = await mkdtemp(join(tmpdir(), 'postrider-test-'))
  t.after(() => rm(other, { recursive: true, force: true, maxRetries: 5 }))
  assert.deepEqual(await messages.shown('m-1', other), shown)
  for (const file of await readdir(messages.folder)) await rm(join(messages.folder, file))
  assert.deepEqual(await messages.shown('m-1'), shown)
  await assert.rejects(messages.shown('m-3'), { code: 'not_found', message: /"m-3"/ })
})

test('the complete ledger shows every attempt and a plan that matches the settings', async (t) => {
  const deployment = await deploy(t, { LEDGER: 'all' })
  const receiver = await startReceiver(t)
  await deployment.destination({ id: 'crm', urls: [receiver.url] })
  await deployment.destination({ id: 'both', urls: [receiver.url, `${receiver.url}/2`] })
  await deployment.settings.execute({
    type: 'update_destination',
    id: 'both',
    options: { deliverTo: 'every' },
  })
  await deployment.destination({ id: 'off', urls: [receiver.url] })
  await deployment.settings.execute({ type: 'disable_destination', id: 'off' })
  const messages = await messagesOf(deployment)
  const calls = [
    someCall({ messageId: 'plain' }),
    someCall({ messageId: 'kept', integrations: '{"All":false}' }),
    someCall({ messageId: 'blog', sourceId: 'nowhere' }),
  ]
  await deployment.destination({ id: 'big', urls: ['http://127.0.0.1:1/'] })
  const where = 'call.properties.total > 100'
  await deployment.settings.execute({ type: 'update_destination', id: 'big', options: { where } })
  await deployment.produce(calls)

  const [before] = (await messages.shown('plain')).copies
  assert.deepEqual(
    [before!.plan!.by, before!.deliveries.map(({ state }) => state)],
    ['settings', ['open', 'open', 'open']],
  )
  await deployment.forwarder()
  await deployment.drained(40_000)
  const [plain] = (await messages.shown('plain')).copies as [ShownCopy]
  assert.equal(plain.plan!.by, 'ledger')
  assert.deepEqual(
    plain.deliveries.map(({ urlId, state, byTally, attempts }) => [urlId, state, byTally, attempts]),
    [
      [null, 'delivered', false, 1],
      ['u1', 'delivered', false, 1],
      ['u2', 'delivered', false, 1],
    ],
  )
  assert.deepEqual(stepsOf(plain, 'crm'), ['attempt success 200', 'delivered'])
  const [kept] = (await messages.shown('kept')).copies as [ShownCopy]
  assert.deepEqual(kept.deliveries, [])
  assert.equal(kept.record!.state, 'skipped')
  const sorted = (plan: { destinationId: string }[]) =>
    plan.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
  for (const [call, copy] of [
    [calls[0]!, plain],
    [calls[1]!, kept],
  ] as const)
    assert.deepEqual(sorted(copy.plan!.destinations), sorted(planCall(call, deployment.settings.state)!))
  const [blog] = (await messages.shown('blog')).copies as [ShownCopy]
  assert.deepEqual([blog.record!.state, blog.record!.reason], ['dead_letter', 'unknown_source'])
  assert.match(String(blog.record!.deadLetterId), /^0-\d+$/)
})

test('why shows a waiting retry, a call without a destination and every copy of a call, and nothing of an erased call', async (t) => {
  const deployment = await deploy(t, { RETRY_TIERS: '1h' })
  const receiver = await startReceiver(t)
  receiver.answer({ status: 500 })
  await deployment.destination({ id: 'crm', urls: [receiver.url] })
  await deployment.settings.execute({
    type: 'create_source',
    id: 'quiet',
    name: 'Q',
    writeKey: 'q',
    enabled: true,
  })
  await deployment.forwarder()
  await deployment.produce([
    someCall({ messageId: 'slow' }),
    someCall({ messageId: 'nobody', sourceId: 'quiet' }),
    someCall({ messageId: 'twice', userId: 'zoe' }),
    someCall({ messageId: 'twice', userId: 'bob' }),
  ])
  await deployment.drained(40_000)
  const messages = await messagesOf(deployment)
  const [slow] = (await messages.shown('slow')).copies as [ShownCopy]
  const waiting = stateOf(slow, 'crm')
  assert.deepEqual([waiting.state, waiting.tier, waiting.attempts, waiting.at], ['waiting', '1h', 1, null])
  const wait = Date.parse(String(waiting.dueAt)) - Date.now()
  assert.ok(wait > 3_000_000 && wait <= 3_600_000, `${wait}`)
  assert.match(pageOf(await messages.life('slow')), /=> crm: waits in tier 1h, due 2/)
  const [nobody] = (await messages.shown('nobody')).copies as [ShownCopy]
  assert.deepEqual([nobody.plan!.destinations, nobody.record!.state], [[], 'skipped'])

  const twice = await messages.shown('twice')
  assert.deepEqual(twice.copies.map(({ call }) => call!.userId).toSorted(), ['bob', 'zoe'])
  for (const copy of twice.copies)
    assert.deepEqual(stepsOf(copy, 'crm'), ['attempt status_5xx 500', 'retried 1h'])
  await appendErasures(deployment, { userId: 'zoe' })
  const after = await messages.shown('twice')
  const gone = after.copies.find(({ erased }) => erased)!
  assert.deepEqual(
    { ...gone, received: null },
    {
      received: null,
      erased: true,
      call: null,
      plan: null,
      steps: [],
      deliveries: [],
      record: null,
    },
  )
  assert.ok(!JSON.stringify(gone).includes('zoe'))
  assert.equal(after.copies.find(({ erased }) => !erased)!.call!.userId, 'bob')
  const page = pageOf(await messages.life('twice'))
  assert.match(page, /it lies in Kafka 2 times/)
  assert.match(page, /a deletion request covers it/)
  assert.ok(!page.includes('zoe'))
})

test('work that a killed forwarder did not commit is shown as done again', async (t) => {
  const deployment = await deploy(t, { RETRY_TIERS: '1h', SESSION_TIMEOUT: '3s' })
  const [failing, hanging] = await Promise.all([startReceiver(t), startReceiver(t)])
  failing.answer({ status: 503 }, { status: 200 })
  hanging.answer({ instead: { do: 'hang' } }, { status: 200 })
  await deployment.destination({ id: 'crm', urls: [failing.url] })
  await deployment.destination({ id: 'mail', urls: [hanging.url] })
  const first = await startForwarderProcess(t, deployment)
  await deployment.produce([someCall({ messageId: 'm-1' })])
  const messages = await messagesOf(deployment)
  // The attempt and its consequences are recorded; the other destination's attempt holds up the commit for five seconds.
  await until(async () => {
    return (await ledgerEvents(deployment)).filter(({ messageId }) => messageId === 'm-1').length >= 2
  }, 40_000)
  await first.kill()
  assert.equal((await messages.shown('m-1')).copies[0]!.deliveries[0]!.state, 'waiting')
  await deployment.forwarder()
  await deployment.drained(60_000)
  const [copy] = (await messages.shown('m-1')).copies as [ShownCopy]
  assert.deepEqual(stepsOf(copy, 'crm'), ['attempt status_5xx 503 repeat', 'retried 1h repeat'])
  for (const id of ['crm', 'mail'])
    assert.deepEqual([stateOf(copy, id).state, stateOf(copy, id).byTally], ['delivered', true])
  assert.match(pageOf(await messages.life('m-1')), /retried +crm: .*it was done again/)
})

test('an index of replaced topics is rebuilt, and an unreadable record is skipped', async (t) => {
  const deployment = await deploy(t)
  const { topics, kafka, producer, config } = deployment
  const messages = await messagesOf(deployment)
  const file = join(messages.folder, `${topics.deliveries}.index.sqlite`)
  const before = new TraceDatabase(file, `${await clusterIdOf(kafka)} ${topics.deliveries} ${config.groupId}`)
  const place = { topic: topics.calls, partition: 0, offset: 5_000 }
  const ghost = { place, timestamp: 1, key: 'ghost', more: [], trace: null, tally: null, call: null }
  before.take(topics.calls, [ghost], before.beginning)
  before.close()
  for (const topic of [topics.calls, topics.deliveries, topics.deadLetters, topics.retry('300ms')])
    await producer.send({
      topic,
      messages: [
        { key: 'k', value: 'no Avro' },
        { key: 'k', value: null },
      ],
    })
  await deployment.produce([someCall({ messageId: 'm-1' })])
  assert.equal((await messages.shown('m-1')).copies.length, 1)
  await assert.rejects(messages.shown('ghost'), { code: 'not_found' })
})
