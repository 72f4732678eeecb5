import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { test } from 'node:test'
import { installPatches, patches } from '../../../../src/adapters/kafka/patches/index.ts'
import { PostriderError } from '../../../../src/errors.ts'
import { bareEnv } from '../../../support/deployment/bare-env.ts'

const root = join(import.meta.dirname, '../../../..')
const require = createRequire(import.meta.url)
const load = (file: string): unknown => require(`kafkajs/${file}`)

/** What stands at a path within what a file of kafkajs exports, and whose it is. */
function memberAt(file: string, path: string): { owner: Record<string, unknown>; name: string } {
  const names = path.split('.')
  const name = names.pop()!
  const owner = names.reduce((value, each) => (value as Record<string, unknown>)[each], load(file))
  return { owner: owner as Record<string, unknown>, name }
}

const members = patches.flatMap(({ name, targets }) =>
  targets.flatMap(({ file, members }) =>
    Object.keys(members)
      .filter((path) => path !== '')
      .map((path) => ({ patch: name, file, path })),
  ),
)
const current = () =>
  members.map(({ file, path }) => {
    const { owner, name } = memberAt(file, path)
    return owner[name]
  })
const untouched = current()

const refused = (message: RegExp) => (error: unknown) => {
  assert.ok(error instanceof PostriderError)
  assert.equal(error.code, 'setup')
  assert.match(error.message, message)
  assert.ok(!error.message.includes('\n'))
  assert.match(error.message, /install kafkajs 2\.2\.4 as it was published/)
  return true
}

// First: after this file's last test kafkajs is patched.
test('every patch refuses another version of kafkajs and changes nothing', () => {
  for (const version of ['2.2.3', '2.2.5', '2.3.0-beta.1']) {
    const faked = (file: string) => (file === 'package.json' ? { version } : load(file))
    assert.throws(
      () => installPatches(faked),
      refused(
        new RegExp(
          `^kafkajs ${version} is installed.*stop-idle-spin.*end-fetchers-when-stopped.*exactly 2\\.2\\.4`,
        ),
      ),
    )
  }
  assert.deepEqual(current(), untouched)
})

test('each member that a patch relies on is checked, and a missing one is named with its patch', () => {
  assert.ok(members.length > 8)
  for (const { file, path } of members) {
    const { owner, name } = memberAt(file, path)
    const original = owner[name]
    // Of several patches that rely on it the first is named.
    const { patch } = members.find((each) => each.file === file && each.path === path)!
    try {
      for (const [value, kind] of [
        [undefined, 'missing'],
        ['text', 'string'],
      ]) {
        owner[name] = value
        assert.throws(
          () => installPatches(),
          refused(
            new RegExp(`^Postrider's patch ${patch} does not fit.* 2\\.2\\.4: ${path} of ${file} is ${kind}`),
          ),
        )
      }
    } finally {
      owner[name] = original
    }
  }
  assert.deepEqual(current(), untouched)
})

test('each field that a patch relies on and that kafkajs sets in a constructor is checked too', () => {
  const fields = patches.flatMap(({ name, targets }) =>
    targets.flatMap(({ file, fields }) =>
      Object.keys(fields?.kinds ?? {})
        .filter((field) => !field.includes('.'))
        .map((field) => ({ patch: name, file, field })),
    ),
  )
  assert.ok(fields.length > 8)
  for (const { file, field } of fields) {
    const Original = load(file) as new (...args: unknown[]) => Record<string, unknown>
    class Without extends Original {
      constructor(...args: unknown[]) {
        super(...args)
        delete this[field]
      }
    }
    const { patch } = fields.find((each) => each.file === file && each.field === field)!
    assert.throws(
      () => installPatches((asked) => (asked === file ? Without : load(asked))),
      refused(new RegExp(`patch ${patch} .*the field ${field} that ${file} sets is missing`)),
    )
  }
  assert.deepEqual(current(), untouched)
})

test('a missing file and a class that cannot be constructed are named too', () => {
  const without = (file: string) => {
    if (file === 'src/network/connection') throw new Error('Cannot find module')
    return load(file)
  }
  assert.throws(
    () => installPatches(without),
    refused(
      /patch discard-partial-response .*src\/network\/connection cannot be loaded \(Cannot find module\)/,
    ),
  )
  const broken = (file: string) => {
    const exported = load(file)
    if (file !== 'src/network/connection') return exported
    return class extends (exported as new () => object) {
      constructor() {
        super()
        throw new Error('needs a host')
      }
    }
  }
  assert.throws(
    () => installPatches(broken),
    refused(/patch discard-partial-response .*src\/network\/connection cannot be constructed \(/),
  )
  assert.deepEqual(current(), untouched)
})

test('a process with an incompatible kafkajs ends with exit code 1 and one line', () => {
  const prelude = `
    import { createRequire } from 'node:module'
    const require = createRequire(${JSON.stringify(join(root, 'package.json'))})`
  const fakes: [string, RegExp, string[][]][] = [
    [
      `require('kafkajs/package.json').version = '2.3.0'`,
      /^postrider: kafkajs 2\.3\.0 is installed/,
      [['forwarder'], ['collector'], ['console'], ['setup'], ['sources', 'list']],
    ],
    [
      `delete require('kafkajs/src/consumer/consumerGroup').prototype.joinAndSync`,
      /^postrider: Postrider's patch wait-before-join does not fit/,
      [['forwarder']],
    ],
  ]
  for (const [fake, message, commands] of fakes) {
    for (const command of commands) {
      const script = `data:text/javascript,${encodeURIComponent(`${prelude}\n${fake}`)}`
      const { status, stdout, stderr } = spawnSync(
        process.execPath,
        ['--import', script, join(root, 'src/main.ts'), ...command],
        {
          cwd: '/',
          encoding: 'utf8',
          env: {
            ...bareEnv,
            METRICS_PORT: '0',
            COLLECTOR_PORT: '0',
            CONSOLE_PORT: '0',
            KAFKA_BROKERS: '127.0.0.1:1',
          },
        },
      )
      assert.equal(status, 1, command.join(' '))
      assert.equal(stdout, '', command.join(' '))
      assert.match(stderr, message, command.join(' '))
      assert.equal(stderr.trimEnd().split('\n').length, 1, stderr)
    }
  }
})

test('the patches are installed once, however often they are requested', () => {
  installPatches()
  const installed = current()
  assert.notDeepEqual(installed, untouched)
  installPatches()
  installed.forEach((member, index) => assert.equal(current()[index], member))
})
