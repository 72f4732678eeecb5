import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { CollectorCounts } from '../../src/adapters/metrics/collector-metrics.ts'
import { ConsoleCounts } from '../../src/adapters/metrics/console-metrics.ts'
import { LogCounts } from '../../src/adapters/metrics/log-counts.ts'
import { ForwarderCounts } from '../../src/adapters/metrics/forwarder-metrics.ts'
import { Analytics } from '../../src/client/index.ts'
import type { AnalyticsOptions } from '../../src/client/index.ts'
import { settingsTable } from '../../src/config/table.ts'
import { variableNames } from '../../src/config/variables.ts'
import { apiErrorCodes } from '../../src/console/api/errors.ts'
import { findCommand } from '../../src/local/java.ts'
import { freePort } from '../../src/local/ports.ts'
import { collectorDouble, writeKey } from '../support/collector-double.ts'
import { until } from '../support/deployment.ts'
import { temporaryFolder } from '../support/rig.ts'
import { bareEnv } from '../support/bare-env.ts'

const root = join(import.meta.dirname, '..', '..')
const readme = readFileSync(join(root, 'README.md'), 'utf8')

/** The code blocks in one language. */
const blocks = (language: string): string[] =>
  [...readme.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, 'gms'))].map(([, code]) => code!)

/** Every command that is named, in a block or in a line: the words after its beginning, up to a pipe or its end. */
function named(beginning: string): string[][] {
  const inBlocks = blocks('sh').flatMap((code) => code.replaceAll('\\\n', ' ').split(/\n|&&|\|/))
  const inLines = [...readme.matchAll(/`([^`\n]+)`/g)].map(([, code]) => code!)
  return [...inBlocks, ...inLines]
    .map((line) => line.replace(/#.*/, '').trim())
    .filter((line) => line.startsWith(`${beginning} `))
    .map((line) => line.slice(beginning.length).trim().split(/\s+/))
}

test('the README’s settings are those that there are', () => {
  const table = /<!-- settings -->(.*)<!-- \/settings -->/s.exec(readme)?.[1]?.trim()
  assert.equal(table, settingsTable(), 'run `node scripts/readme.ts`')
  const besides = [
    'DEV_BROKERS',
    'DEV_KAFKA_PORT',
    'DEV_REGISTRY_PORT',
    'DEV_RECEIVER_PORT',
    'POSTRIDER_CACHE',
    'JAVA_HOME',
  ]
  const names = [...readme.matchAll(/`([A-Z]+_[A-Z_]*[A-Z])`/g)].map(([, name]) => name!)
  const known = [...variableNames, ...variableNames.map((name) => `${name}_FILE`), ...besides]
  assert.deepEqual(
    names.filter((name) => !known.includes(name)),
    [],
  )
})

/** What `postrider <path> --help` prints; asked once for each path. */
const helps = new Map<string, string>()
function helpOf(path: readonly string[]): string {
  const key = path.join(' ')
  const known = helps.get(key)
  if (known !== undefined) return known
  const entry = join(root, 'src', 'main.ts')
  const help = execFileSync(process.execPath, [entry, ...path, '--help'], { cwd: '/', encoding: 'utf8' })
  helps.set(key, help)
  return help
}

test('every command and flag that the README names exists', () => {
  const commands = named('npx postrider')
  assert.ok(commands.length > 15)
  for (const words of commands) {
    const flag = words.findIndex((word) => word.startsWith('-'))
    const path = flag < 0 ? words : words.slice(0, flag)
    const help = helpOf(path)
    assert.ok(help.startsWith(`Usage: postrider ${path[0]}`), words.join(' '))
    assert.ok(path.length === 1 || !/^Commands:/m.test(help), `${path.join(' ')} is no command`)
    for (const word of words.filter((word) => word.startsWith('--')))
      assert.ok(help.includes(`${word} `) || word === '--help', `${words.join(' ')}: ${word}`)
  }
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: object }
  for (const [script] of named('npm run')) assert.ok(script! in scripts, `npm run ${script}`)
  for (const [file] of named('node')) assert.ok(existsSync(join(root, file!)), file)
})

test('every metric that the README names is exposed, and every one exposed is named', () => {
  const counts = new ForwarderCounts()
  counts.destination('crm')
  counts.watch({ inFlight: () => 0, endpoints: () => [], lag: () => [], notSetUp: () => [] })
  const collected = new CollectorCounts()
  collected.calls('shop', 'track', 'accepted', 1)
  const asked = new ConsoleCounts()
  asked.request('listSources', 200)
  const logs = new LogCounts()
  logs.ignored('webhooks.settings')
  const pages = [...counts.expose(), ...logs.expose(), ...collected.expose(), ...asked.expose()]
  const exposed = [...pages.join('').matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name!)
  const inTable = [...readme.matchAll(/^\| `(postrider_\w+)/gm)].map(([, name]) => name!)
  assert.deepEqual(inTable.sort(), exposed.sort())
})

test('the README’s options of the client are those that there are', () => {
  const rows = /\n\| option +\| default .*?\n\n/s.exec(readme)![0]
  const named = [...rows.matchAll(/^\| `(\w+)`/gm)].map(([, name]) => name!)
  const wrong = { none: 1 } as AnalyticsOptions
  // It says which there are.
  assert.throws(
    () => new Analytics('key', wrong),
    ({ message }: Error) => {
      assert.deepEqual(named.sort(), message.split('there are ')[1]!.split(', ').sort())
      return true
    },
  )
})

/** The words in quotes of a type. */
const wordsOf = (file: string, type: RegExp): string[] => {
  const [text] = type.exec(readFileSync(join(root, file), 'utf8'))!
  return [...text.matchAll(/'(\w+)'/g)].map(([, word]) => word!)
}

test('the README names every code that the client, the collector and the console give', () => {
  const codes = [
    ...wordsOf('src/client/errors.ts', /type AnalyticsErrorCode =[^]*?\n\n/),
    ...wordsOf('src/client/errors.ts', /type DeliveryErrorCode =[^]*?\n\n/),
    ...apiErrorCodes,
    ...wordsOf('src/core/tracking-fields.ts', /interface CallFault[^]*?\n\}/),
  ]
  assert.ok(codes.length > 20)
  assert.deepEqual(
    // Kafka's own: over HTTP, the write key is the source.
    codes.filter((code) => code !== 'source_required' && !readme.includes(`\`${code}\``)),
    [],
  )
})

test('the README’s example of the client sends its calls', async (t) => {
  const collector = await collectorDouble(t)
  const examples = blocks('js').filter((code) => code.includes("from 'postrider'\n\n"))
  assert.equal(examples.length, 1)
  const code = examples[0]!.replace('http://127.0.0.1:8080', collector.url)
  const env = { ...bareEnv, WRITE_KEY: writeKey }
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
    cwd: root,
    env,
    stdio: 'inherit',
  })
  const [status] = (await once(child, 'exit')) as [number]
  assert.equal(status, 0)
  assert.equal(collector.taken.size, 2)
  assert.deepEqual(collector.faults, [])
})

for (const file of ['README.md', 'test/README.md', 'docs/kafkajs-patches.md', 'docs/security.md'])
  test(`every file that ${file} links to exists`, () => {
    const text = readFileSync(join(root, file), 'utf8')
    const links = [...text.matchAll(/\]\((?!http|#)([^)#]+)/g)].map(([, link]) => link!)
    assert.ok(links.length > 0)
    assert.deepEqual(
      links.filter((link) => !existsSync(join(root, dirname(file), link))),
      [],
    )
  })

/** Runs one of the README's receivers on a port of its own. */
async function receiver(t: TestContext, code: string, fileName: string, command: string): Promise<string> {
  const port = await freePort()
  const file = join(await temporaryFolder(t), fileName)
  assert.ok(code.includes('4000'))
  await writeFile(file, code.replace('4000', String(port)))
  const child = spawn(command, [file], {
    env: { ...bareEnv, SHARED_SECRET: 's3cret' },
    stdio: 'ignore',
  })
  t.after(() => child.kill('SIGKILL'))
  const url = `http://127.0.0.1:${port}/`
  await until(() =>
    fetch(url, { method: 'HEAD' }).then(
      () => true,
      () => false,
    ),
  )
  return url
}

const languages: [language: string, fence: string, marker: string, fileName: string, command: string][] = [
  ['Node', 'js', 'isAuthentic', 'receiver.mjs', process.execPath],
  ['Python', 'python', 'is_authentic', 'receiver.py', 'python3'],
]
for (const [language, fence, marker, fileName, command] of languages) {
  const found = command.startsWith('/') || (await findCommand(command, process.env))
  test(`the README’s receiver in ${language} tells signatures apart`, { skip: !found }, async (t) => {
    const code = blocks(fence).find((block) => block.includes(marker))!
    const url = await receiver(t, code, fileName, command)
    const body = JSON.stringify({ type: 'track', userId: 'ü', event: 'Hello' })
    const signature = createHmac('sha1', 's3cret').update(body).digest('hex')
    const answers = await Promise.all(
      [signature, signature.replace(/^./, (digit) => (digit === '0' ? '1' : '0')), '', 'ü', null].map(
        async (header) => {
          const headers = header === null ? {} : { 'x-signature': Buffer.from(header).toString('latin1') }
          return (await fetch(url, { method: 'POST', body, headers })).status
        },
      ),
    )
    assert.deepEqual(answers, [200, 401, 401, 401, 401])
  })
}
