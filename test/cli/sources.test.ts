import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeSettingsCli } from '../support/deployment/settings-cli.ts'

test('a source is created, shown, changed and disabled, and running parts apply each step', async (t) => {
  const cli = await makeSettingsCli(t)
  const follower = await cli.open()

  const created = await cli.run('sources', 'create', '--id', 'shop', '--name', 'Shop')
  assert.deepEqual([created.status, created.stderr], [0, ''])
  const key = /^source "shop" created; its write key is ([0-9a-f]{32})\n$/.exec(created.stdout)?.[1]
  assert(key, created.stdout)
  await follower.catchUp()
  assert.equal(follower.state.sources.get('shop')?.writeKey, key)

  await cli.json('sources', 'create', '--id', 'app', '--name', 'App', '--write-key', 'my-key')
  const listed = await cli.run('sources', 'list')
  assert.equal(
    listed.stdout,
    [
      'ID         NAME                STATE     DESTINATIONS',
      'shop       Shop                enabled   -',
      'app        App                 enabled   -',
      'postrider  Operational events  built in  -',
      '',
    ].join('\n'),
  )

  assert.match((await cli.run('sources', 'show', 'shop')).stdout, new RegExp(`^writeKey: ${key}$`, 'm'))
  await cli.json('sources', 'update', 'shop', '--name', 'New', '--write-key', 'other')
  assert.match((await cli.run('sources', 'disable', 'shop')).stdout, /^enabled: false$/m)
  assert.deepEqual(await cli.json('sources', 'show', 'shop'), [
    {
      id: 'shop',
      name: 'New',
      writeKey: 'other',
      maxRate: null,
      ip: 'keep',
      bots: 'keep',
      plan: null,
      planMode: 'report',
      enabled: false,
      builtIn: false,
      destinationIds: [],
      destinationCount: 0,
    },
  ])
  await cli.json('sources', 'enable', 'shop')
  const all = await cli.json('sources', 'list')
  assert.deepEqual(
    all.map(({ id, enabled }) => [id, enabled]),
    [
      ['shop', true],
      ['app', true],
      ['postrider', true],
    ],
  )
})

test('a quota is given to a source, changed, shown and taken away', async (t) => {
  const cli = await makeSettingsCli(t)
  const create = ['sources', 'create', '--id', 'shop', '--name', 'Shop', '--max-rate', '200']
  const rateOf = ([shown]: Record<string, unknown>[]) => shown!.maxRate
  assert.equal(rateOf(await cli.json(...create)), '200/s')
  assert.equal(rateOf(await cli.json('sources', 'update', 'shop', '--max-rate', '600/m')), '600/m')
  assert.match((await cli.run('sources', 'show', 'shop')).stdout, /^maxRate: 600\/m$/m)
  assert.equal(rateOf(await cli.json('sources', 'update', 'shop', '--name', 'New')), '600/m')
  assert.equal(rateOf(await cli.json('sources', 'update', 'shop', '--no-max-rate')), null)
  assert.match((await cli.run('sources', 'show', 'shop')).stdout, /^maxRate: null$/m)
  assert.deepEqual((await cli.open()).state.sources.get('shop')?.maxRate, null)
})

test('what a source does with addresses and bots is set, shown, exported and applied again', async (t) => {
  const cli = await makeSettingsCli(t)
  const flags = (ip: string, bots: string) => ['--ip', ip, '--bots', bots]
  const hygieneOf = ([shown]: Record<string, unknown>[]) => [shown!.ip, shown!.bots]
  const create = ['sources', 'create', '--id', 'shop', '--name', 'Shop', '--write-key', 'k']
  assert.deepEqual(hygieneOf(await cli.json(...create)), ['keep', 'keep'])
  const update = await cli.json('sources', 'update', 'shop', ...flags('truncate', 'drop'))
  assert.deepEqual(hygieneOf(update), ['truncate', 'drop'])
  assert.match((await cli.run('sources', 'show', 'shop')).stdout, /^ip: truncate\nbots: drop$/m)
  const exported = await cli.run('settings', 'export')
  assert.match(exported.stdout, /ip: truncate\n +bots: drop/)

  assert.deepEqual(hygieneOf(await cli.json('sources', 'update', 'shop', ...flags('keep', 'keep'))), [
    'keep',
    'keep',
  ])
  assert.doesNotMatch((await cli.run('settings', 'export')).stdout, /ip:|bots:/)
  const folder = await mkdtemp(join(tmpdir(), 'postrider-sources-'))
  t.after(() => rm(folder, { recursive: true }))
  await writeFile(join(folder, 'settings.yml'), exported.stdout)
  const applied = await cli.run('settings', 'apply', join(folder, 'settings.yml'))
  assert.equal(applied.status, 0, applied.stderr)
  assert.deepEqual(hygieneOf(await cli.json('sources', 'show', 'shop')), ['truncate', 'drop'])

  for (const [flag, choices] of [
    ['--ip', 'keep, truncate, drop'],
    ['--bots', 'keep, flag, drop'],
  ] as const) {
    const { status, stderr } = await cli.run('sources', 'update', 'shop', flag, 'some')
    assert.equal(status, 2)
    assert.match(stderr, new RegExp(`'some' is invalid.*${choices}`))
  }
})

test('the built-in source is shown, and cannot be created, changed or disabled', async (t) => {
  const cli = await makeSettingsCli(t)
  const shown = await cli.run('sources', 'show', 'postrider')
  assert.match(shown.stdout, /^writeKey: null$/m)
  assert.match(shown.stdout, /^builtIn: true$/m)
  const refused: string[][] = [
    ['create', '--id', 'postrider', '--name', 'Mine'],
    ['update', 'postrider', '--name', 'Mine'],
    ['disable', 'postrider'],
  ]
  for (const args of refused) {
    const { status, stderr } = await cli.run('sources', ...args)
    assert.equal(status, 1)
    assert.equal(
      stderr,
      'postrider: source "postrider" is built in, for operational events: it cannot be created or changed\n',
    )
  }
})

test('a refusal is one line on stderr with its exit code, and changes nothing', async (t) => {
  const cli = await makeSettingsCli(t)
  await cli.json('sources', 'create', '--id', 'shop', '--name', 'Shop', '--write-key', 'my-key')
  const cases: [args: string[], status: number, line: string][] = [
    [
      ['create', '--id', 'Shop!', '--name', ' ', '--write-key', 'a:b'],
      2,
      'postrider: id "Shop!" must be 1-64 of a-z, 0-9, "_" and "-", and begin with a letter or digit; the name is empty; the write key must be 1-128 visible ASCII characters without a colon\n',
    ],
    [
      ['create', '--id', 'shop', '--name', 'Again', '--write-key', 'my-key-2'],
      1,
      'postrider: source "shop" exists already, and ids are never reused\n',
    ],
    [
      ['create', '--id', 'other', '--name', 'Other', '--write-key', 'my-key'],
      1,
      'postrider: the write key is in use by source "shop"\n',
    ],
    [['update', 'shop'], 2, 'postrider: nothing to change: give a name, a write key or an option\n'],
    [
      ['create', '--id', 'other', '--name', 'Other', '--max-rate', '0/s'],
      2,
      'postrider: the quota "0/s" must be calls a second or a minute, such as 200/s or 600/m, from 1 to 100,000,000\n',
    ],
    [['disable', 'nope'], 1, 'postrider: source "nope" does not exist\n'],
    [['show', 'nope'], 1, 'postrider: source "nope" does not exist; `postrider sources list` shows all\n'],
  ]
  for (const [args, status, line] of cases) {
    const result = await cli.run('sources', ...args)
    assert.deepEqual([result.status, result.stderr, result.stdout], [status, line, ''])
  }
  assert.equal((await cli.open()).state.version, 1)
})

test('a value that cannot be is named by its flag, before anything is connected', async (t) => {
  const away = await makeSettingsCli(t, { KAFKA_BROKERS: '127.0.0.1:1' })
  const create = [
    'destinations',
    'create',
    '--id',
    'crm',
    '--name',
    'CRM',
    '--source',
    'shop',
    '--url',
    'https://a.example',
  ]
  const cases: [args: string[], line: RegExp][] = [
    [[...create, '--max-in-flight', '0'], /^postrider: --max-in-flight: .*>=1\n$/],
    [
      ['destinations', 'update', 'crm', '--max-in-flight', '20000'],
      /^postrider: --max-in-flight: .*<=10000\n$/,
    ],
    [['tail', 'shop', '--types', 'track,nonsense'], /^postrider: --types.*nonsense/],
  ]
  for (const [args, line] of cases) {
    const { status, stderr } = await away.run(...args)
    assert.match(stderr, line)
    assert.equal(status, 2, args.join(' '))
  }
})

test('unreachable brokers and missing topics get a line that says what to do', async (t) => {
  const away = await makeSettingsCli(t, { KAFKA_BROKERS: '127.0.0.1:1' })
  const began = Date.now()
  const list = away.run('sources', 'list')
  const missing = await makeSettingsCli(t, { TOPIC_PREFIX: 'never.made.' })
  const topics = await missing.run('sources', 'list')
  assert.equal(topics.status, 1)
  assert.equal(
    topics.stderr,
    'postrider: topic never.made.webhooks.settings does not exist: run `postrider setup`, or, where `npm start` has just begun, wait until it is ready\n',
  )
  const { status, stderr } = await list
  assert.equal(status, 1)
  const lines = stderr.trimEnd().split('\n')
  assert.match(lines.at(-1)!, /^postrider: .*ECONNREFUSED.*KAFKA_BROKERS/)
  assert.equal(lines.length, 1, stderr)
  assert(Date.now() - began < 20_000)
})
