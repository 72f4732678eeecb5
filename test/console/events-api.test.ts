import assert from 'node:assert/strict'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { AnalyticsCall } from '../../src/core/call/analytics-call.ts'
import { someCall } from '../support/calls/calls.ts'
import { adminToken, startConsole, type RunningConsole } from '../support/consoles.ts'
import { deploy } from '../support/deployment/deployment.ts'
import { runCommand } from '../support/deployment/deployment-cli.ts'
import { temporaryFolder } from '../support/deployment/rig.ts'
import { appendErasures } from '../support/erasures.ts'
import { deleteRecords } from '../support/kafka/delete-records.ts'
import { startReceiver } from '../support/receivers.ts'

interface Listed {
  knownSince: string | null
  events: {
    type: string
    name: string | null
    calls: number
    firstSeen: string
    lastSeen: string
    fields: number
  }[]
  omittedCalls: number
}

interface Shown {
  calls: number
  fields: { path: string; calls: number; kinds: { kind: string; calls: number }[] }[]
}

const listed = async (console: RunningConsole, source = 'shop'): Promise<Listed> =>
  (await console.ok(200, 'GET', `/events?source=${source}`)) as unknown as Listed

const counted = ({ events }: Listed) => events.map(({ type, name, calls }) => [type, name, calls])

const orders: Partial<AnalyticsCall>[] = [
  { userId: 'u-1', properties: '{"total":30,"email":"hush@example.com"}', context: '{"ip":"203.0.113.7"}' },
  { userId: 'u-2', properties: '{"total":2.5,"products":[{"sku":"hush-1"}]}' },
  { userId: 'u-3', event: 'Order Cancelled' },
  { userId: 'u-1', type: 'identify', event: null, traits: '{"email":"hush@example.com","plan":"hush-plan"}' },
  { userId: 'u-2', type: 'page', event: null, name: 'Home' },
  { userId: 'u-2', type: 'page', event: null },
]

const someOrders = (times = 1): AnalyticsCall[] =>
  Array.from({ length: times }, (_, time) =>
    orders.map((order, at) => someCall({ messageId: `m-${time}-${at}`, ...order })),
  ).flat()

test('events of a source are counted with their fields, and no value of any user is kept', async (t) => {
  const storePath = await temporaryFolder(t)
  const deployment = await deploy(t, { STORE_PATH: storePath })
  const receiver = await startReceiver(t)
  await deployment.destination({ urls: [receiver.url] })
  const config = { ...deployment.config, storePath, consolePort: 0, adminToken }
  const console = await startConsole(deployment, { config })
  assert.deepEqual(await listed(console), { sourceId: 'shop', knownSince: null, events: [], omittedCalls: 0 })
  const before = Date.now()
  await deployment.produce([...someOrders(2), someCall({ sourceId: 'blog', messageId: 'other' })])
  const list = await listed(console)
  assert.deepEqual(counted(list), [
    ['identify', null, 2],
    ['page', null, 2],
    ['page', 'Home', 2],
    ['track', 'Order Cancelled', 2],
    ['track', 'Order Completed', 4],
  ])
  for (const { firstSeen, lastSeen } of list.events)
    assert.ok(Date.parse(firstSeen) >= before - 1_000 && firstSeen <= lastSeen, `${firstSeen} ${lastSeen}`)
  assert.equal(list.knownSince, list.events.map(({ firstSeen }) => firstSeen).sort()[0])

  await t.test('the fields of an event say in how many calls they were, and of which kind', async () => {
    const path = `/events/fields?source=shop&name=${encodeURIComponent('Order Completed')}`
    const { calls, fields } = (await console.ok(200, 'GET', path)) as unknown as Shown
    assert.equal(calls, 4)
    assert.deepEqual(
      fields.map(({ path, calls, kinds }) => [path, calls, kinds.map(({ kind }) => kind).join(' ')]),
      [
        ['context', 2, 'object'],
        ['context.ip', 2, 'string'],
        ['properties', 4, 'object'],
        ['properties.email', 2, 'email'],
        ['properties.products', 2, 'array'],
        ['properties.products[]', 2, 'object'],
        ['properties.products[].sku', 2, 'string'],
        ['properties.total', 4, 'integer number'],
      ],
    )
    const none = await console.call('GET', '/events/fields?source=shop&type=screen&name=Home')
    assert.deepEqual([none.status, none.body.code], [404, 'not_found'])
    for (const [path, field] of [
      ['/events/fields?source=shop', 'name'],
      ['/events/export?format=asyncapi&source=shop', 'destination'],
      ['/events/export?format=json-schema&source=shop&destination=crm', 'destination'],
      ['/events?source=', 'source'],
    ] as const) {
      const { status, body } = await console.call('GET', path)
      assert.ok([400, 404].includes(status), `${path}: ${status}`)
      assert.ok(JSON.stringify(body).includes(field), JSON.stringify(body))
    }
  })

  await t.test('a user who is erased changes nothing: nothing of a user is in the file', async () => {
    await appendErasures(deployment, { userId: 'u-1' })
    assert.deepEqual(await listed(console), list)
    const file = join(storePath, `${deployment.topics.deliveries}.index.sqlite`)
    const { readFile } = await import('node:fs/promises')
    for (const suffix of ['', '-wal']) {
      const text = (await readFile(file + suffix)).toString('latin1')
      for (const value of ['hush', '203.0.113.7'])
        assert.equal(text.includes(value), false, `${value} in ${suffix}`)
    }
  })

  await t.test('commands show the same, and export schemas', async (t) => {
    const run = (...args: string[]) => runCommand(t, deployment, '', 'events', ...args)
    const json = await run('list', '--source', 'shop', '--json')
    assert.deepEqual(JSON.parse(json.stdout), list, json.stderr)
    assert.match(
      (await run('list', '--source', 'shop')).stdout,
      /^track +Order Completed +4 +20\S+ +20\S+ +8$/m,
    )
    const shown = await run('show', '--source', 'shop', '--event', 'Order Completed')
    assert.match(shown.stdout, /^properties\.products\[\]\.sku +50% +string$/m, shown.stderr)
    const schema = await run('export', '--source', 'shop', '--format', 'json-schema')
    assert.equal((JSON.parse(schema.stdout) as { anyOf: unknown[] }).anyOf.length, 5)
    const { stdout } = await run('export', '--destination', 'crm', '--format', 'asyncapi')
    assert.equal((JSON.parse(stdout) as { asyncapi: string }).asyncapi, '3.0.0')
    const wrong = await run('export', '--source', 'shop', '--format', 'asyncapi')
    assert.equal(wrong.status, 2)
    assert.match(wrong.stderr, /--destination/)
    assert.match((await run('list', '--source', 'nowhere')).stderr, /source "nowhere" does not exist/)
  })

  await t.test('what a destination does not get is not in its document', async () => {
    const messages = async () => {
      const document = await console.ok(200, 'GET', '/events/export?format=asyncapi&destination=crm')
      const { components } = document as { components: { messages: Record<string, object> } }
      return components.messages
    }
    assert.equal(Object.keys(await messages()).length, 6)
    await deployment.settings.execute({
      type: 'update_destination',
      id: 'crm',
      options: { types: ['track'], events: ['Order Completed'], drop: ['properties.email'] },
    })
    const left = await messages()
    assert.deepEqual(Object.keys(left), ['track_Order_Completed', 'delete'])
    assert.doesNotMatch(JSON.stringify(left), /email/)
  })

  await t.test('a reader is refused: names and fields are contents of calls', async () => {
    const { token } = await console.ok(201, 'POST', '/tokens', { id: 'eyes', role: 'reader' })
    const headers = { authorization: `Bearer ${String(token)}` }
    assert.equal((await console.call('GET', '/events?source=shop', { headers })).status, 403)
  })
})

test('a catalogue that was deleted is the same again, and two consoles on one file count each call once', async (t) => {
  const storePath = await temporaryFolder(t)
  const deployment = await deploy(t, { STORE_PATH: storePath })
  await deployment.destination({ urls: ['http://127.0.0.1:9/'] })
  const config = { ...deployment.config, storePath, consolePort: 0, adminToken }
  const [one, other] = [
    await startConsole(deployment, { config }),
    await startConsole(deployment, { config }),
  ]
  for (let time = 0; time < 4; time++) {
    await deployment.produce(
      someOrders(50).map((call) => ({ ...call, messageId: `${time}-${call.messageId}` })),
    )
    await Promise.all([listed(one), listed(other)])
  }
  const list = await listed(one)
  assert.equal(
    list.events.reduce((sum, { calls }) => sum + calls, 0),
    4 * 50 * orders.length,
  )
  assert.deepEqual(await listed(other), list)
  const file = join(storePath, `${deployment.topics.deliveries}.index.sqlite`)
  for (const suffix of ['', '-wal', '-shm']) await rm(file + suffix, { force: true })
  assert.deepEqual(await listed(await startConsole(deployment, { config })), list)
})

test('calls that retention took before they were counted move the time since when all are', async (t) => {
  const deployment = await deploy(t, { PARTITIONS_CALLS: '1' })
  await deployment.destination({ urls: ['http://127.0.0.1:9/'] })
  const { admin, topics } = deployment
  const console = await startConsole(deployment)
  await deployment.produce(someOrders())
  const first = await listed(console)
  await deployment.produce(someOrders())
  await deleteRecords(admin, topics.calls, [{ partition: 0, offset: -1 }])
  await deployment.produce([someCall({ messageId: 'last' })])
  const later = await listed(console)
  assert.deepEqual(counted(later).at(-1), ['track', 'Order Completed', 3])
  assert.equal(later.knownSince, later.events.at(-1)!.lastSeen)
  assert.ok(later.knownSince! > first.knownSince!)
  assert.equal(later.events.at(-1)!.firstSeen, first.events.at(-1)!.firstSeen, 'what was seen stays')
  const rebuilt = await startConsole(deployment)
  assert.deepEqual(counted(await listed(rebuilt)), [['track', 'Order Completed', 1]])
})
