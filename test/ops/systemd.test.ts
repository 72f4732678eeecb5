// There is no systemd where tests run: its own tools check the units, and what they say is done by hand.
import assert from 'node:assert/strict'
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { cp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { variableNames } from '../../src/config/variables.ts'
import { freePort } from '../../src/local/ports.ts'
import { deploy } from '../support/deployment/deployment.ts'
import { temporaryFolder } from '../support/deployment/rig.ts'
import { codeBlocks, readPage, root } from '../support/docs.ts'
import { needed } from '../support/ops/tools.ts'
import { until } from '../support/until.ts'

const units = join(root, 'ops/systemd')
const unit = 'postrider@.service'
const parts = ['collector', 'forwarder', 'console']
const instances = ['setup', ...parts]

const { skip, path } = needed('systemd-analyze')

/** The page's own: the settings of all parts, and the drop-in that gives them a file. */
const [settings, dropIn, ...otherFiles] = codeBlocks('ini', ['docs/systemd.md'])

/** A copy in which the program is this machine's, and with the page's drop-in. */
async function unitFolder(t: TestContext): Promise<string> {
  const folder = join(await temporaryFolder(t), 'system')
  await cp(units, folder, { recursive: true })
  const text = await readFile(join(folder, unit), 'utf8')
  assert.ok(text.includes('/usr/bin/node '))
  await writeFile(join(folder, unit), text.replace('/usr/bin/node ', `${process.execPath} `))
  mkdirSync(join(folder, `${unit}.d`))
  await writeFile(join(folder, `${unit}.d/files.conf`), dropIn!)
  return folder
}

test('systemd accepts the units, and each part is confined', { skip }, async (t) => {
  const folder = await unitFolder(t)
  const analyze = (...args: string[]) => {
    const env = { PATH: process.env.PATH, SYSTEMD_UNIT_PATH: `${folder}:` }
    const { status, stderr } = spawnSync(path('systemd-analyze'), args, { env, encoding: 'utf8' })
    return [status, stderr]
  }
  for (const instance of instances) {
    const name = unit.replace('@', `@${instance}`)
    // It warns of what it does not know.
    assert.deepEqual(analyze('verify', '--man=no', name), [0, ''])
    // Its exposure, of 10: a unit that says nothing has 9.6.
    assert.equal(analyze('security', '--offline=yes', '--threshold=20', name)[0], 0)
  }
})

test('each file that a setting names is a credential of the same drop-in, for no part may read /etc/postrider', () => {
  assert.ok(dropIn && otherFiles.length === 0)
  const files = readdirSync(units, { recursive: true, encoding: 'utf8' })
  const ours = files.filter((file) => file.endsWith('.conf'))
  assert.ok(ours.length > 2)
  for (const text of [dropIn, ...ours.map((file) => readFileSync(join(units, file), 'utf8'))]) {
    const loaded = [...text.matchAll(/^LoadCredential=(.+):\/etc\/postrider\/.+$/gm)].map(([, name]) => name)
    const named = [...text.matchAll(/^Environment=(.*)$/gm)].flatMap(([, line]) => line!.split(' '))
    const credentials = named.map((assignment) => {
      const [, variable, name] = /^(\w+)_FILE=%d\/(\S+)$/.exec(assignment)!
      assert.ok(
        variableNames.some((each) => [variable, `${variable}_FILE`].includes(each)),
        assignment,
      )
      return name
    })
    assert.deepEqual(credentials, loaded)
  }
  assert.match(readPage('docs/systemd.md'), /`KAFKA_SSL_CA_FILE=\/etc\/postrider\/kafka-ca\.pem`/)
})

/** The values of one directive of an instance, in their order. A drop-in adds to lists. */
function directives(instance: string): (name: string) => string[] {
  const dropIns = join(units, unit.replace('@', `@${instance}`).concat('.d'))
  const files = existsSync(dropIns) ? readdirSync(dropIns).map((file) => join(dropIns, file)) : []
  const lines = [join(units, unit), ...files].flatMap((file) => readFileSync(file, 'utf8').split('\n'))
  return (name) =>
    lines.filter((line) => line.startsWith(`${name}=`)).map((line) => line.slice(name.length + 1))
}

/** Does what the unit says, in a folder that stands for `/`. */
function start(instance: string, folder: string): ChildProcess & { written(): string } {
  const of = directives(instance)
  const credentials = join(folder, 'run/credentials', instance)
  mkdirSync(credentials, { recursive: true })
  const expand = (text: string) =>
    text
      .replaceAll('%i', instance)
      .replaceAll('%d', credentials)
      .replaceAll('%S', join(folder, 'var/lib'))
      .replaceAll('/etc/postrider', join(folder, 'etc/postrider'))
      .replace('/opt/postrider/node_modules/postrider/src/main.js', join(root, 'dist/src/main.js'))
      .replace('/usr/bin/node', process.execPath)
  for (const credential of of('LoadCredential').map(expand)) {
    const [name, file] = credential.split(':') as [string, string]
    copyFileSync(file, join(credentials, name))
  }
  const files = of('EnvironmentFile').map(expand)
  const assignments = [
    ...of('Environment').flatMap((line) => expand(line).split(' ')),
    ...files.flatMap((file) => {
      const name = file.replace(/^-/, '')
      if (name !== file && !existsSync(name)) return []
      return readFileSync(name, 'utf8')
        .split('\n')
        .filter((line) => /^\w/.test(line))
    }),
  ]
  const env = Object.fromEntries(assignments.map((line) => line.split(/=(.*)/s).slice(0, 2)))
  const [cwd] = of('WorkingDirectory').map(expand)
  mkdirSync(cwd!, { recursive: true })
  const [program, ...args] = of('ExecStart').map(expand)[0]!.split(' ')
  const child = spawn(program!, args, { cwd, env })
  let written = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (written += chunk.toString()))
  return Object.assign(child, { written: () => written })
}

test('each part runs by its unit with the keys that it needs, and ends with SIGTERM', async (t) => {
  const deployment = await deploy(t)
  const folder = await temporaryFolder(t)
  mkdirSync(join(folder, 'etc/postrider'), { recursive: true })
  const etc = (name: string, text: string) => writeFile(join(folder, 'etc/postrider', name), text)
  const { SECRETS_KEY, METRICS_PORT: _, ...env } = deployment.env
  await etc('secrets_key', `${SECRETS_KEY}\n`)
  await etc('admin_token', `${'t'.repeat(64)}\n`)
  // The file of the page, with this deployment's addresses.
  const named = settings!.split('\n').flatMap((line) => /^(\w+)=/.exec(line)?.[1] ?? [])
  assert.deepEqual(named, ['KAFKA_BROKERS', 'SCHEMA_REGISTRY_URL'])
  const lines = Object.entries({ ...env, COLLECTOR_PORT: '0', CONSOLE_PORT: '0' })
  await etc('postrider.env', lines.map(([name, value]) => `${name}=${value}\n`).join(''))

  const setup = start('setup', folder)
  assert.deepEqual(await once(setup, 'close'), [0, null], setup.written())
  for (const part of parts) {
    const port = await freePort()
    await etc(`${part}.env`, `METRICS_PORT=${port}\n`)
    const child = start(part, folder)
    t.after(() => child.kill('SIGKILL'))
    await until(
      async () => {
        assert.equal(child.exitCode, null, child.written())
        return fetch(`http://127.0.0.1:${port}/readyz`).then(
          ({ ok }) => ok,
          () => false,
        )
      },
      60_000,
      `that the ${part} is ready`,
    )
    const keys = readdirSync(join(folder, 'run/credentials', part)).sort()
    assert.deepEqual(
      keys,
      { collector: [], forwarder: ['secrets_key'], console: ['admin_token', 'secrets_key'] }[part],
    )
    child.kill('SIGTERM')
    assert.deepEqual(await once(child, 'close'), [0, null], child.written())
  }
})
