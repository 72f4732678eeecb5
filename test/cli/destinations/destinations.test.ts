import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../../support/deployment/rig.ts'
import { startReceiver } from '../../support/receivers.ts'
import { makeSettingsCli } from '../../support/deployment/settings-cli.ts'

const SECRETS_KEY = '0123456789abcdef'.repeat(4)

test('a destination is created, shown with fingerprints only, changed and disabled', async (t) => {
  const cli = await makeSettingsCli(t, { SECRETS_KEY })
  await cli.json('sources', 'create', '--id', 'shop', '--name', 'Shop')
  const folder = await mkdtemp(join(tmpdir(), 'postrider-'))
  t.after(() => rm(folder, { recursive: true }))
  const file = join(folder, 'secret')
  await writeFile(file, 'file-s3cret\n')

  const printed: string[] = []
  const run = async (...args: string[]): Promise<string> => {
    const { status, stdout, stderr } = await cli.run('destinations', ...args)
    assert.equal(status, 0, stderr)
    printed.push(stdout, stderr)
    return stdout
  }
  const created = await run(
    ...['create', '--id', 'crm', '--name', 'CRM', '--source', 'shop'],
    ...['--url', 'https://a.example/hook', '--url', 'https://b.example/hook'],
    ...['--header', '2:Authorization: Bearer b-t0ken', '--header', '1: X-Team : blue-t0ken'],
    ...['--secret-file', file],
  )
  assert.match(created, /^id +crm\nname +CRM\nstate +enabled\n/)
  assert.equal(
    await run('list'),
    'ID   NAME  STATE    SOURCES  URLS  SIGNED\ncrm  CRM   enabled  shop     2     yes\n',
  )
  const shown = await run('show', 'crm')
  assert.match(shown, /^shared secret +fingerprint [0-9a-f]{12}$/m)
  assert.match(
    shown,
    /^URL 2 +https:\/\/b\.example\/hook \(id u2\)\n +Authorization: fingerprint [0-9a-f]{12}$/m,
  )

  const settings = await cli.open()
  await settings.execute({
    type: 'report_endpoint_gone',
    destinationId: 'crm',
    urlId: 'u2',
    at: Date.UTC(2026, 0, 2, 3, 4, 5),
  })
  assert.match(await run('show', 'crm'), /^ +gone since 2026-01-02T03:04:05\.000Z: it answered 410\./m)
  assert.match(await run('list'), /2 \(1 gone\)/)

  await run(
    ...['update', 'crm', '--url', 'https://b.example/hook', '--url', 'https://c.example/'],
    ...['--header', '2:X-New: c-t0ken', '--remove-header', '1:authorization', '--remove-secret'],
  )
  const [view] = await cli.json('destinations', 'show', 'crm')
  assert.equal(view!.sharedSecret, null)
  const urls = view!.urls as { id: string; url: string; headers: { name: string }[]; goneAt: null }[]
  assert.deepEqual(
    urls.map(({ id, url, headers, goneAt }) => [id, url, headers.map(({ name }) => name), goneAt]),
    [
      ['u2', 'https://b.example/hook', [], null],
      ['u3', 'https://c.example/', ['X-New'], null],
    ],
  )
  assert.match(await run('disable', 'crm'), /^state +disabled$/m)
  await settings.catchUp()
  assert.equal(settings.state.destinations.get('crm')?.enabled, false)
  await run('enable', 'crm')
  assert.deepEqual(
    (await cli.json('sources', 'show', 'shop')).map(({ destinationIds }) => destinationIds),
    [['crm']],
  )
  printed.push(JSON.stringify(view))
  assert.doesNotMatch(printed.join(), /s3cret|t0ken/)
})

test('secrets and header values can come from files, so that they are not visible in the process list', async (t) => {
  const cli = await makeSettingsCli(t, { SECRETS_KEY, WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8' })
  const folder = await temporaryFolder(t)
  const receiver = await startReceiver(t, { secret: 's3cret-in-a-file' })
  const [token, secret] = [join(folder, 'token:1'), join(folder, 'secret')]
  await writeFile(token, 'Bearer t0ken-in-a-file\n')
  await writeFile(secret, 's3cret-in-a-file\n')
  await cli.run('sources', 'create', '--id', 'shop', '--name', 'Shop')
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
    receiver.url,
  ]
  const made = await cli.run(...create, '--secret-file', secret, '--header-file', `1:Authorization:${token}`)
  assert.equal(made.status, 0, made.stderr)
  await cli.run('destinations', 'test', 'crm')
  const [request] = await receiver.waitFor(1)
  assert.equal(request!.headers.authorization, 'Bearer t0ken-in-a-file')
  assert.equal(request!.signature, 'valid')
  const missing = await cli.run('destinations', 'update', 'crm', '--header-file', `1:X-Other:${folder}/none`)
  assert.deepEqual(
    [missing.status, missing.stderr],
    [2, `postrider: --header-file ${folder}/none cannot be read (ENOENT)\n`],
  )
  const wrong = await cli.run('destinations', 'update', 'crm', '--header-file', token)
  assert.match(
    wrong.stderr,
    /^postrider: --header-file takes "URL-number:Name:file", .*; the first one is not of that form/,
  )
})

test('limits, a condition, dropped paths and trace context are set, shown and taken away', async (t) => {
  const cli = await makeSettingsCli(t, { SECRETS_KEY })
  await cli.json('sources', 'create', '--id', 'shop', '--name', 'Shop')
  const where = 'call.properties.total >= 100 && call.context.country in ["DE","FR"]'
  const [made] = await cli.json(
    ...['destinations', 'create', '--id', 'crm', '--name', 'CRM', '--source', 'shop'],
    ...['--url', 'https://a.example/', '--max-rate', '100', '--max-in-flight', '10'],
    ...['--types', 'track,page', '--types', 'identify'],
    ...['--where', where, '--drop', 'context.ip', '--drop', 'traits."e.mail"', '--trace-context', 'on'],
    ...['--consent', 'advertising,analytics', '--proxy', 'none'],
  )
  const drop = ['context.ip', 'traits."e.mail"']
  const types = ['track', 'page', 'identify']
  const consent = ['advertising', 'analytics']
  const limits = { maxRate: '100/s', maxInFlight: 10 }
  const chosen = { ...limits, where, drop, traceContext: true, types, consent, proxy: 'none' }
  assert.partialDeepStrictEqual(made, chosen)
  const { stdout } = await cli.run('destinations', 'show', 'crm')
  assert.match(stdout, /^rate limit +100\/s\nrequests in flight +10\ncondition /m)
  assert.ok(
    stdout.includes(`  ${where}\nleft out of the body  context.ip\n                      traits."e.mail"\n`),
  )
  assert.match(stdout, /^trace context +on$/m)
  assert.match(stdout, /^proxy +none$/m)

  const wrong = await cli.run(
    ...['destinations', 'update', 'crm', '--where', 'call.event ==\n 1 +', '--max-rate', 'fast'],
    ...['--drop', 'messageId'],
  )
  assert.equal(wrong.status, 2)
  assert.match(wrong.stderr, /line 2, column 5: Unexpected token: EOF/)
  for (const part of ['"fast" is no rate', '"messageId", begins with none of'])
    assert.ok(wrong.stderr.includes(part), wrong.stderr)
  for (const flags of [
    ['--max-in-flight', '0'],
    ['--max-in-flight', 'few'],
    ['--trace-context', 'x'],
    ['--proxy', 'http://me:p4ss@proxy.test:3128'],
  ])
    assert.equal((await cli.run('destinations', 'update', 'crm', ...flags)).status, 2)
  assert.partialDeepStrictEqual((await cli.json('destinations', 'show', 'crm'))[0], chosen)

  const [bare] = await cli.json(
    ...['destinations', 'update', 'crm', '--no-max-rate', '--no-max-in-flight'],
    ...['--no-where', '--no-drop', '--trace-context', 'off', '--no-types', '--no-proxy'],
  )
  const withoutLimits = { maxRate: null, maxInFlight: null }
  const none = { ...withoutLimits, types: null, where: null, drop: null, traceContext: false, proxy: null }
  assert.partialDeepStrictEqual(bare, none)
})

test('a schedule of its own is set, shown and taken away, and one that the deployment lacks is refused with what there is', async (t) => {
  const cli = await makeSettingsCli(t, { SECRETS_KEY, RETRY_TIERS: '10s,1m,5m', RETRY_WINDOW: '1h' })
  await cli.json('sources', 'create', '--id', 'shop', '--name', 'Shop')
  const [made] = await cli.json(
    ...['destinations', 'create', '--id', 'crm', '--name', 'CRM', '--source', 'shop'],
    ...['--url', 'https://a.example/', '--retry-window', '30m', '--retry-tiers', '10s,5m'],
  )
  assert.partialDeepStrictEqual(made, { retryWindow: '30m', retryTiers: ['10s', '5m'] })
  const wrong = await cli.run('destinations', 'update', 'crm', '--retry-window', '2h', '--retry-tiers', '30s')
  assert.equal(wrong.status, 2)
  for (const part of ['2h is longer than the deployment’s 1h', 'no tier 30s: the deployment has 10s, 1m, 5m'])
    assert.ok(wrong.stderr.includes(part), wrong.stderr)
  const [bare] = await cli.json('destinations', 'update', 'crm', '--no-retry-window', '--no-retry-tiers')
  assert.partialDeepStrictEqual(bare, { retryWindow: null, retryTiers: null })
})

test('test sends each URL one signed call with its own headers and prints each outcome', async (t) => {
  const cli = await makeSettingsCli(t, { SECRETS_KEY, WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8' })
  const [good, bad] = await Promise.all([startReceiver(t), startReceiver(t)])
  bad.answer({ status: 503 })
  await cli.json('sources', 'create', '--id', 'shop', '--name', 'Shop')
  await cli.json(
    ...['destinations', 'create', '--id', 'crm', '--name', 'CRM', '--source', 'shop', '--disabled'],
    ...['--url', good.url, '--url', bad.url, '--header', '1:X-Team: blue', '--secret', 's3cret'],
  )
  const { status, stdout } = await cli.run('destinations', 'test', 'crm')
  assert.equal(status, 1, 'one of them failed')
  assert.match(stdout, /^1 +success +200 /m)
  assert.match(stdout, /^2 +status_5xx +503 /m)
  assert.match(
    stdout,
    /\nSent from this machine with this command's settings \(WEBHOOK_ALLOWED_NETWORKS: 127\.0\.0\.0\/8, WEBHOOK_PROXY: not set\); forwarders may have others\.\n$/,
  )

  const [request, ...others] = good.requests
  assert.equal(others.length, 0)
  assert.equal(request!.headers['x-team'], 'blue')
  assert.equal(bad.requests[0]!.headers['x-team'], undefined)
  const expected = createHmac('sha1', 's3cret').update(request!.body).digest('hex')
  assert.equal(request!.headers['x-signature'], expected)
  assert.equal(request!.json().event, 'Postrider Test')
  assert.deepEqual(bad.requests[0]!.body, request!.body)

  bad.answer({ status: 200 })
  const [again] = await cli.json('destinations', 'test', 'crm')
  const outcomes = again!.data as Record<string, unknown>[]
  assert.deepEqual(
    outcomes.map(({ number, outcome, status: code }) => [number, outcome, code]),
    [
      [1, 'success', 200],
      [2, 'success', 200],
    ],
  )
})

test('a refusal is one line that names every fault and no secret, and changes nothing', async (t) => {
  const cli = await makeSettingsCli(t, { SECRETS_KEY })
  const keyless = await makeSettingsCli(t)
  const create = ['create', '--id', 'crm', '--name', 'CRM', '--source', 'shop', '--url', 'https://a.example']
  const cases: [args: string[], status: number, line: RegExp][] = [
    [
      [...create, '--header', '1:X-A: h1dden', '--header', '1:x-a: h1dden'],
      2,
      /^postrider: header "x-a" of URL 1 is given twice\n$/,
    ],
    [['update', 'crm', '--no-events', '--events', 'Order'], 2, /It cannot be used with --no-events\./],
    [
      [...create, '--header', '3:Host: h1dden'],
      2,
      /^postrider: a header names URL 3; there are 1, counted from 1\n$/,
    ],
    [
      [...create, '--url', 'ftp://x.example', '--header', '2:Host: h1dden', '--secret', ''],
      2,
      /^postrider: source "shop" does not exist; URL 2 begins with "ftp:".*; header "Host" of URL 2 cannot be set.*; the shared secret is 0 bytes long, 1-256 are allowed\n$/,
    ],
    [
      [...create, '--header', 'Authorization: h1dden'],
      2,
      /^postrider: --header takes "URL-number:Name: value".*; the first one is not of that form\n$/,
    ],
    [
      [...create, '--secret-file', '/nowhere/x'],
      2,
      /^postrider: --secret-file \/nowhere\/x cannot be read \(ENOENT\)\n$/,
    ],
    [
      [...create, '--secret', 'h1dden', '--secret-file', 'x'],
      2,
      /^postrider: option '--secret <secret>' cannot be used with option '--secret-file <file>'\. See/,
    ],
    [
      ['create', '--id', 'crm'],
      2,
      /^postrider: required options '--name <name>', '--source <id>', '--url <url>' not specified\. See/,
    ],
    [create, 1, /^postrider: source "shop" does not exist\n$/],
    [['test', 'nope'], 1, /^postrider: destination "nope" does not exist; /],
    [['update', 'nope', '--name', 'x'], 1, /^postrider: destination "nope" does not exist\n$/],
  ]
  for (const [args, status, line] of cases) {
    const result = await cli.run('destinations', ...args)
    assert.match(result.stderr, line)
    assert.deepEqual([result.status, result.stdout], [status, ''])
    assert.doesNotMatch(result.stderr, /h1dden/)
  }
  const result = await keyless.run('destinations', ...create, '--secret', 'h1dden')
  assert.equal(result.status, 1)
  assert.match(result.stderr, /^postrider: SECRETS_KEY is not set, .*openssl rand -hex 32.*\n$/)
  assert.equal((await cli.open()).state.version, 0)
})

test('a destination is paused for a time or without an end, shown as such, and resumed', async (t) => {
  const cli = await makeSettingsCli(t, { SECRETS_KEY })
  await cli.json('sources', 'create', '--id', 'shop', '--name', 'Shop')
  const create = ['create', '--id', 'crm', '--name', 'CRM', '--source', 'shop', '--url', 'https://a.example/']
  await cli.json('destinations', ...create)
  const run = async (...args: string[]) => (await cli.run('destinations', ...args)).stdout
  assert.match(await run('pause', 'crm', '--for', '2h'), /^paused +since 2\S+Z, until 2\S+Z$/m)
  assert.match(await run('show', 'crm'), /^paused +since 2\S+Z, until 2\S+Z$/m)
  assert.match(await run('list'), /^crm +CRM +paused until 2\S+Z +shop/m)
  assert.match(await run('pause', 'crm'), /^paused .* until `postrider destinations resume crm`$/m)
  const [view] = await cli.json('destinations', 'show', 'crm')
  assert.equal((view!.pause as { until: null }).until, null)
  assert.match(await run('list'), /^crm +CRM +paused +shop/m)
  for (const rate of ['50', '50/s']) {
    const resumed = await run('resume', 'crm', '--rate', rate)
    assert.match(resumed, /^state +enabled$/m)
    assert.doesNotMatch(resumed, /^paused/m)
  }
  const tooFast = await cli.run('destinations', 'resume', 'crm', '--rate', 'fast')
  assert.equal(tooFast.status, 2)
  assert.match(
    tooFast.stderr,
    /^postrider: --rate is "fast"; it takes a number per second, such as 50 or 50\/s$/m,
  )
  const wrong = await cli.run('destinations', 'pause', 'crm', '--for', 'ever')
  assert.equal(wrong.status, 2)
  assert.match(wrong.stderr, /^postrider: --for: must be a duration such as 30m, 2h or 1d$/m)
})
