import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { collectorDouble, writeKey } from '../support/calls/collector-double.ts'
import { temporaryFolder } from '../support/deployment/rig.ts'
import { addServer, compile } from '../support/packages/installed-client.ts'

const run = promisify(execFile)
const root = join(import.meta.dirname, '../..')

/** Loads a module in a process of its own and gives the URLs of all that it imports, by whatever way. */
async function importsOf(entry: string): Promise<string[]> {
  const program = `
    import { registerHooks } from 'node:module'
    const found = new Set()
    registerHooks({ resolve(specifier, context, next) {
      const resolved = next(specifier, context)
      found.add(resolved.url)
      return resolved
    } })
    await import(${JSON.stringify(entry)})
    console.log(JSON.stringify([...found]))
    process.exit()`
  const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', program])
  return JSON.parse(stdout) as string[]
}

test('the main export loads only Node’s own modules and the client’s files', async () => {
  const source = new URL('../../src/', import.meta.url).href
  const found = await importsOf(`${source}client/index.ts`)
  assert.ok(found.length > 10, found.join())
  const allowed = /^(?:client\/|core\/|(?:errors|retry-forever)\.ts$)/
  assert.deepEqual(
    found.filter((url) => !url.startsWith('node:') && !allowed.test(url.replace(source, ''))),
    [],
  )
})

test('the Kafka library is loaded only by the subpath', async () => {
  const found = await importsOf(new URL('../../src/kafka-transport.ts', import.meta.url).href)
  assert.ok(found.some((url) => url.includes('/node_modules/kafkajs/')))
})

test('plain Node imports the packed package, with types, and sends with it', async (t) => {
  const project = await temporaryFolder(t)
  await addServer(project)
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
  assert.equal(await compile(project), '')

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
