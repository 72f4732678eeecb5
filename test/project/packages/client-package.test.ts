// The package `postrider-client` as applications install it: outside the checkout, from the packed file, without a network.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { build, type Plugin } from 'esbuild'
import { minClientNodeMajor } from '../../../scripts/packages/client-package.ts'
import { deploy } from '../../support/deployment/deployment.ts'
import { registryUrl } from '../../support/deployment/rig.ts'
import { collectorDouble, writeKey } from '../../support/calls/collector-double.ts'
import { codeBlocks, root } from '../../support/docs.ts'
import { addServer, compile, projectWithClient, writeFiles } from '../../support/packages/installed-client.ts'
import { testedNodes } from '../../support/packages/nodes.ts'

const run = promisify(execFile)
const nodes = testedNodes()

/** Sends one call, and prints what it could not deliver. */
const sending = `const analytics = new Analytics(process.env.WRITE_KEY!, { endpoint: process.env.ENDPOINT })
analytics.track({ userId: 'u-1', event: 'Signed Up', messageId: process.env.MESSAGE_ID })
analytics.close().then((result) => console.log(JSON.stringify(result)))
`
const inJavaScript = sending.replace('!', '')
const imported = "import { Analytics } from 'postrider-client'\n"

/** Each kind of application, with the file that Node runs. */
const kinds: readonly [kind: string, main: string][] = [
  ['JavaScript with import', 'esm/main.js'],
  ['JavaScript with require', 'cjs/main.js'],
  ['TypeScript nodenext', 'nodenext/out/main.js'],
  ['TypeScript nodenext in a CommonJS package', 'nodenext-cjs/out/main.js'],
  ['TypeScript bundler', 'bundler/out/main.js'],
  ['TypeScript commonjs and node10', 'node10/out/main.js'],
  ['a bundle by esbuild', 'bundle/main.mjs'],
]

const tsconfig = (options: object): string =>
  JSON.stringify({
    compilerOptions: {
      target: 'es2022',
      strict: true,
      exactOptionalPropertyTypes: true,
      // The client's declarations are checked too.
      skipLibCheck: false,
      types: ['node'],
      typeRoots: [join(root, 'node_modules/@types')],
      rootDir: '.',
      outDir: 'out',
      ...options,
    },
    files: ['main.ts'],
  })

const typeChecks = `
import { AnalyticsError, type CloseResult, type Identity, type TrackCall, type Transport } from 'postrider-client'
export const call: TrackCall = { userId: 7, event: 'Signed Up', properties: { plan: 'pro' }, timestamp: new Date() }
export const result = (client: Analytics): Promise<CloseResult> => client.close({ timeout: 1 })
export const own: Transport = { name: 'own', send: async () => ({ kind: 'accepted', rejected: [] }), close: async () => {} }
export const code = (error: unknown) => error instanceof AnalyticsError && error.code === 'queue_full'
export function types(client: Analytics, identity: Identity, maybe: string | undefined) {
  client.page({ anonymousId: 'a', traits: { url: 'https://example.com' }, properties: { own: 1 } })
  client.identify({ ...identity, traits: { plan: 'pro' } })
  client.track({ userId: maybe, anonymousId: 'a', event: 'E' })
  client.track({ userId: 'u', anonymousId: null, event: 'E' })
  // @ts-expect-error: neither userId nor anonymousId
  client.track({ event: 'E' })
  // @ts-expect-error: neither may be there
  client.identify({ userId: maybe })
  // @ts-expect-error: neither userId nor anonymousId
  client.group({ groupId: 'g' })
  // @ts-expect-error: event is missing
  client.track({ userId: 'u' })
  // @ts-expect-error: previousId is missing
  client.alias({ userId: 'u' })
  // @ts-expect-error: there is no such field
  client.track({ userId: 'u', event: 'E', Properties: {} })
  // @ts-expect-error: there is no such option
  new Analytics('key', { flushInterval: 1 })
}
`

test('an application of any kind installs the packed client, compiles with it and sends, on each Node', async (t) => {
  const project = await projectWithClient(t)
  await writeFiles(project, {
    'esm/package.json': '{"type":"module"}',
    'esm/main.js': imported + inJavaScript,
    'cjs/package.json': '{"type":"commonjs"}',
    'cjs/main.js': `const { Analytics, AnalyticsError } = require('postrider-client')
import('postrider-client').then((module) => {
  if (module.AnalyticsError !== AnalyticsError) throw new Error('two copies')
})
${inJavaScript}`,
    'nodenext/package.json': '{"type":"module"}',
    'nodenext/main.ts': imported + typeChecks + sending,
    'nodenext/tsconfig.json': tsconfig({ module: 'nodenext' }),
    'nodenext-cjs/package.json': '{"type":"commonjs"}',
    'nodenext-cjs/main.ts': imported + sending,
    'nodenext-cjs/tsconfig.json': tsconfig({ module: 'nodenext' }),
    'bundler/package.json': '{"type":"module"}',
    'bundler/main.ts': imported + typeChecks + sending,
    'bundler/tsconfig.json': tsconfig({ module: 'esnext', moduleResolution: 'bundler' }),
    'node10/package.json': '{}',
    'node10/main.ts': imported + typeChecks + sending,
    'node10/tsconfig.json': tsconfig({
      module: 'commonjs',
      moduleResolution: 'node10',
      ignoreDeprecations: '6.0',
    }),
  })
  for (const folder of ['nodenext', 'nodenext-cjs', 'bundler', 'node10'])
    assert.equal(await compile(join(project, folder)), '', folder)
  await build({
    entryPoints: [join(project, 'esm/main.js')],
    outfile: join(project, 'bundle/main.mjs'),
    bundle: true,
    platform: 'node',
    format: 'esm',
    logLevel: 'silent',
    // What esbuild's own documentation says for CommonJS in an ES module.
    banner: {
      js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url)",
    },
  })
  const collector = await collectorDouble(t)
  for (const { name, skip, path } of nodes) {
    await t.test(name, { skip }, async () => {
      for (const [kind, main] of kinds) {
        const messageId = `${kind} on ${name}`
        const env = { PATH: '', WRITE_KEY: writeKey, ENDPOINT: collector.url, MESSAGE_ID: messageId }
        const { stdout, stderr } = await run(path, [join(project, main)], { cwd: project, env })
        assert.deepEqual([stdout, stderr], ['{"undelivered":[]}\n', ''], messageId)
        assert.ok(collector.taken.has(messageId), messageId)
      }
    })
  }
  assert.deepEqual(collector.faults, [])
})

/** Tests of the client, as they would be of the installed package. */
const ofPackage: Plugin = {
  name: 'of-package',
  setup(building) {
    building.onResolve({ filter: /\/src\/client\/index\.ts$/ }, () => ({
      path: 'postrider-client',
      external: true,
    }))
  },
}

test('the client’s own tests of failures and flushing hold for the package, on each Node', async (t) => {
  const project = await projectWithClient(t)
  for (const name of ['failures', 'flushing'])
    await build({
      entryPoints: [join(root, `test/client/${name}.test.ts`)],
      outfile: join(project, `${name}.mjs`),
      bundle: true,
      platform: 'node',
      format: 'esm',
      target: `node${minClientNodeMajor}`,
      plugins: [ofPackage],
      logLevel: 'silent',
    })
  for (const { name, skip, path } of nodes) {
    await t.test(name, { skip }, async ({ signal }) => {
      for (const file of ['failures.mjs', 'flushing.mjs']) {
        // A test that hangs ends with this one.
        const options = { cwd: project, env: { PATH: '' }, signal, killSignal: 'SIGKILL' as const }
        const { stdout } = await run(path, [file], options).catch(
          (error: unknown) => error as { stdout: string },
        )
        assert.match(stdout, /^(?:#|ℹ) pass [1-9]\d*$/m, stdout)
        assert.match(stdout, /^(?:#|ℹ) fail 0$/m, stdout)
      }
    })
  }
})

test('the client sends every type of call on each Node', async (t) => {
  const project = await projectWithClient(t)
  await writeFiles(project, {
    'app.mjs': `import { Analytics, AnalyticsError } from 'postrider-client'
const analytics = new Analytics(process.env.WRITE_KEY, {
  endpoint: process.env.ENDPOINT, flushAt: 2, initialBackoff: 1, onError: (error) => console.log(error.message),
})
analytics.track({ userId: 'u-1', event: 'Größe 🦊', messageId: 'm-1', timestamp: '2012-337T00:30:08Z' })
analytics.alias({ userId: 'u-1', previousId: '\\ud800', messageId: 'm-2' })
analytics.identify({ userId: 7, traits: { plan: 'pro' }, messageId: 'm-3' })
await analytics.flush()
await analytics.ready()
analytics.page({ anonymousId: 'a', traits: { path: '/' }, properties: { title: 'T' }, messageId: 'm-4' })
analytics.screen({ userId: 'u', name: 'S', context: { library: { name: 'own' } }, messageId: 'm-5' })
analytics.group({ userId: 'u', groupId: 'g', integrations: { All: false }, messageId: 'm-6' })
try {
  analytics.track({ userId: 'u', event: 'E', properties: { a: 'x'.repeat(40_000) } })
} catch (error) {
  console.log(error instanceof AnalyticsError, error.code)
}
console.log(JSON.stringify(await analytics.close()))
`,
  })
  for (const { name, skip, path } of nodes) {
    await t.test(name, { skip }, async (t) => {
      const collector = await collectorDouble(t)
      collector.answer('reset', { status: 503 })
      const env = { PATH: '', WRITE_KEY: writeKey, ENDPOINT: collector.url }
      const { stdout } = await run(path, ['app.mjs'], { cwd: project, env })
      assert.equal(stdout, 'true message_too_large\n{"undelivered":[]}\n')
      assert.deepEqual([...collector.taken.keys()], ['m-1', 'm-2', 'm-3', 'm-4', 'm-5', 'm-6'])
      assert.equal(collector.taken.get('m-1')!.timestamp, '2012-12-02T00:30:08.000Z')
      assert.deepEqual(collector.taken.get('m-4')!.properties, { title: 'T', path: '/' })
      assert.deepEqual(collector.faults, [])
    })
  }
})

test('the client’s package has no dependencies, and a size and contents that docs/client.md names', async (t) => {
  const project = await projectWithClient(t)
  assert.deepEqual(
    (await readdir(join(project, 'node_modules'))).filter((name) => !name.startsWith('.')),
    ['postrider-client'],
  )
  const installed = join(project, 'node_modules/postrider-client')
  const manifest = JSON.parse(await readFile(join(installed, 'package.json'), 'utf8')) as Record<
    string,
    unknown
  >
  assert.deepEqual(manifest.engines, { node: `>=${minClientNodeMajor}` })
  for (const unwanted of ['dependencies', 'scripts', 'private', 'optionalDependencies'])
    assert.ok(!(unwanted in manifest), unwanted)
  const files = (await readdir(installed, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(installed.length + 1))
  const declarations = files.filter((file) => file.startsWith('types/'))
  assert.deepEqual(files.filter((file) => !declarations.includes(file)).sort(), [
    'LICENSE',
    'README.md',
    'index.d.mts',
    'index.js',
    'index.mjs',
    'package.json',
  ])
  const sizes = await Promise.all(files.map(async (file) => (await readFile(join(installed, file))).length))
  const total = sizes.reduce((sum, size) => sum + size, 0)
  assert.ok(total < 100_000, `${total} bytes`)
  assert.match(await readFile(join(root, 'docs/client.md'), 'utf8'), /no dependencies \(less than 100 KB\)/)
})

test('the README of each package has no link that leads nowhere, and the client’s has the example of docs/client.md', async () => {
  for (const folder of ['dist', 'dist/client']) {
    const text = await readFile(join(root, folder, 'README.md'), 'utf8')
    assert.doesNotMatch(text, /\]\((?!https:)|\]: |<img/, folder)
  }
  const [example] = codeBlocks('js', ['docs/client.md'])
  assert.deepEqual(codeBlocks('js', ['scripts/packages/postrider-client.md']), [example])
})

test('postrider-client sends by the transport of postrider/kafka', async (t) => {
  const deployment = await deploy(t)
  const project = await projectWithClient(t)
  await addServer(project)
  const [example] = codeBlocks('js', ['docs/client.md']).filter((code) => code.includes('postrider/kafka'))
  const changes: [string, string][] = [
    ["['127.0.0.1:9092']", JSON.stringify(deployment.env.KAFKA_BROKERS!.split(','))],
    ['http://127.0.0.1:8081/apis/ccompat/v7', registryUrl()],
    ["sourceId: 'demo',", `sourceId: 'demo', topicPrefix: ${JSON.stringify(deployment.config.topicPrefix)},`],
  ]
  let code = example!
  for (const [from, to] of changes) {
    assert.ok(code.includes(from), `${from} is in\n${code}`)
    code = code.replace(from, to)
  }
  await writeFiles(project, {
    'kafka/package.json': '{"type":"module"}',
    'kafka/main.ts': code,
    // The declarations of kafkajs are not ours.
    'kafka/tsconfig.json': tsconfig({ module: 'nodenext', skipLibCheck: true }),
  })
  assert.equal(await compile(join(project, 'kafka')), '')
  await run(process.execPath, ['kafka/out/main.js'], { cwd: project })
  const [record] = await deployment.read(deployment.topics.calls)
  const call = await deployment.codecs.calls.decode(record!.value)
  assert.deepEqual([call.sourceId, call.userId, call.event], ['demo', 'ada', 'Order Completed'])
})
