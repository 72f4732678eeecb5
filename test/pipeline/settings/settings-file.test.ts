// Settings from a file, as users apply it and receivers meet it.
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { hostname, tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { applySettings } from '../../../src/operators/settings/file.ts'
import { settingsFile } from '../../../src/operators/settings/file-schema.ts'
import { SettingsLog } from '../../../src/adapters/folded-log/settings-log.ts'
import { someCall } from '../../support/calls/calls.ts'
import { startConsole } from '../../support/consoles.ts'
import { runCommand } from '../../support/deployment/deployment-cli.ts'
import { deploy, type Deployment } from '../../support/deployment/deployment.ts'
import { startReceiver } from '../../support/receivers.ts'
import { silentLog } from '../../support/silent-log.ts'

const terminal = `cli:${userInfo().username}@${hostname()}`

/** Writes files and runs `postrider settings`. */
async function settingsCommands(t: TestContext, deployment: Deployment) {
  const folder = await mkdtemp(join(tmpdir(), 'postrider-test-'))
  t.after(() => rm(folder, { recursive: true }))
  return {
    async file(text: string): Promise<string> {
      const path = join(folder, 'settings.yml')
      await writeFile(path, text)
      return path
    },
    run: (args: readonly string[], { env = {}, input = '' } = {}) =>
      runCommand(
        t,
        { ...deployment, env: { ...deployment.env, ...env } } as Deployment,
        input,
        'settings',
        ...args,
      ),
  }
}

const yamlOf = (url: string) => `
sources:
  - id: shop
    name: Shop
destinations:
  - id: crm
    name: CRM
    sourceIds: [shop]
    urls:
      - url: ${url}
        headers:
          X-Team: \${POSTRIDER_SECRET_TEAM}
    sharedSecret: \${POSTRIDER_SECRET_OF_CRM}
    types: [track]
`

test('a file leads to signed calls, its export changes nothing, and the history names who did what', async (t) => {
  const deployment = await deploy(t)
  const receiver = await startReceiver(t, { secret: 'by-the-file' })
  const { file, run } = await settingsCommands(t, deployment)
  const env = { POSTRIDER_SECRET_TEAM: 'blue-team', POSTRIDER_SECRET_OF_CRM: 'by-the-file' }
  const path = await file(yamlOf(receiver.url))

  const dry = await run(['apply', path, '--dry-run'], { env })
  assert.equal(dry.status, 0, dry.stderr)
  assert.match(dry.stdout, /^\+ source shop\n[^]*\+ destination crm\n[^]*2 changes would be applied\n$/)
  await deployment.settings.catchUp()
  assert.equal(deployment.settings.state.version, 0)
  const applied = await run(['apply', path], { env })
  assert.equal(applied.status, 0, applied.stderr)
  assert.match(applied.stdout, /2 changes applied\n$/)

  await deployment.forwarder()
  await deployment.produce([someCall({ messageId: 'm-1' })])
  const [request] = await receiver.waitFor(1, 30_000)
  assert.equal(request!.signature, 'valid')
  assert.equal(request!.headers['x-team'], 'blue-team')

  const exported = await run(['export'])
  assert.match(exported.stdout, /sharedSecret: \$\{POSTRIDER_SECRET_CRM\}/)
  for (const [input, given] of [
    [exported.stdout, {}],
    [exported.stdout, { POSTRIDER_SECRET_CRM: 'by-the-file', POSTRIDER_SECRET_CRM_1_X_TEAM: 'blue-team' }],
  ] as const) {
    const again = await run(['apply', '-', '--prune'], { env: given, input })
    assert.equal(again.status, 0, again.stderr)
    assert.match(again.stdout, /nothing to change\n$/)
  }
  await deployment.settings.catchUp()
  assert.equal(deployment.settings.state.version, 1)

  const { ok } = await startConsole(deployment)
  const { version, settings } = await ok(200, 'GET', '/settings/export')
  const same = { settings, expectedVersion: version, prune: true }
  assert.deepEqual((await ok(200, 'POST', '/settings/apply', same)).changed, [])
  await ok(200, 'POST', '/destinations/crm/disable')
  const history = await run(['history', '--destination', 'crm', '--json'])
  const entries = history.stdout.trim().split('\n')
  assert.deepEqual(
    entries.map((line) => (JSON.parse(line) as { actor: string; type: string }).actor),
    ['ADMIN_TOKEN', terminal],
  )
  const shown = [applied, dry, exported, history].map(({ stdout, stderr }) => stdout + stderr).join('')
  for (const secret of Object.values(env)) assert.ok(!shown.includes(secret))
})

test('a fault in the third destination changes nothing, and is named with its line', async (t) => {
  const deployment = await deploy(t)
  const { file, run } = await settingsCommands(t, deployment)
  const destination = (id: string, url: string) =>
    `  - { id: ${id}, name: ${id}, sourceIds: [shop], urls: [{ url: "${url}" }] }\n`
  const good = 'https://a.example/'
  const path = await file(
    `sources:\n  - { id: shop, name: Shop }\ndestinations:\n` +
      destination('one', good) +
      destination('two', good) +
      destination('three', 'ftp://a.example/') +
      destination('Four', good),
  )
  const { status, stdout, stderr } = await run(['apply', path])
  assert.equal(status, 2)
  assert.equal(stdout, '')
  assert.match(
    stderr,
    /^postrider: \S+:6: destinations\.2\.urls: destination "three": URL 1 [^\n]+\n\S+:7: destinations\.3\.id: [^\n]+\n$/,
  )
  const broken = await run(['apply', '-'], { input: 'sources:\n  - id: shop\n    nmae: Shop\n    id: web\n' })
  assert.equal(broken.status, 2)
  assert.match(broken.stderr, /^postrider: stdin:\d: /)
  const unknown = await run(['apply', '-'], { input: 'sources:\n  - id: shop\n    nmae: Shop\n' })
  assert.match(
    unknown.stderr,
    /stdin:2: sources\.0\.name: is missing\nstdin:3: sources\.0\.nmae: there is no such field\n/,
  )
  await deployment.settings.catchUp()
  assert.equal(deployment.settings.state.version, 0)

  const { call } = await startConsole(deployment)
  const crm = { id: 'crm', name: 'CRM', sourceIds: ['none'], urls: [{ url: good }] }
  const settings = {
    sources: [{ id: 'shop', name: 'Shop' }],
    destinations: [{ ...crm, sourceIds: ['shop'] }, crm],
  }
  const refused = await call('POST', '/settings/apply', { json: { settings } })
  assert.equal(refused.status, 400)
  assert.deepEqual(
    (refused.body as unknown as { fields: { field: string }[] }).fields.map(({ field }) => field),
    ['settings.destinations.1.id'],
  )
})

test('of two applies at once one counts as a whole, and the other is told who was first', async (t) => {
  const deployment = await deploy(t)
  const { kafka, topics, codecs, secrets } = deployment
  const open = async (actor: string) => {
    const log = new SettingsLog({
      kafka,
      topic: topics.settings,
      codec: codecs.settings,
      log: silentLog,
      actor: () => actor,
    })
    deployment.endFirst(() => log.close())
    await log.start(AbortSignal.timeout(20_000))
    return log
  }
  const logs = { ada: await open('ada'), bob: await open('bob') }
  const fileOf = (name: string) =>
    settingsFile.parse({
      sources: [
        { id: 'shop', name: `Shop of ${name}` },
        { id: name, name },
      ],
    })
  // Both see the same version, and neither has read what the other writes.
  const names = ['ada', 'bob'] as const
  const results = await Promise.allSettled(
    names.map((name) =>
      applySettings(
        fileOf(name),
        new Map(),
        { dryRun: false, prune: false },
        { settings: logs[name], secrets, schemaRefusal: () => null },
      ),
    ),
  )
  const winner = names[results.findIndex(({ status }) => status === 'fulfilled')]!
  const loser = results.find((result) => result.status === 'rejected')!
  await deployment.settings.catchUp()
  const { state } = deployment.settings
  assert.equal(state.version, 1)
  assert.deepEqual([...state.sources.keys()], ['shop', winner])
  assert.equal(state.sources.get('shop')!.name, `Shop of ${winner}`)
  const { code, message } = loser.reason as { code: string; message: string }
  assert.equal(code, 'conflict')
  assert.match(
    message,
    new RegExp(`^${winner} changed the settings first at \\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z `),
  )

  const { call } = await startConsole(deployment)
  const late = await call('POST', '/settings/apply', { json: { settings: {}, expectedVersion: 0 } })
  assert.equal(late.status, 409)
  assert.match(String(late.body.message), new RegExp(`^${winner} changed the settings first`))
})

test('a private address is refused alike by commands, files and the API of processes that do not allow it, and stays where it is', async (t) => {
  const deployment = await deploy(t)
  await deployment.destination({ urls: ['http://10.1.2.3/hook'] })
  const { file, run } = await settingsCommands(t, deployment)
  const refusal = 'the address 10.1.2.3 is not allowed (private): WEBHOOK_ALLOWED_NETWORKS allows networks'
  const command = (env: Record<string, string>, ...args: string[]) =>
    runCommand(t, { ...deployment, env: { ...deployment.env, ...env } } as Deployment, '', ...args)
  const create = ['destinations', 'create', '--id', 'two', '--name', 'Two', '--source', 'shop']
  const refused = [
    await command({}, ...create, '--url', 'https://a.example/', '--url', 'http://10.1.2.3:8080/'),
    await command(
      {},
      'destinations',
      'update',
      'crm',
      '--url',
      'http://10.1.2.3/hook',
      '--url',
      'http://10.1.2.3/',
    ),
  ]
  for (const { status, stderr } of refused)
    assert.deepEqual([status, stderr], [2, `postrider: URL 2: ${refusal}\n`])
  const path = await file(yamlOf('http://10.1.2.3/'))
  for (const args of [
    ['apply', path, '--dry-run'],
    ['apply', path],
  ]) {
    const { status, stderr } = await run(args, {
      env: { POSTRIDER_SECRET_TEAM: 'blue', POSTRIDER_SECRET_OF_CRM: 's3cret' },
    })
    assert.equal(status, 2)
    assert.equal(stderr, `postrider: ${path}:9: destinations.0.urls: destination "crm": URL 1: ${refusal}\n`)
  }
  const { call } = await startConsole(deployment)
  const body = { name: 'Three', sourceIds: ['shop'], urls: [{ url: 'http://10.1.2.3/' }] }
  const answer = await call('POST', '/destinations', { json: { id: 'three', ...body } })
  assert.equal(answer.status, 400, answer.text)
  assert.deepEqual(answer.body.fields, [{ field: 'urls', message: `URL 1: ${refusal}` }])

  await deployment.settings.catchUp()
  assert.deepEqual([...deployment.settings.state.destinations.keys()], ['crm'])
  // What is there may be changed by a process that would not allow it, and its export applies.
  const renamed = await command({}, 'destinations', 'update', 'crm', '--name', 'Inside')
  assert.equal(renamed.status, 0, renamed.stderr)
  const exported = await run(['export'])
  const again = await run(['apply', '-'], { input: exported.stdout })
  assert.equal(again.status, 0, again.stderr)
  const allowed = await command(
    { WEBHOOK_ALLOWED_NETWORKS: '10.0.0.0/8' },
    ...create,
    '--url',
    'http://10.1.2.3:8080/',
  )
  assert.equal(allowed.status, 0, allowed.stderr)
})

test('a file cannot have settings of Postrider, nor any variable that nobody meant for it, sent to its URLs', async (t) => {
  const deployment = await deploy(t)
  const receiver = await startReceiver(t)
  const { file, run } = await settingsCommands(t, deployment)
  const header = (variable: string) =>
    file(yamlOf(receiver.url).replace('${POSTRIDER_SECRET_TEAM}', `\${${variable}}`))
  const env = {
    POSTRIDER_SECRET_OF_CRM: 's3cret',
    CI_DEPLOY_TOKEN: 'of-the-pipeline',
    KAFKA_SASL_PASSWORD_FILE: '',
    ADMIN_TOKEN: 'a'.repeat(40),
  }
  const refusals: [variable: string, flags: string[], message: string][] = [
    ['SECRETS_KEY', [], 'SECRETS_KEY is a setting of Postrider, and no file can refer to it'],
    ['ADMIN_TOKEN', ['--secret-prefix', 'ADMIN_'], 'ADMIN_TOKEN is a setting of Postrider, .*'],
    ['SECRETS_KEY_FILE', ['--secret-prefix', 'SECRETS'], 'SECRETS_KEY_FILE is a setting of Postrider, .*'],
    [
      'CI_DEPLOY_TOKEN',
      [],
      'CI_DEPLOY_TOKEN does not begin with POSTRIDER_SECRET_: rename .* --secret-prefix .*',
    ],
    ['CI_DEPLOY_TOKEN', ['--secret-prefix', 'CRM_'], 'CI_DEPLOY_TOKEN does not begin with .*'],
    // Whether it is set, too, is not the file's to learn.
    ['HOME', [], 'HOME does not begin with .*'],
    ['NOT_SET_HERE', [], 'NOT_SET_HERE does not begin with .*'],
  ]
  for (const [variable, flags, message] of refusals) {
    const { status, stdout, stderr } = await run(['apply', await header(variable), ...flags], { env })
    assert.deepEqual([status, stdout], [2, ''], variable)
    assert.match(
      stderr,
      new RegExp(`^postrider: \\S+:12: destinations\\.0\\.urls\\.0\\.headers\\.X-Team: ${message}\\n$`),
    )
  }
  for (const prefix of ['', 'A', '1AB', 'A B_'])
    assert.equal((await run(['apply', '-', '--secret-prefix', prefix])).status, 2, prefix)
  await deployment.settings.catchUp()
  assert.equal(deployment.settings.state.version, 0)

  const meant = await run(
    ['apply', await header('CI_DEPLOY_TOKEN'), '--secret-prefix', 'CRM_', '--secret-prefix', 'CI_DEPLOY_'],
    { env },
  )
  assert.equal(meant.status, 0, meant.stderr)
  await deployment.forwarder()
  await deployment.produce([someCall()])
  const [request] = await receiver.waitFor(1, 30_000)
  assert.equal(request!.headers['x-team'], 'of-the-pipeline')
})
