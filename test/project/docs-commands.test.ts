import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { freePort } from '../../src/local/ports.ts'
import { bareEnv } from '../support/deployment/bare-env.ts'
import { startCollector } from '../support/calls/collectors.ts'
import { deploy, type Deployment } from '../support/deployment/deployment.ts'
import { until } from '../support/until.ts'
import { codeBlocks, root } from '../support/docs.ts'
import { temporaryFolder } from '../support/deployment/rig.ts'

/** Runs blocks of commands as a user in a checkout does: `npx` finds this checkout's commands and its Node. */
class Shell {
  readonly #deployment: Deployment
  readonly #folder: string
  readonly #env: Record<string, string>

  private constructor(deployment: Deployment, folder: string, env: Record<string, string>) {
    this.#deployment = deployment
    this.#folder = folder
    this.#env = env
  }

  static async open(
    t: TestContext,
    deployment: Deployment,
    more: Record<string, string> = {},
  ): Promise<Shell> {
    const folder = await temporaryFolder(t)
    const npx = `#!/bin/sh
case "$1" in
  postrider) shift; exec '${process.execPath}' '${root}/src/main.ts' "$@" ;;
  node) shift; cd '${root}' && exec '${process.execPath}' "$@" ;;
esac
exit 64
`
    await writeFile(join(folder, 'npx'), npx, { mode: 0o700 })
    const env = {
      ...bareEnv,
      ...deployment.env,
      PATH: `${folder}:${process.env.PATH}`,
      STORE_PATH: join(folder, 'store'),
      ...more,
    }
    return new Shell(deployment, folder, env)
  }

  write(name: string, text: string): Promise<void> {
    return writeFile(join(this.#folder, name), text, { mode: 0o600 })
  }

  start(script: string) {
    const child = spawn('sh', ['-e', '-c', script], { cwd: this.#folder, env: this.#env, detached: true })
    let written = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => (written += text))
    const ended = once(child, 'close')
    this.#deployment.endFirst(async () => {
      if (child.exitCode !== null || child.signalCode !== null) return
      // The shell and what it runs are a group of processes of their own.
      process.kill(-child.pid!, 'SIGKILL')
      await ended
    })
    return { child, written: () => written }
  }

  /** Runs it to its end, which must be a good one. */
  async run(script: string): Promise<string> {
    const { child, written } = this.start(script)
    const [status] = (await once(child, 'close')) as [number]
    assert.equal(status, 0, `${script}\n${written()}`)
    return written()
  }
}

const replaced = (script: string, texts: Record<string, string>): string => {
  for (const [text, by] of Object.entries(texts)) {
    assert.ok(script.includes(text), `${text} is in:\n${script}`)
    script = script.replaceAll(text, by)
  }
  return script
}

/** The block of a page that has this text. */
const blockWith = (page: string, text: string): string => {
  const found = codeBlocks('sh', [page]).filter((code) => code.includes(text))
  assert.equal(found.length, 1, `${page}: blocks with ${text}`)
  return found[0]!
}

const missing = ['openssl', 'curl', 'awk'].filter((name) => spawnSync(name, ['--version']).error)
const skip = missing.length > 0 && `there is no ${missing.join(', ')}`

test(
  'the commands in README.md send calls in three ways and deliver them to a destination',
  { skip },
  async (t) => {
    const deployment = await deploy(t)
    const collector = await startCollector(deployment)
    await deployment.forwarder()
    const shell = await Shell.open(t, deployment)
    const port = await freePort()
    const receiver = shell.start(
      replaced(blockWith('README.md', 'npx postrider receive'), { 4000: String(port) }),
    )
    await until(() => receiver.written().includes(String(port)), 30_000)
    await shell.run(
      replaced(blockWith('README.md', 'destinations create'), {
        'http://127.0.0.1:4000': `http://127.0.0.1:${port}`,
      }),
    )
    await until(() => /identify +u-1 .*signature verified/.test(receiver.written()), 30_000)

    await shell.run('npx postrider sources create --id demo --name Demo')
    await shell.run('npx postrider destinations update crm --source demo')
    const http = replaced(blockWith('README.md', 'export WRITE_KEY'), {
      'http://127.0.0.1:8080': collector.url,
    })
    const client = replaced(blockWith('README.md', 'npx node --input-type=module'), {
      'process.env.WRITE_KEY': `process.env.WRITE_KEY, { endpoint: '${collector.url}' }`,
    })
    assert.match(await shell.run(`${http}\n${client}`), /"success":true/)
    await shell.run(blockWith('README.md', 'produce --source demo'))
    await until(
      () => (receiver.written().match(/track +me .*signature verified/g) ?? []).length === 3,
      30_000,
    )

    const tail = shell.start('npx postrider tail demo')
    // It shows what comes from its start on.
    let sent = 0
    await until(
      async () => {
        const call = `{"type":"identify","userId":"tail","messageId":"tail-${sent++}"}`
        await shell.run(`echo '${call}' | npx postrider produce --source demo`)
        return / tail-\d+$/m.test(tail.written())
      },
      60_000,
      'a call with its messageId in the tail',
    )
    const find = blockWith('docs/troubleshooting.md', 'npx postrider why')
    const [send, ask] = replaced(find, { 'http://127.0.0.1:8080': collector.url }).split('\n')
    assert.match(await shell.run(`${http}\n${send}`), /^HTTP\/1\.1 200 /m)
    await until(
      async () => /^=> crm: delivered/m.test(await shell.run(ask!).catch(() => '')),
      60_000,
      'that `why` says that it was delivered',
    )
  },
)

test(
  'the commands in docs/ for settings, audiences, deletions, dead letters and the ledger succeed',
  { skip },
  async (t) => {
    const deployment = await deploy(t)
    await deployment.forwarder()
    const shell = await Shell.open(t, deployment)
    const port = await freePort()
    const page = 'docs/destinations.md'
    const receiver = shell.start(replaced(blockWith(page, 'npx postrider receive'), { 4000: String(port) }))
    await until(() => receiver.written().includes(String(port)), 30_000)
    const create = replaced(blockWith(page, 'destinations create'), {
      'http://127.0.0.1:4000': `http://127.0.0.1:${port}`,
    })
    assert.match(await shell.run(create), /crm/)
    await shell.run(`npx postrider destinations enable crm\n${blockWith(page, '--deliver-to every')}`)

    await shell.write('new-secret', 'another-secret')
    const shown = JSON.parse(await shell.run('npx postrider destinations show crm --json')) as object
    const [, fingerprint] = /"fingerprint":"([^"]+)"/.exec(JSON.stringify(shown)) ?? []
    assert.ok(fingerprint, JSON.stringify(shown))
    await shell.run(replaced(blockWith(page, '--add-secret-file'), { FINGERPRINT: fingerprint }))

    await shell.run(blockWith('docs/audiences.md', 'audiences create'))
    await shell.run(blockWith('docs/audiences.md', 'traits create'))

    await shell.write('users.txt', 'u-3\nu-4\n')
    const requested = await shell.run('npx postrider delete-user u-9 --json')
    const [, request] = /"id":"([^"]+)"/.exec(requested) ?? []
    assert.ok(request, requested)
    await shell.run(
      replaced(blockWith('docs/privacy.md', 'delete-user u-1'), { 'show ID': `show ${request}` }),
    )

    // A call that its destination refuses, so that there is a dead letter.
    const refusing = await freePort()
    const refuser = shell.start(`npx postrider receive --port ${refusing} --status 400`)
    await until(() => refuser.written().includes(String(refusing)), 30_000)
    await shell.run(
      `npx postrider destinations create --id broken --name Broken --source shop --url http://127.0.0.1:${refusing}/\n` +
        `echo '{"type":"track","userId":"u-7","event":"E","messageId":"m-7"}' | npx postrider produce --source shop`,
    )
    await until(async () => (await deployment.deadLetters()).length > 0, 30_000)
    const listed = await shell.run('npx postrider dead-letters list --json')
    const [, letter] = /"id":"([^"]+)"/.exec(listed) ?? []
    assert.ok(letter, listed)
    await shell.run(
      replaced(blockWith('docs/delivery.md', 'dead-letters list'), { 'show ID': `show ${letter}` }),
    )

    await deployment.drained()
    const [, once, since] = /(.*)\n(.*)\n.*--follow/.exec(blockWith('docs/audit.md', 'npx postrider audit'))!
    assert.match(await shell.run(once!), /everything is accounted for/)
    await shell.run(since!)
    const why = await shell.run(
      replaced(blockWith('docs/audit.md', 'npx postrider why'), { MESSAGE_ID: 'm-7' }),
    )
    assert.match(why, /dead/)
  },
)

test('the commands in README.md and docs/operations.md set up and run all parts', { skip }, async (t) => {
  const deployment = await deploy(t)
  const ports = { COLLECTOR_PORT: '0', CONSOLE_PORT: '0', METRICS_PORT: '0' }
  const shell = await Shell.open(t, deployment, ports)
  const block = blockWith('README.md', 'npx postrider run ')
  assert.equal(block, blockWith('docs/operations.md', 'npx postrider run '))
  const commands = replaced(block, {
    'kafka-1:9092,kafka-2:9092': deployment.env.KAFKA_BROKERS!,
    'https://registry:8081': deployment.env.SCHEMA_REGISTRY_URL!,
  })
  // A user's shell has no key yet.
  const run = shell.start(`unset SECRETS_KEY\n${commands}`)
  const started = /metrics at http:\/\/localhost:(\d+)/
  await until(() => run.written().includes('admin API at') && started.test(run.written()), 60_000)
  const [, port] = started.exec(run.written())!
  await until(async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).status === 200, 60_000)
  // The same block again keeps the keys.
  const makeKeys = block.split('\n')[0]!
  assert.match(makeKeys, /^mkdir .*secrets_key.*admin_token$/)
  const ls = 'ls -l .secrets && cat .secrets/*'
  const before = await shell.run(ls)
  assert.equal(before.match(/^[0-9a-f]{64}$/gm)?.length, 2)
  assert.ok(blockWith('docs/configuration.md', 'secrets_key').startsWith(`${makeKeys}\n`))
  assert.ok(blockWith('docs/operations.md', 'docker compose up').startsWith(`${makeKeys}\n`))
  assert.equal(await shell.run(`(${makeKeys}) 2> /dev/null || ${ls}`), before)
})
