import assert from 'node:assert/strict'
import { accessSync, constants, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { test, type TestContext } from 'node:test'
import { versionOf } from '../src/version.ts'
import { runHere } from './support/deployment/program-here.ts'

const main = fileURLToPath(new URL('../src/main.ts', import.meta.url))

/** Runs the CLI as a user would, outside of any checkout. */
const postrider = (t: TestContext, ...args: string[]) => runHere(t, args, { env: {}, cwd: '/' })

const commands = [
  'dev',
  'setup',
  'forwarder',
  'run',
  'produce',
  'receive',
  'sources',
  'destinations',
  'delete-user',
  'deletions',
  'dead-letters',
]

test('help lists every command, and each command has its own help', async (t) => {
  const { status, stdout } = await postrider(t, '--help')
  assert.equal(status, 0)
  for (const name of commands) assert.match(stdout, new RegExp(`^  ${name} {2,}\\S`, 'm'))
  for (const name of commands) {
    const help = await postrider(t, name, '--help')
    assert.deepEqual([help.status, help.stderr], [0, ''], name)
    assert.match(help.stdout, new RegExp(`^Usage: postrider ${name}`))
    assert.match(help.stdout, /--kafka-brokers/, 'global flags are shown')
  }
})

test('help is wrapped where the terminal ends, and nowhere else', async (t) => {
  for (const name of ['collector', 'forwarder', 'console', 'run']) {
    const { stdout } = await postrider(t, name, '--help')
    const [, description] = stdout.split('\n\n')
    const lines = description!.split('\n')
    // Each line is as full as the first word of the next one lets it be.
    lines
      .slice(1)
      .forEach((line, index) =>
        assert.ok(lines[index]!.length + 1 + line.split(' ')[0]!.length >= 80, `${name}: ${lines[index]}`),
      )
  }
  assert.match((await postrider(t, 'console', '--help')).stdout, /web console/)
})

test('only update has flags that take something away', async (t) => {
  const create = await postrider(t, 'destinations', 'create', '--help')
  const update = await postrider(t, 'destinations', 'update', '--help')
  for (const flag of ['--no-events', '--no-where', '--no-drop', '--remove-header', '--remove-secret']) {
    assert.ok(!create.stdout.includes(flag), flag)
    assert.ok(update.stdout.includes(flag), flag)
  }
})

test('the commands for deletions say which sources they affect', async (t) => {
  for (const name of ['delete-user', 'deletions']) {
    const { stdout } = await postrider(t, name, '--help')
    const help = stdout.replace(/\s+/g, ' ')
    assert.match(help, /[Aa]ffect.*all.*whether a source ever had a call of a user is not looked at/, name)
  }
})

test('the version is the package’s', async (t) => {
  const version = versionOf(fileURLToPath(new URL('..', import.meta.url)))
  for (const flag of ['--version', '-v']) assert.equal((await postrider(t, flag)).stdout.trim(), version)
})

test('wrong usage gets one line that says what to do, and exit code 2', async (t) => {
  const cases: [args: string[], line: RegExp][] = [
    [
      ['dead-letter'],
      /^postrider: unknown command 'dead-letter' \(Did you mean dead-letters\?\)\. See `postrider --help`$/,
    ],
    [
      ['dead-letters', 'lst'],
      /^postrider: unknown command 'lst' \(Did you mean list\?\)\. See `postrider dead-letters --help`$/,
    ],
    [
      ['destinations', 'create', '--name', 'CRM'],
      /^postrider: required options '--id <id>', '--source <id>', '--url <url>' not specified\. See `postrider destinations create --help`$/,
    ],
    [
      ['tokens', 'create', '--name', 'ci'],
      /^postrider: required option '--role <role>' not specified\. See `postrider tokens create --help`$/,
    ],
    [
      ['tokens', 'create', '--name', 'ci', '--role', 'root'],
      /^postrider: option '--role <role>' argument 'root' is invalid\. Allowed choices are reader, operator, admin\. See `postrider tokens create --help`$/,
    ],
    [
      ['sources', 'add'],
      /^postrider: unknown command 'add' \(Did you mean create\?\)\. See `postrider sources --help`$/,
    ],
    [
      ['destinations', 'delete', 'crm'],
      /^postrider: unknown command 'delete' \(ids are never used again, so nothing is deleted: `postrider destinations disable`\)\. See `postrider destinations --help`$/,
    ],
    [
      ['tokens', 'rm', 'ci'],
      /^postrider: unknown command 'rm' \(Did you mean revoke\?\)\. See `postrider tokens --help`$/,
    ],
    [['deletions', 'shred'], /^postrider: unknown command 'shred'\. See `postrider deletions --help`$/],
    [['setup', '--foo'], /^postrider: unknown option '--foo'\. See `postrider setup --help`$/],
    [['--kafka-brokers', 'x', 'dead-letters', 'list'], /^postrider: --kafka-brokers is "x"/],
    [['dead-letters', 'list', '--kafka-brokers', 'x'], /^postrider: --kafka-brokers is "x"/],
  ]
  for (const [args, line] of cases) {
    const { status, stdout, stderr } = await postrider(t, ...args)
    assert.deepEqual([status, stdout], [2, ''], args.join(' '))
    assert.match(stderr.trimEnd(), line)
    assert.equal(stderr.trimEnd().split('\n').length, 1)
  }
})

test('without a command the usage is printed, with exit code 2', async (t) => {
  const { status, stderr } = await postrider(t)
  assert.equal(status, 2)
  assert.match(stderr, /^Usage: postrider/)
})

test('the entry file is executable', () => {
  accessSync(main, constants.X_OK)
  assert.match(readFileSync(main, 'utf8'), /^#!\/usr\/bin\/env node\n/)
})
