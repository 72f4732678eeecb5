import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { openDrafts } from '../../src/operators/plans/kafka.ts'
import { someCall } from '../support/calls/calls.ts'
import { deploy } from '../support/deployment/deployment.ts'
import { runCommand } from '../support/deployment/deployment-cli.ts'
import { temporaryFolder } from '../support/deployment/rig.ts'
import { makeSettingsCli } from '../support/deployment/settings-cli.ts'
import { startReceiver } from '../support/receivers.ts'
import { silentLog } from '../support/silent-log.ts'
import { until } from '../support/until.ts'

const plan = `id: web
name: Web shop
unknownEvents: report
events:
  Order Completed:
    properties:
      type: object
      required: [order_id, total]
      properties:
        order_id: { type: string, pattern: ^O- }
        total: { type: number, minimum: 0 }
  identify:
    traits: { required: [email] }
`

test('a plan is created from a file, pointed to, shown, changed, exported, applied again and removed', async (t) => {
  const cli = await makeSettingsCli(t)
  const folder = await temporaryFolder(t)
  const file = join(folder, 'plan.yml')
  await writeFile(file, plan)
  const created = await cli.run('plans', 'create', '--file', file)
  assert.equal(created.status, 0, created.stderr)
  assert.match(created.stdout, /^id: web\nname: Web shop$/m)
  const [other] = await cli.json(
    'plans',
    'create',
    '--id',
    'app',
    '--unknown-events',
    'block',
    '--file',
    file,
  )
  assert.deepEqual([other!.id, other!.name, other!.unknownEvents], ['app', 'Web shop', 'block'])
  await cli.json(
    'sources',
    'create',
    '--id',
    'shop',
    '--name',
    'Shop',
    '--plan',
    'web',
    '--plan-mode',
    'block',
  )
  assert.equal(
    (await cli.run('plans', 'list')).stdout,
    [
      'ID   NAME      EVENTS  UNKNOWN EVENTS  SOURCES',
      'web  Web shop       2  report          shop',
      'app  Web shop       2  block           -',
      '',
    ].join('\n'),
  )

  // The same file again changes nothing, and a changed one changes the events.
  const version = async () => (await cli.open()).state.version
  const before = await version()
  await cli.json('plans', 'update', 'web', '--file', file)
  assert.equal(await version(), before)
  await writeFile(file, plan.replace('minimum: 0', 'minimum: 1'))
  const [changed] = await cli.json('plans', 'update', 'web', '--file', file, '--name', 'Shop')
  assert.deepEqual(changed, (await cli.json('plans', 'show', 'web'))[0])
  assert.match(JSON.stringify(changed), /"name":"Shop".*"minimum":1/)

  const exported = (await cli.run('settings', 'export')).stdout
  assert.match(exported, /plan: web\n +planMode: block/)
  const copy = await makeSettingsCli(t)
  await writeFile(join(folder, 'settings.yml'), exported)
  const applied = await copy.run('settings', 'apply', join(folder, 'settings.yml'))
  assert.equal(applied.status, 0, applied.stderr)
  assert.match(applied.stdout, /^\+ plan web\n {4}name: Shop$/m)
  assert.equal((await copy.run('settings', 'export')).stdout, exported)

  const pointed = await cli.run('plans', 'remove', 'web')
  assert.deepEqual(
    [pointed.status, pointed.stderr],
    [1, 'postrider: plan "web" is that of source "shop": take it away there first\n'],
  )
  await cli.json('sources', 'update', 'shop', '--no-plan')
  assert.deepEqual(await cli.json('plans', 'remove', 'web'), [{ id: 'web', removed: true }])
  const gone = await cli.run('plans', 'show', 'web')
  assert.deepEqual([gone.status, gone.stderr.includes('plan "web" does not exist')], [1, true])
  const history = await cli.json('settings', 'history')
  const events = history.flatMap(({ changed }) => changed as { kind: string; changes: { field: string }[] }[])
  const fields = events
    .filter(({ kind }) => kind === 'plan')
    .map(({ changes }) => changes.map((each) => each.field))
  assert.deepEqual(fields, [
    ['events.Order Completed', 'events.identify', 'removed'],
    ['name', 'events.Order Completed'],
    ['name', 'unknownEvents', 'events.Order Completed', 'events.identify'],
    ['name', 'unknownEvents', 'events.Order Completed', 'events.identify'],
  ])
})

test('everything wrong with a plan is named with its line, before anything is asked of Kafka', async (t) => {
  const cli = await makeSettingsCli(t, { KAFKA_BROKERS: '127.0.0.1:1' })
  const file = join(await temporaryFolder(t), 'plan.yml')
  const refused = async (text: string, ...args: string[]) => {
    await writeFile(file, text)
    const { status, stderr } = await cli.run('plans', ...args, '--file', file)
    assert.equal(status, 2, stderr)
    return stderr
      .replaceAll(file, 'plan.yml')
      .replace(/^postrider: /, '')
      .split('\n')
  }
  const wrong = plan.replace('minimum: 0', 'mimimum: 0').replace('required: [email]', 'required: email')
  assert.deepEqual((await refused(wrong, 'create')).slice(0, 2), [
    'plan.yml:6: events.Order Completed.properties: properties of "Order Completed": properties.total: there is no keyword "mimimum"',
    'plan.yml:13: events.identify.traits: traits of "identify": required must be array',
  ])
  assert.match((await refused('events: {}', 'create'))[0]!, /the plan has no id: give --id/)
  assert.match((await refused('id: web', 'create'))[0]!, /the plan has no events: give --file/)
  assert.match(
    (await refused('id: web\nevent: {}', 'create'))[0]!,
    /plan\.yml:2: event: there is no such field/,
  )
  assert.match((await refused(plan, 'update', 'app'))[0]!, /the file is of plan "web", not of "app"/)
})

test('a draft is made from calls that came in, can be created, and says what it was made from', async (t) => {
  const deployment = await deploy(t)
  await deployment.destination({ urls: ['http://127.0.0.1:1/'] })
  const order = (messageId: string, properties: object, sourceId = 'shop') =>
    someCall({ messageId, sourceId, event: 'Order Completed', properties: JSON.stringify(properties) })
  await deployment.produce([
    order('a', { total: 1, coupon: 'x' }),
    order('b', { total: 2 }),
    order('c', { other: 3 }, 'blog'),
  ])
  const run = (input: string, ...args: string[]) => runCommand(t, deployment, input, ...args)
  const { status, stdout, stderr } = await run('', 'plans', 'draft', '--source', 'shop', '--since', '1h')
  assert.equal(status, 0, stderr)
  assert.match(stdout, /^# Drafted from 2 calls, found in all 3 records since \d{4}-\d\d-\d\dT[\d:.]+Z\. /)
  const created = await run(stdout, 'plans', 'create', '--file', '-', '--json')
  assert.equal(created.status, 0, created.stderr)
  const { id, name, events, unknownEvents } = JSON.parse(created.stdout) as Record<string, unknown>
  assert.deepEqual([id, name, unknownEvents], ['shop', 'shop', 'report'])
  assert.deepEqual(events, {
    'Order Completed': {
      properties: {
        type: 'object',
        required: ['total'],
        properties: { total: { type: 'number' }, coupon: { type: 'string' } },
      },
    },
  })
  const unknown = await run('', 'plans', 'draft', '--source', 'nobody')
  assert.deepEqual([unknown.status, unknown.stderr.includes('source "nobody" does not exist')], [1, true])
})

test('a draft says how far back it looked, where there is more than it looks at, and describes context when told to', async (t) => {
  const deployment = await deploy(t, { PARTITIONS_CALLS: '1' })
  await deployment.destination({ urls: ['http://127.0.0.1:1/'] })
  const ids = ['a', 'b', 'c', 'd']
  for (const messageId of ids)
    await deployment.produce([someCall({ messageId, event: messageId, context: '{"app":{"build":7}}' })])
  const records = await deployment.read(deployment.topics.calls)
  const drafts = openDrafts({ ...deployment, log: silentLog }, deployment.settings, 2)
  const { signal } = new AbortController()
  const draft = (since: number, hasContext: boolean) =>
    drafts('shop', since, { hasContext, signal, progress() {} })
  const { looked, total, lookedSince, events } = await draft(0, true)
  assert.deepEqual([looked, total, lookedSince], [2, 4, records[2]!.timestamp])
  assert.deepEqual(Object.keys(events).toSorted(), ['c', 'd'])
  const app = { type: 'object', required: ['build'], properties: { build: { type: 'number' } } }
  assert.deepEqual(events.c!.context, { type: 'object', required: ['app'], properties: { app } })
  const usual = await draft(records[3]!.timestamp, false)
  // Two records may be of one millisecond.
  const since = records.filter(({ timestamp }) => timestamp >= records[3]!.timestamp)
  assert.deepEqual([usual.total, usual.lookedSince], [since.length, records[3]!.timestamp])
  assert.equal(usual.events.d!.context, undefined)
})

test('violations are listed with their newest call, of all plans or of one', async (t) => {
  const receiver = await startReceiver(t)
  const deployment = await deploy(t, { STORE_PATH: await temporaryFolder(t) })
  const run = (input: string, ...args: string[]) => runCommand(t, deployment, input, ...args)
  assert.equal((await run('', 'plans', 'violations')).stdout, 'no violations\n')
  assert.equal((await run(plan, 'plans', 'create', '--file', '-')).status, 0)
  await deployment.destination({ urls: [receiver.url] })
  assert.equal((await run('', 'sources', 'update', 'shop', '--plan', 'web')).status, 0)
  await deployment.forwarder()
  const wrong = { event: 'Order Completed', properties: '{"order_id":"O-1","total":"x"}' }
  await deployment.produce([
    someCall({ messageId: 'first', ...wrong }),
    someCall({ messageId: 'second', ...wrong }),
    someCall({ messageId: 'unknown', event: '\u001b[31mOrder' }),
  ])
  await receiver.waitFor(3, 20_000)
  let printed = ''
  await until(
    async () => {
      printed = (await run('', 'plans', 'violations', '--plan', 'web', '--since', '1h')).stdout
      return printed.split('\n').length === 4
    },
    20_000,
    'two lines below the head',
  )
  const [head, order, unknown] = printed.split('\n').map((line) => line.trim().split(/ {2,}/))
  assert.deepEqual(head, [
    'COUNT',
    ...['SOURCE', 'PLAN', 'EVENT', 'PATH', 'RULE', 'MODE', 'LAST SEEN', 'LAST CALL'],
  ])
  const withoutTime = (cells: readonly string[]) => cells.toSpliced(7, 1)
  assert.deepEqual(withoutTime(order!), [
    '2',
    ...['shop', 'web', 'Order Completed', 'properties.total', 'type', 'report', 'second'],
  ])
  assert.deepEqual(withoutTime(unknown!).slice(4), ['-', 'unknown_event', 'report', 'unknown'])
  assert.ok(!printed.includes('\u001b'), 'what a sender chose is nothing to a terminal')
  assert.equal((await run('', 'plans', 'violations', '--plan', 'other')).stdout, 'no violations\n')
})
