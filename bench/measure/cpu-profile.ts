import { readFile } from 'node:fs/promises'

/** What `node --cpu-prof` writes, as far as we use it. Times are µs on the machine's monotonic clock. */
interface CpuProfile {
  nodes: { id: number; callFrame: { functionName: string; url: string }; children?: number[] }[]
  startTime: number
  samples: number[]
  timeDeltas: number[]
}

/** Self time in µs, by area, and of our own engine by file. */
export interface SelfTimes {
  areas: Record<string, number>
  files: Record<string, number>
  totalMicros: number
}

/** Where a function belongs by the file that it stands in; the first that fits. */
const areasByFile: readonly (readonly [area: string, pattern: RegExp])[] = [
  ['undici', /node_modules\/undici\/|^wasm:/],
  ['kafkajs', /node_modules\/kafkajs\//],
  ['Avro', /node_modules\/(avsc|@kafkajs\/confluent-schema-registry)\/|src\/adapters\/schema-registry\//],
  ['crypto', /^node:(internal\/)?crypto/],
  ['sockets and streams', /^node:(net|tls|stream|events|internal\/(stream|net|tls|js_stream|streams))/],
  ['timers and the event loop', /^node:(timers|internal\/(timers|process|async_hooks|promise))/],
  ['Kafka adapter', /src\/adapters\/kafka\//],
  ['webhook adapter', /src\/adapters\/webhook\//],
  ['metrics', /src\/adapters\/metrics\/|node_modules\/prom-client\//],
  ['engine', /src\/(forwarder|core|commands)\//],
  ['benchmark', /\/bench\//],
]
const unattributed = new Map(
  Object.entries({
    '(idle)': 'idle',
    '(garbage collector)': 'garbage collection',
    '(program)': 'native code, system calls',
    '(root)': 'native code, system calls',
  }),
)
/** Native functions behind a socket's write: they are system calls for the most part. */
const socketWrites = /^(writev|write\w*String|writeBuffer|shutdown|readStart|readStop|connect)$/
const nativeCrypto = /^(Hmac|Hash|update|digest|hmac|hash|oneShotDigest|init)$/
const ourFile =
  /\/(src\/(?:forwarder|core|commands|adapters\/(?:kafka|webhook|metrics|schema-registry))\/.*)$/

/** Self times within a window of the monotonic clock, in ms. */
export async function selfTimes(file: string, fromMs: number, toMs: number): Promise<SelfTimes> {
  const profile = JSON.parse(await readFile(file, 'utf8')) as CpuProfile
  const parents = new Map<number, number>()
  for (const { id, children = [] } of profile.nodes) for (const child of children) parents.set(child, id)
  const byId = new Map(profile.nodes.map((node) => [node.id, node]))
  const places = new Map<number, { area: string; file: string | null }>()
  const placeOf = (id: number): { area: string; file: string | null } => {
    const known = places.get(id)
    if (known) return known
    const { functionName, url } = byId.get(id)!.callFrame
    const parent = parents.get(id)
    const own = unattributed.get(functionName) ?? ownArea(functionName, url)
    const place = own
      ? { area: own, file: ourFile.exec(url)?.[1] ?? null }
      : parent === undefined
        ? { area: 'other', file: null }
        : placeOf(parent)
    places.set(id, place)
    return place
  }
  const times: SelfTimes = { areas: {}, files: {}, totalMicros: 0 }
  let at = profile.startTime
  profile.samples.forEach((id, index) => {
    at += profile.timeDeltas[index]!
    // A sample stands for the time until the next one.
    const micros = profile.timeDeltas[index + 1] ?? 0
    if (at < fromMs * 1_000 || at > toMs * 1_000 || micros <= 0) return
    const { area, file: ours } = placeOf(id)
    times.totalMicros += micros
    times.areas[area] = (times.areas[area] ?? 0) + micros
    if (ours) times.files[ours] = (times.files[ours] ?? 0) + micros
  })
  return times
}

/** Null for native functions and built-ins without a place of their own: they count where they are called. */
function ownArea(functionName: string, url: string): string | null {
  if (url === '') {
    if (socketWrites.test(functionName)) return 'socket writes (system calls)'
    return nativeCrypto.test(functionName) ? 'crypto' : null
  }
  return areasByFile.find(([, pattern]) => pattern.test(url))?.[0] ?? "Node's other code"
}
