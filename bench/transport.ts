// How fast the webhook transport is beside a bare undici `request` loop: the same bodies of about 300 B, the same
// HMAC, the same receiver (raw sockets, in a process and on a core of its own), one after the other in one process.
//
//     node bench/transport.ts [--seconds 3] [--in-flight 16,32,64,128] [--only transport|request] [--delay 0]
//
// Prints one JSON object. The rounds alternate, and each figure is the median of its rounds.
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Pool } from 'undici'
import { createWebhookTransport } from '../src/adapters/webhook/transport.ts'
import type { SignedRequest } from '../src/forwarder/send/signed-request.ts'
import type { AttemptSink, EndpointClient } from '../src/forwarder/send/webhook-transport.ts'

const { values: flags } = parseArgs({
  options: {
    seconds: { type: 'string', default: '3' },
    rounds: { type: 'string', default: '3' },
    'in-flight': { type: 'string', default: '16,32,64,128,256' },
    only: { type: 'string' },
    delay: { type: 'string', default: '0' },
    role: { type: 'string', default: 'parent' },
    port: { type: 'string', default: '0' },
  },
})

const secret = 'a shared secret of some length'
const bodies = Array.from({ length: 1_000 }, (_, index) => body(index))

function body(index: number): string {
  return JSON.stringify({
    version: 1,
    type: 'track',
    userId: `user-${index}`,
    timestamp: '2026-01-01T00:00:00.000Z',
    event: 'Order Completed',
    properties: { orderId: `order-${index}`, total: 27.5, currency: 'EUR', products: ['a', 'b', 'c'] },
    context: { ip: '10.1.2.3', library: { name: 'bench', version: '1.0.0' } },
    messageId: `message-${index}-0123456789abcdef`,
  })
}

/** Answers 200 to whatever ends in a body of the length that its head names; parses no more than it must. */
function receive(delayMs: number): void {
  const answer = Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
  const server = createServer((socket) => {
    socket.setNoDelay(true)
    socket.on('error', () => {})
    let rest = Buffer.alloc(0)
    socket.on('data', (chunk) => {
      rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
      for (;;) {
        const head = rest.indexOf('\r\n\r\n')
        if (head < 0) return
        const match = /content-length: (\d+)/i.exec(rest.toString('latin1', 0, head))
        const end = head + 4 + Number(match?.[1] ?? 0)
        if (rest.length < end) return
        rest = rest.subarray(end)
        if (delayMs === 0) socket.write(answer)
        else setTimeout(() => socket.write(answer), delayMs)
      }
    })
  })
  server.listen(0, '127.0.0.1', () => {
    const address = server.address()
    process.send!({ port: typeof address === 'object' ? address!.port : 0 })
  })
  let before = process.cpuUsage()
  let at = performance.now()
  process.on('message', () => {
    const now = performance.now()
    const used = process.cpuUsage(before)
    process.send!({ busy: (used.user + used.system) / 1_000 / (now - at) })
    before = process.cpuUsage()
    at = now
  })
}

interface Round {
  perSecond: number
  /** Per second of CPU time: what perSecond would be with the core to itself, where others use it too. */
  perCpuSecond: number
  /** Shares of one core. */
  cpu: number
  receiverCpu: number
}

function sign(text: string): { bytes: Buffer; signature: string } {
  const bytes = Buffer.from(text)
  return { bytes, signature: createHmac('sha1', secret).update(bytes).digest('hex') }
}

/** Keeps `inFlight` requests in flight by `undici.request`, as a straightforward forwarder would. */
async function runRequest(url: string, inFlight: number, ms: number): Promise<number> {
  const pool = new Pool(new URL(url).origin, { connections: inFlight })
  const until = performance.now() + ms
  let count = 0
  const loop = async () => {
    while (performance.now() < until) {
      const index = count++
      const { bytes, signature } = sign(bodies[index % bodies.length]!)
      const response = await pool.request({
        method: 'POST',
        path: '/hook',
        headers: {
          'User-Agent': 'postrider/1.0',
          'Content-Type': 'application/json',
          'X-Signature': signature,
          'Idempotency-Key': `message-${index}:crm`,
        },
        body: bytes,
      })
      await response.body.dump()
    }
  }
  await Promise.all(Array.from({ length: inFlight }, loop))
  await pool.close()
  return count
}

class Slot implements AttemptSink {
  readonly endpoint: EndpointClient
  readonly next: () => SignedRequest | null
  readonly done: () => void
  constructor(endpoint: EndpointClient, next: () => SignedRequest | null, done: () => void) {
    this.endpoint = endpoint
    this.next = next
    this.done = done
  }
  onOutcome(): void {
    const request = this.next()
    if (request === null) this.done()
    else this.endpoint.send(request, this)
  }
}

async function runTransport(url: string, inFlight: number, ms: number): Promise<number> {
  const transport = createWebhookTransport({ allowedNetworks: ['127.0.0.0/8'], ca: null })
  const endpoint = transport.open({ url, headers: {} })
  const until = performance.now() + ms
  let count = 0
  const next = () => {
    if (performance.now() >= until) return null
    const index = count++
    const { bytes, signature } = sign(bodies[index % bodies.length]!)
    return { body: bytes, signature, idempotencyKey: `message-${index}:crm` }
  }
  await Promise.all(
    Array.from(
      { length: inFlight },
      () => new Promise<void>((resolve) => new Slot(endpoint, next, resolve).onOutcome()),
    ),
  )
  await transport.close(1_000)
  return count
}

const taskset = spawnSync('taskset', ['--version']).status === 0

function onCore(core: number, args: string[]): ChildProcess {
  const command = [process.execPath, ...process.execArgv, fileURLToPath(import.meta.url), ...args]
  const [program, ...rest] = taskset ? ['taskset', '-c', String(core), ...command] : command
  return spawn(program!, rest, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
}

const median = (values: number[]) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)]!

async function measure(): Promise<void> {
  const receiver = onCore(1, ['--role', 'receiver', '--delay', flags.delay])
  const reported = () => new Promise<Record<string, number>>((resolve) => receiver.once('message', resolve))
  const { port } = await reported()
  const url = `http://127.0.0.1:${port}/hook`
  const busy = async () => {
    const answer = reported()
    receiver.send('cpu')
    return (await answer)['busy']!
  }
  const round = async (run: typeof runRequest, inFlight: number): Promise<Round> => {
    await busy()
    const cpu = process.cpuUsage()
    const at = performance.now()
    const count = await run(url, inFlight, Number(flags.seconds) * 1_000)
    const ms = performance.now() - at
    const used = process.cpuUsage(cpu)
    return {
      perSecond: Math.round((count / ms) * 1_000),
      perCpuSecond: Math.round((count / (used.user + used.system)) * 1_000_000),
      cpu: Number(((used.user + used.system) / 1_000 / ms).toFixed(2)),
      receiverCpu: Number((await busy()).toFixed(2)),
    }
  }
  const variants = { request: runRequest, transport: runTransport }
  const names = (['request', 'transport'] as const).filter((name) => !flags.only || flags.only === name)
  for (const name of names) await variants[name](url, 32, 1_000)
  const results = []
  for (const inFlight of flags['in-flight'].split(',').map(Number)) {
    const rounds: Record<string, Round[]> = { request: [], transport: [] }
    for (let i = 0; i < Number(flags.rounds); i++) {
      for (const name of names) rounds[name]!.push(await round(variants[name], inFlight))
    }
    const of = (name: string, figure: 'perSecond' | 'perCpuSecond') =>
      median(rounds[name]!.map((each) => each[figure]))
    const result: Record<string, unknown> = { inFlight }
    for (const figure of ['perSecond', 'perCpuSecond'] as const) {
      const figures = Object.fromEntries(names.map((name) => [name, of(name, figure)]))
      const ratio = (figures['transport'] ?? NaN) / (figures['request'] ?? NaN)
      result[figure] = { ...figures, ratio: Number(ratio.toFixed(3)) }
    }
    for (const name of names) result[`${name}Rounds`] = rounds[name]
    results.push(result)
    console.error(JSON.stringify({ ...result, requestRounds: undefined, transportRounds: undefined }))
  }
  console.log(
    JSON.stringify({ node: process.version, taskset, seconds: Number(flags.seconds), results }, null, 2),
  )
  receiver.kill()
}

if (flags.role === 'receiver') receive(Number(flags.delay))
else if (flags.role === 'measure') await measure()
else {
  const args = process.argv.slice(2)
  const child = onCore(0, ['--role', 'measure', ...args])
  process.exitCode = await new Promise<number>((resolve) => child.on('exit', (code) => resolve(code ?? 1)))
}
