import assert from 'node:assert/strict'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { GroupLease } from '../../../src/adapters/kafka/group/lease.ts'
import { createCodecs } from '../../../src/adapters/schema-registry/codecs.ts'
import type { AnalyticsCall } from '../../../src/core/call/analytics-call.ts'
import { topicNames } from '../../../src/core/topics.ts'
import { commandRig, type CommandRig } from '../../support/deployment/command-rig.ts'
import { until } from '../../support/until.ts'
import { registryUrl, temporaryFolder } from '../../support/deployment/rig.ts'
import { silentLog } from '../../support/silent-log.ts'

interface Told {
  user: string
  traits: string
  id: string
}

interface Rig extends CommandRig {
  store: string
  ok(input: string, ...args: string[]): Promise<string>
  calls(): Promise<AnalyticsCall[]>
  told(): Promise<Told[]>
}

async function audienceRig(t: TestContext): Promise<Rig> {
  const store = await temporaryFolder(t)
  // With the session timeout that a deployment has: a sync ends without an answer of Kafka for two thirds of it.
  const base = await commandRig(t, { STORE_PATH: store })
  const registry = { url: registryUrl(), username: null, password: null }
  const log = silentLog
  const codec = createCodecs({ registry, topics: topicNames(base.prefix), log }).calls
  const rig: Rig = {
    ...base,
    store,
    async ok(input, ...args) {
      const { status, stdout, stderr } = await base.run(input, ...args)
      assert.equal(status, 0, stderr)
      return stdout
    },
    async calls() {
      const records = await base.records('analytics.calls')
      return Promise.all(records.map(({ value }) => codec.decode(value)))
    },
    async told() {
      const all = (await rig.calls()).map(({ userId, traits, messageId }) => ({
        user: userId!,
        traits: traits!,
        id: messageId,
      }))
      return all.sort((a, b) => (a.user < b.user ? -1 : a.user > b.user ? 1 : 0))
    },
  }
  await rig.ok('', 'setup')
  await rig.ok('', 'sources', 'create', '--id', 'shop', '--name', 'Shop')
  await rig.ok('', 'audiences', 'create', '--id', 'vip', '--name', 'VIP Größe', '--source', 'shop')
  return rig
}

const brief = (told: Told[]) => told.map(({ user, traits }) => `${user} ${traits}`)

test('the first sync reports every member, later ones report changes, and a member that returns gets a third message', async (t) => {
  const rig = await audienceRig(t)
  await rig.ok('a\r\nb\nc', 'audiences', 'sync', 'vip')
  const [first] = await rig.calls()
  assert.equal(first!.type, 'identify')
  assert.equal(first!.sourceId, 'shop')
  assert.equal(first!.integrations, '{"All":false,"Webhooks":true}')
  assert.deepEqual(JSON.parse(first!.context!), {
    personas: {
      computation_class: 'audience',
      computation_id: 'vip',
      computation_key: 'vip_größe',
      namespace: 'shop',
      space_id: 'shop',
    },
  })
  await rig.ok('b\nc\nd\n', 'audiences', 'sync', 'vip')
  // The file is a view: without it nothing is reported twice, and no member is forgotten.
  await rm(rig.store, { recursive: true })
  await rig.ok('', 'audiences', 'change', 'vip', '--add', 'a', 'b', '--remove', 'nobody')
  const told = await rig.told()
  assert.deepEqual(brief(told), [
    'a {"vip_größe":true}',
    'a {"vip_größe":false}',
    'a {"vip_größe":true}',
    'b {"vip_größe":true}',
    'c {"vip_größe":true}',
    'd {"vip_größe":true}',
  ])
  assert.equal(new Set(told.map(({ id }) => id)).size, 6)
  const [shown] = (await rig.ok('', 'audiences', 'show', 'vip', '--json')).trim().split('\n')
  assert.equal((JSON.parse(shown!) as { count: number }).count, 4)
})

test('deleting an audience reports every member as leaving if asked to, and its id stays in use', async (t) => {
  const rig = await audienceRig(t)
  await rig.ok('a\nb\n', 'audiences', 'sync', 'vip')
  await rig.ok('', 'audiences', 'delete', 'vip', '--notify')
  assert.deepEqual(brief(await rig.told()), [
    'a {"vip_größe":true}',
    'a {"vip_größe":false}',
    'b {"vip_größe":true}',
    'b {"vip_größe":false}',
  ])
  assert.match((await rig.run('a', 'audiences', 'sync', 'vip')).stderr, /was deleted/)
  const again = await rig.run('', 'audiences', 'create', '--id', 'vip', '--name', 'New', '--source', 'shop')
  assert.match(again.stderr, /ids are never reused/)
})

test('an invalid list or definition is named and changes nothing', async (t) => {
  const rig = await audienceRig(t)
  const cases: [input: string | Buffer, args: string[], status: number, message: RegExp][] = [
    ['a\n\nb\n', ['sync', 'vip'], 2, /line 2 is empty/],
    ['a\nb\na\n', ['sync', 'vip'], 2, /line 3 names the user of line 1 again/],
    [Buffer.from([0x61, 0x0a, 0xff, 0xfe, 0x0a]), ['sync', 'vip'], 2, /line 2 is not text in UTF-8/],
    ['', ['sync', 'vip'], 2, /the list is empty/],
    ['a\n', ['sync', 'nope'], 1, /audience "nope" does not exist/],
    [
      'b\na\n',
      ['change', 'vip', '--add', 'a', '--remove-file', '-'],
      2,
      /line 3 names the user of line 1 again, "a"/,
    ],
    ['', ['create', '--id', 'v2', '--name', 'vip-größe', '--source', 'shop'], 1, /property "vip_größe"/],
    ['', ['create', '--id', 'v2', '--name', '!!', '--source', 'shop'], 2, /no letter or digit/],
  ]
  for (const [input, args, status, message] of cases) {
    const result = await rig.run(input as string, 'audiences', ...args)
    assert.match(result.stderr, message)
    assert.equal(result.status, status, result.stderr)
  }
  assert.deepEqual(await rig.calls(), [])
  assert.deepEqual(await rig.records('analytics.memberships'), [])
})

test('a computed trait is reported when its value changes, and as null when it is removed', async (t) => {
  const rig = await audienceRig(t)
  await rig.ok('', 'traits', 'create', '--id', 'ltv', '--name', 'Lifetime Value', '--source', 'shop')
  await rig.ok(
    '{"userId":"a","value":1.50}\n{"userId":"b","value":{"x": [1]}}\n{"userId":"c","value":"z z"}\n{"userId":"d","value":null}',
    'traits',
    'sync',
    'ltv',
  )
  await rig.ok('{"userId":"a","value": 2}\n{"value":{"x":[1]},"userId":"b"}\n', 'traits', 'sync', 'ltv')
  assert.deepEqual(brief(await rig.told()), [
    'a {"lifetime_value":1.50}',
    'a {"lifetime_value":2}',
    'b {"lifetime_value":{"x":[1]}}',
    'c {"lifetime_value":"z z"}',
    'c {"lifetime_value":null}',
  ])
})

for (const [name, kept] of [
  ['the same list', 20_000],
  ['a different list', 10_000],
] as const)
  test(`after a sync was killed, ${name} reports each change at least once, under one id`, async (t) => {
    const rig = await audienceRig(t)
    const users = Array.from({ length: 20_000 }, (_, index) => `u${index}`)
    const cut = rig.start('audiences', 'sync', 'vip')
    cut.process.stdin.end(users.join('\n'))
    const min = Math.floor(Math.random() * 19_000)
    const written = () => rig.written('analytics.memberships')
    await until(async () => (await written()) > min, 60_000, 'a part of the memberships')
    cut.process.kill('SIGKILL')
    await cut.ended
    t.diagnostic(`killed after ${await written()} memberships and ${(await rig.calls()).length} calls`)
    await rig.ok(users.slice(20_000 - kept).join('\n'), 'audiences', 'sync', 'vip')
    const ids = new Map<string, Set<string>>()
    const last = new Map<string, string>()
    for (const { userId, traits, messageId } of await rig.calls()) {
      const change = `${userId} ${traits}`
      ids.set(change, (ids.get(change) ?? new Set()).add(messageId))
      last.set(userId!, traits!)
    }
    for (const [change, found] of ids) assert.equal(found.size, 1, change)
    for (const [index, user] of users.entries()) {
      const isIn = index >= 20_000 - kept
      if (isIn) assert.equal(last.get(user), '{"vip_größe":true}', user)
      else assert.ok(last.get(user) === undefined || last.get(user) === '{"vip_größe":false}', user)
    }
  })

test('a concurrent sync of another process is rejected and changes nothing', async (t) => {
  const rig = await audienceRig(t)
  const lease = await GroupLease.acquire({
    kafka: rig.kafka,
    groupId: `postrider.sync.${rig.prefix}vip`,
    topic: `${rig.prefix}webhooks.settings`,
    sessionTimeoutMs: 18_000,
    what: 'it',
  })
  t.after(() => lease.release())
  const refused = await Promise.all([
    rig.run('a\nb', 'audiences', 'sync', 'vip'),
    rig.run('', 'audiences', 'change', 'vip', '--add', 'x'),
    rig.run('', 'audiences', 'delete', 'vip', '--notify'),
  ])
  for (const { status, stderr } of refused) {
    assert.match(stderr, /audience "vip" is running elsewhere; nothing was changed/)
    assert.equal(status, 1)
  }
  lease.check()
  assert.deepEqual(await rig.records('analytics.memberships'), [])
  await lease.release()
  await rig.ok('', 'audiences', 'change', 'vip', '--add', 'x')
  assert.deepEqual(brief(await rig.told()), ['x {"vip_größe":true}'])
})

test('when processes sync one audience concurrently, each applies its whole list or nothing', async (t) => {
  const rig = await audienceRig(t)
  const lists = [0, 1, 2].map((list) => Array.from({ length: 2_000 }, (_, index) => `u${list}-${index}`))
  // Each in a process of its own: they share the store's file.
  const all = await Promise.all(
    lists.map((users) => {
      const { process, ended } = rig.start('audiences', 'change', 'vip', '--add-file', '-')
      process.stdin.end(users.join('\n'))
      return ended
    }),
  )
  for (const { status, stderr } of all)
    if (status !== 0) assert.match(stderr, /audience "vip" is running elsewhere; nothing was changed/)
  const taken = lists.filter((_, index) => all[index]!.status === 0)
  assert(taken.length > 0)
  assert.deepEqual(
    (await rig.told()).map(({ user }) => user),
    taken.flat().sort(),
  )
})

test('a store that is broken or belongs to another topic is rebuilt', async (t) => {
  const rig = await audienceRig(t)
  await rig.ok('a\nb\n', 'audiences', 'sync', 'vip')
  const { writeFile } = await import('node:fs/promises')
  const file = join(rig.store, `${rig.prefix}analytics.memberships.sqlite`)
  for (const suffix of ['-wal', '-shm']) await rm(file + suffix, { force: true })
  await writeFile(file, 'this is no database at all, whatever its name says')
  await rig.ok('a\nb\n', 'audiences', 'sync', 'vip')
  assert.equal((await rig.told()).length, 2)
})
