// Measures the client in a process of its own: takes { calls, port } by IPC and reports 'measured'.
import { randomUUID } from 'node:crypto'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Analytics as SegmentAnalytics } from '@segment/analytics-node'
import { batchBody } from '../../src/client/transport.ts'
import { HttpTransport } from '../../src/client/http-transport.ts'
import { Analytics, type Transport } from '../../src/client/index.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/** Calls between two flushes: what gathers in a busy process within a few requests. */
const burst = 1_000

/** Takes everything at once. */
const nowhere: Transport = {
  name: 'nowhere',
  send: async () => ({ kind: 'accepted', rejected: [] }),
  close: async () => {},
}

const nthCall = (index: number) => ({
  userId: `user-${index % 10_000}`,
  event: 'Order Completed',
  properties: { orderId: `order-${index}`, total: 27.5, currency: 'EUR', products: ['shoe', 'sock'] },
})

/** What is sent of it, written in one piece. */
const itemOf = (call: ReturnType<typeof nthCall>): string =>
  JSON.stringify({
    type: 'track',
    messageId: randomUUID(),
    ...call,
    originalTimestamp: new Date().toISOString(),
    context: { library: { name: 'postrider', version: '0.1.0' } },
  })

process.on('message', (message: { calls: number; port: number }) => void measure(message))
process.on('disconnect', () => process.exit())
process.send!({ kind: 'listening' })

async function measure({ calls, port }: { calls: number; port: number }): Promise<void> {
  const url = `http://127.0.0.1:${port}`
  const client = await timesOfClient(calls)
  const bare = await timesOf(calls, bareQueue(), async () => {})
  const segment = await timesOfSegment(Math.min(calls, 20_000))
  const held = heldByWaiting(calls)
  const requests = Math.max(200, Math.round(calls / 50))
  process.send!({
    kind: 'measured',
    clientMedian: at(client, 0.5),
    clientP99: at(client, 0.99),
    bareMedian: at(bare, 0.5),
    segmentMedian: at(segment, 0.5),
    segmentP99: at(segment, 0.99),
    ...held,
    httpCpu: await cpuOfHttp(url, requests),
    fetchCpu: await cpuOfFetch(url, requests),
  })
}

async function timesOfClient(calls: number): Promise<Float64Array> {
  const client = new Analytics('', { transport: nowhere })
  return timesOf(
    calls,
    (call) => client.track(call),
    () => client.flush(),
  )
}

/** Queues and sends nothing: its flush would want a server. */
async function timesOfSegment(calls: number): Promise<Float64Array> {
  const client = new SegmentAnalytics({
    writeKey: 'bench',
    flushInterval: 60_000,
    httpClient: async () => new Response('{"success":true}'),
  })
  const times = await timesOf(
    calls,
    (call) => client.track(call),
    () => client.flush(),
  )
  await client.closeAndFlush()
  return times
}

/** The least that a client must do: write a call, know its bytes, and keep it. */
function bareQueue(): (call: ReturnType<typeof nthCall>) => void {
  let queue: string[] = []
  let bytes = 0
  return (call) => {
    const json = itemOf(call)
    bytes += Buffer.byteLength(json)
    queue.push(json)
    if (queue.length >= burst) queue = []
    if (bytes < 0) throw new Error('the sum is of use')
  }
}

/** Microseconds of each call, ascending; the first tenth warms up and does not count. */
async function timesOf(
  calls: number,
  take: (call: ReturnType<typeof nthCall>) => void,
  flush: () => Promise<unknown>,
): Promise<Float64Array> {
  const times = new Float64Array(calls)
  for (let index = 0; index < calls; index++) {
    const call = nthCall(index)
    const begin = performance.now()
    take(call)
    times[index] = (performance.now() - begin) * 1_000
    if (index % burst === burst - 1) await flush()
  }
  return times.slice(Math.floor(calls / 10)).sort()
}

const at = (sorted: Float64Array, share: number): number => sorted[Math.floor(sorted.length * share)]!

function heldByWaiting(calls: number): { heldBytes: number; jsonBytes: number } {
  const client = new Analytics('', {
    transport: nowhere,
    flushAt: calls + 1,
    maxQueued: calls + 1,
    maxQueuedBytes: 2 ** 31 - 1,
  })
  collectGarbage()
  const before = process.memoryUsage().heapUsed
  // One turn of the event loop: nothing is sent meanwhile.
  for (let index = 0; index < calls; index++) client.track(nthCall(index))
  collectGarbage()
  const heldBytes = (process.memoryUsage().heapUsed - before) / calls
  void client.close()
  return { heldBytes, jsonBytes: Buffer.byteLength(items[0]!) }
}

const items = Array.from({ length: 20 }, (_, index) => itemOf(nthCall(index)))

async function cpuOfHttp(url: string, requests: number): Promise<number> {
  const endpoint = new URL(`${url}/v1/batch`)
  const transport = new HttpTransport({ endpoint, writeKey: 'bench', timeoutMs: 10_000 })
  const { signal } = new AbortController()
  const cpu = await cpuOf(requests, () => transport.send({ items, sentAt: Date.now() }, signal))
  await transport.close()
  return cpu
}

const cpuOfFetch = (url: string, requests: number): Promise<number> =>
  cpuOf(requests, async () => {
    const response = await fetch(`${url}/v1/batch`, {
      method: 'POST',
      headers: { Authorization: 'Basic YmVuY2g6', 'Content-Type': 'application/json' },
      body: batchBody({ items, sentAt: Date.now() }),
      redirect: 'manual',
      signal: AbortSignal.timeout(10_000),
    })
    JSON.parse(await response.text())
  })

/** Microseconds of CPU a request, one after another. */
async function cpuOf(requests: number, send: () => Promise<unknown>): Promise<number> {
  for (let index = 0; index < requests / 10; index++) await send()
  const before = process.cpuUsage()
  for (let index = 0; index < requests; index++) await send()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / requests
}
