// A process of an application that has kafkajs of its own and uses `postrider/kafka`. It prints what is different in
// kafkajs afterwards, and which of Postrider's files were loaded, as JSON. With `--patch` it patches kafkajs instead.
import { globSync } from 'node:fs'
import { createRequire, registerHooks } from 'node:module'
import { dirname, join, relative } from 'node:path'

const root = join(import.meta.dirname, '../../..')
const require = createRequire(import.meta.url)

/** Of each object and function that kafkajs exports, at any depth: its path, and its properties as they are now. */
type Snapshot = Map<object, { path: string; properties: Map<PropertyKey, PropertyDescriptor> }>

function snapshot(): Snapshot {
  const found: Snapshot = new Map()
  const folder = join(dirname(require.resolve('kafkajs/package.json')), 'src')
  for (const file of globSync('**/*.js', { cwd: folder }).sort())
    visit(require(join(folder, file)), file, found)
  return found
}

function visit(value: unknown, path: string, found: Snapshot): void {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null || found.has(value)) return
  const properties = propertiesOf(value)
  found.set(value, { path, properties })
  for (const [key, { value: inner, get, set }] of properties)
    for (const each of [inner, get, set]) visit(each, `${path} ${String(key)}`, found)
}

const propertiesOf = (value: object): Map<PropertyKey, PropertyDescriptor> =>
  new Map(Reflect.ownKeys(value).map((key) => [key, Object.getOwnPropertyDescriptor(value, key)!]))

function differences(before: Snapshot): string[] {
  const different: string[] = []
  for (const [object, { path, properties }] of before) {
    const now = propertiesOf(object)
    for (const key of new Set([...properties.keys(), ...now.keys()])) {
      const [a, b] = [properties.get(key), now.get(key)]
      const isSame = a && b && Object.is(a.value, b.value) && a.get === b.get && a.set === b.set
      if (!isSame) different.push(`${path} ${String(key)}`)
    }
  }
  return different
}

async function useTransport(): Promise<void> {
  const { KafkaTransport } = await import('../../../src/kafka-transport.ts')
  const { Analytics } = await import('../../../src/client/index.ts')
  const { KAFKA_BROKERS, SCHEMA_REGISTRY_URL, TOPIC_PREFIX } = process.env
  const transport = new KafkaTransport({
    brokers: KAFKA_BROKERS!.split(','),
    schemaRegistryUrl: SCHEMA_REGISTRY_URL!,
    topicPrefix: TOPIC_PREFIX!,
    sourceId: 'shop',
  })
  const client = new Analytics('', { transport })
  client.track({ userId: 'u', event: 'E', messageId: 'sent-beside-kafkajs' })
  const { undelivered } = await client.close()
  if (undelivered.length > 0) throw new Error('not delivered')
}

const before = snapshot()
const loaded: string[] = []
registerHooks({
  load(url, context, next) {
    if (url.startsWith('file:')) loaded.push(relative(root, new URL(url).pathname))
    return next(url, context)
  },
})
if (process.argv.includes('--patch')) {
  const { installPatches } = await import('../../../src/adapters/kafka/patches/index.ts')
  installPatches()
} else await useTransport()
process.stdout.write(JSON.stringify({ objects: before.size, different: differences(before), loaded }))
