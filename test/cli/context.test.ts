import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { text as readText } from 'node:stream/consumers'
import { test } from 'node:test'
import { Command } from 'commander'
import { loadContext, runAction, settingOption, type ContextOptions } from '../../src/cli/context.ts'
import { withIo } from '../../src/cli/io.ts'
import { print } from '../../src/cli/terminal.ts'
import { PostriderError } from '../../src/errors.ts'
import { bareEnv } from '../support/deployment/bare-env.ts'
import { testIo, type CommandResult } from '../support/deployment/program-here.ts'

const url = (path: string) => JSON.stringify(new URL(`../../src/${path}`, import.meta.url).href)
const imports = `
  import { runAction } from ${url('cli/context.ts')}
  import { guardProcess } from ${url('cli/fail.ts')}
  import { stopSignal } from ${url('cli/io.ts')}
  import { processIo } from ${url('cli/process-io.ts')}
  import { runProgram } from ${url('cli/program.ts')}
`
const nodeArgs = (code: string) => ['--input-type=module-typescript', '-e', imports + code]

/** Runs a command's code in a process of its own, outside of any checkout. */
function run(code: string, env: Record<string, string> = {}) {
  const { status, stdout, stderr } = spawnSync(process.execPath, nodeArgs(code), {
    encoding: 'utf8',
    cwd: '/',
    env: { ...bareEnv, ...env },
  })
  return { status, stdout, stderr }
}

/** Runs a command's code in this process, outside of any checkout. */
async function here(work: () => Promise<void>, env: Record<string, string> = {}): Promise<CommandResult> {
  const io = testIo({ env, cwd: '/' }, new AbortController().signal)
  await withIo(io, work)
  return { status: Number(io.exitCode ?? 0), stdout: io.stdout.text, stderr: io.stderr.text }
}

test('an error in a command becomes one line and an exit code: 2 for wrong usage, else 1', async () => {
  const failing = (error: Error) => here(runAction(() => Promise.reject(error)))
  assert.deepEqual(await failing(new PostriderError('usage', '--rate is "x"; it takes a number')), {
    status: 2,
    stdout: '',
    stderr: 'postrider: --rate is "x"; it takes a number\n',
  })
  assert.deepEqual(await failing(new PostriderError('not_found', 'there is no\n source shop')), {
    status: 1,
    stdout: '',
    stderr: 'postrider: there is no source shop\n',
  })
  const unknown = await failing(new TypeError('x is undefined'))
  assert.equal(unknown.stderr.split('\n').length, 2)
  const away = Object.assign(new Error('connect ECONNREFUSED'), { name: 'KafkaJSConnectionError' })
  const { stderr } = await failing(away)
  assert.match(stderr, /^postrider: Kafka: connect ECONNREFUSED\. Check KAFKA_BROKERS/)
})

test('a failed command ends even if something is still open', () => {
  const { status } = run(`setInterval(() => {}, 1_000); await runAction(() => { throw new Error('x') })()`)
  assert.equal(status, 1)
})

/** Runs a command with a flag of its own, which prints some of its settings. */
const command = (args: string[], env: Record<string, string> = {}, options: ContextOptions = {}) =>
  here(async () => {
    const action = runAction((_flags: unknown, self: Command) => {
      const { config, log } = loadContext(self, options)
      print(JSON.stringify([config.metricsPort, config.groupId, config.logLevel]))
      log.info('an info line')
    })
    await new Command('x')
      .addOption(settingOption('METRICS_PORT'))
      .action(action)
      .parseAsync(args, { from: 'user' })
  }, env)

test('a flag overrides the environment, and an error about its value names the flag', async () => {
  const env = { METRICS_PORT: '1', GROUP_ID: 'g' }
  assert.equal((await command(['--metrics-port', '0'], env)).stdout, '[0,"g","warn"]\n')
  assert.equal((await command([], env)).stdout, '[1,"g","warn"]\n')
  const wrong = await command(['--metrics-port', 'x'], env)
  assert.deepEqual([wrong.status, wrong.stdout], [2, ''])
  assert.match(wrong.stderr, /^postrider: --metrics-port is "x"; it takes a port/)
  const empty = await command(['--metrics-port', ''], env)
  assert.match(empty.stderr, /^postrider: --metrics-port is empty/)
  const inVariable = await command([], { METRICS_PORT: 'x' })
  assert.match(inVariable.stderr, /^postrider: METRICS_PORT is "x"/)
})

test('a one-off command logs warnings and errors on stderr; a long-running one logs at info on stdout', async () => {
  assert.deepEqual(await command([]), { status: 0, stdout: '[9464,"postrider","warn"]\n', stderr: '' })
  const asked = await command([], { LOG_LEVEL: 'info' })
  assert.equal(asked.stdout, '[9464,"postrider","info"]\n')
  assert.match(asked.stderr, /an info line/)
  const longLived = await command([], {}, { longLived: true })
  assert.match(longLived.stdout, /"info"\]\n\{.*an info line/)
})

test('commands that run at the same time in one process do not see each other’s environment, output or exit code', async () => {
  const runs = await Promise.all(
    ['0', 'x', '2'].map((port) => command(['--metrics-port', port], { GROUP_ID: `g${port}` })),
  )
  assert.deepEqual(
    runs.map(({ status, stdout }) => [status, stdout]),
    [
      [0, '[0,"g0","warn"]\n'],
      [2, ''],
      [0, '[2,"g2","warn"]\n'],
    ],
  )
})

test('kafkajs’s stray rejection of a produce request does not end the process; any other stray rejection does', () => {
  const stray = (name: string) =>
    run(`
      guardProcess()
      Promise.reject(Object.assign(new Error('timed out'), { name: '${name}' }))
      setTimeout(() => console.log('still here'), 20)`)
  assert.equal(stray('KafkaJSRequestTimeoutError').stdout, 'still here\n')
  assert.deepEqual(stray('Error'), { status: 1, stdout: '', stderr: 'postrider: a bug: timed out\n' })
})

test('a command whose reader has gone ends if it only shows something, and goes on if it changes something', async (t) => {
  // Without brokers a command ends soon; what it prints then is as much as what it would have printed before.
  const env = {
    ...bareEnv,
    KAFKA_BROKERS: '127.0.0.1:1',
    SCHEMA_REGISTRY_URL: 'http://127.0.0.1:1',
    LOG_LEVEL: 'silent',
  }
  const goesOn = async (...args: string[]): Promise<boolean> => {
    const code = `
      guardProcess()
      await runProgram(${JSON.stringify(args)}, processIo)
      console.log('to nobody')
      setImmediate(() => console.error('goes on'))`
    const child = spawn(process.execPath, nodeArgs(code), { cwd: '/', env, stdio: 'pipe' })
    t.after(() => child.kill('SIGKILL'))
    child.stdout.destroy()
    child.stdin.end()
    return /^goes on$/m.test(await readText(child.stderr))
  }
  assert.deepEqual(
    await Promise.all([
      goesOn('sources', 'list'),
      goesOn('sources', 'enable', 'shop'),
      goesOn('delete-user', 'ada', '--yes'),
      goesOn('produce', '--source', 'shop'),
    ]),
    [false, true, true, true],
  )
})

test('the first signal stops in order, a repeat within half a second is ignored, and a later one ends the process', async (t) => {
  const code = `
    let now = 0
    performance.now = () => now
    stopSignal().addEventListener('abort', () => console.log('stopping'))
    process.on('SIGTERM', () => console.log('goes on at ' + now))
    process.stdin.on('data', (text) => console.log('clock at ' + (now = Number(text))))
    console.log('up')`
  const child = spawn(process.execPath, nodeArgs(code), { cwd: '/', stdio: ['pipe', 'pipe', 'inherit'] })
  t.after(() => child.kill('SIGKILL'))
  const exited = once(child, 'exit')
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const says = async (line: string) => assert.equal((await lines.next()).value, line)
  const signalAt = async (ms: number) => {
    child.stdin.write(String(ms))
    await says(`clock at ${ms}`)
    child.kill('SIGTERM')
  }
  await says('up')
  child.kill('SIGINT')
  await says('stopping')
  await signalAt(1)
  await says('goes on at 1')
  await signalAt(500)
  await says('goes on at 500')
  await signalAt(501)
  assert.deepEqual(await exited, [143, null])
})

test('under npm, whose shell does not pass SIGTERM on, the end of that shell also stops the process', async (t) => {
  const code = `
    const keep = setInterval(() => {}, 1_000)
    stopSignal().addEventListener('abort', () => {
      console.log('stopping')
      clearInterval(keep)
    })
    console.log(process.pid)`
  const shell = spawn('sh', ['-c', '"$@"; exit 0', 'sh', process.execPath, ...nodeArgs(code)], {
    cwd: '/',
    env: { ...bareEnv, npm_lifecycle_event: 'start' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.after(() => shell.kill('SIGKILL'))
  const lines = createInterface({ input: shell.stdout })[Symbol.asyncIterator]()
  const pid = Number((await lines.next()).value)
  t.after(() => {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // Gone, as it should be.
    }
  })
  shell.kill('SIGTERM')
  assert.equal((await lines.next()).value, 'stopping')
  assert.equal((await lines.next()).done, true, 'it ended')
})
