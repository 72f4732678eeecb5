import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { promisify } from 'node:util'
import { collectorDouble, writeKey } from '../support/calls/collector-double.ts'
import { temporaryFolder } from '../support/deployment/rig.ts'

const run = promisify(execFile)
const root = join(import.meta.dirname, '../..')
const dist = join(root, 'dist')

before(async () => {
  await assert.doesNotReject(
    readFile(join(dist, 'package.json')),
    'dist/ is there: `npm run build` makes it, as `npm test` does',
  )
})

/** Loads a module in a process of its own and gives what it imports, of itself and of all that it imports. */
async function importsOf(entry: string): Promise<string[]> {
  const program = `
    import { registerHooks } from 'node:module'
    const found = new Set()
    registerHooks({ resolve(specifier, context, next) { found.add(specifier); return next(specifier, context) } })
    await import(${JSON.stringify(entry)})
    console.log(JSON.stringify([...found]))
    process.exit()`
  const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', program])
  return JSON.parse(stdout) as string[]
}

test('the main export loads only Node’s own modules and the client’s files', async () => {
  const entry = new URL('../../src/client/index.ts', import.meta.url).href
  const found = (await importsOf(entry)).filter((specifier) => specifier !== entry)
  assert.ok(found.length > 10, found.join())
  const foreign = found.filter((specifier) => !/^(?:node:|\.\.?\/)/.test(specifier))
  assert.deepEqual(foreign, [])
  const ownFolders = found.filter((specifier) => specifier.startsWith('../'))
  assert.ok(
    ownFolders.every((specifier) => /^\.\.\/(?:core\/|(?:errors|retry-forever)\.ts$)/.test(specifier)),
    ownFolders.join(),
  )
})

test('the Kafka library is loaded only by the subpath', async () => {
  const found = await importsOf(new URL('../../src/kafka-transport.ts', import.meta.url).href)
  assert.ok(found.includes('kafkajs'))
})

test('plain Node imports the packed package, with types, and sends with it', async (t) => {
  const project = await temporaryFolder(t)
  const { stdout: packed } = await run('npm', ['pack', dist, '--json', '--pack-destination', project], {
    cwd: project,
  })
  const [{ filename }] = JSON.parse(packed) as [{ filename: string }]
  const installed = join(project, 'node_modules/postrider')
  await mkdir(installed, { recursive: true })
  await run('tar', ['-xzf', join(project, filename), '--strip-components=1', '-C', installed])
  // Its dependencies, as an installation would put them beside it.
  await symlink(join(root, 'node_modules'), join(installed, 'node_modules'))
  const collector = await collectorDouble(t)

  await writeFile(join(project, 'package.json'), '{"type":"module"}')
  await writeFile(
    join(project, 'app.ts'),
    `import { Analytics, AnalyticsError, type Transport, type TrackCall, type CloseResult } from 'postrider'
import { KafkaTransport } from 'postrider/kafka'

const analytics = new Analytics('key', { endpoint: 'http://127.0.0.1:1', flushAt: 5, onError: (error) => {
  const ids: string[] = error.calls.map(({ messageId }) => messageId)
  console.log(error.code, ids)
} })
const call: TrackCall = { userId: 7, event: 'Signed Up', properties: { plan: 'pro' }, timestamp: new Date() }
analytics.track(call)
analytics.page({ anonymousId: 'a', properties: { url: 'https://example.com', own: 1 }, integrations: { All: false, Webhooks: true } })
interface Traits { plan: string }
const traits: Traits = { plan: 'pro' }
analytics.identify({ userId: 'u', traits })
// @ts-expect-error: event is missing
analytics.track({ userId: 'u' })
// @ts-expect-error: previousId is missing
analytics.alias({ userId: 'u' })
// @ts-expect-error: there is no such option
new Analytics('key', { flushInterval: 1 })
const kafka: Transport = new KafkaTransport({ brokers: ['b:9092'], schemaRegistryUrl: 'http://r', sourceId: 'shop' })
const result: Promise<CloseResult> = new Analytics('', { transport: kafka }).close()
export { AnalyticsError, result }
`,
  )
  const options = {
    strict: true,
    exactOptionalPropertyTypes: true,
    module: 'nodenext',
    target: 'es2022',
    noEmit: true,
    // Only so that the dependencies' own declarations are not held to these options.
    skipLibCheck: true,
    types: ['node'],
    typeRoots: [join(root, 'node_modules/@types')],
  }
  await writeFile(
    join(project, 'tsconfig.json'),
    JSON.stringify({ compilerOptions: options, files: ['app.ts'] }),
  )
  const tsc = join(root, 'node_modules/typescript/bin/tsc')
  const { stdout: faults } = await run(process.execPath, [tsc, '-p', project], { cwd: project }).catch(
    (error: unknown) => error as { stdout: string },
  )
  assert.equal(faults, '')

  await writeFile(
    join(project, 'app.js'),
    `import { Analytics } from 'postrider'
import { KafkaTransport } from 'postrider/kafka'
const analytics = new Analytics(${JSON.stringify(writeKey)}, { endpoint: ${JSON.stringify(collector.url)} })
analytics.track({ userId: 'u-1', event: 'Signed Up', messageId: 'm-1' })
console.log(JSON.stringify(await analytics.close()), typeof KafkaTransport)
`,
  )
  const { stdout } = await run(process.execPath, ['app.js'], { cwd: project })
  assert.equal(stdout, '{"undelivered":[]} function\n')
  assert.deepEqual([...collector.taken.keys()], ['m-1'])
  assert.deepEqual(collector.faults, [])
})
