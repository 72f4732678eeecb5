// Several receivers on raw sockets in one process, a port each, each with a behaviour that can be changed while it
// runs. Every healthy one keeps how long after its due time each call came, and how long after it was produced. These
// times stand in the messageId: `due-<µs>-<µs later>-…` on the machine's monotonic clock, `wall-<ms>-…` on the one that
// retries are due by.
import { createServer, type Socket } from 'node:net'
import { monotonicMs } from '../measure/clock.ts'
import { Milestones } from './milestones.ts'
import { eachRequest, okAnswer } from './requests.ts'

export type Behaviour = 'ok' | 'hang' | '503' | 'drip' | 'reset'

export type Question =
  | { behave: Behaviour[] }
  | { total: true }
  /** Milestones of these endpoints' requests together. */
  | { expect: number; warmUp: number; counted: number[] }
  /**
   * Latencies of calls due in the window (ms on their own clock), of these endpoints: since they were due, or since
   * they were produced.
   */
  | { from: number; to: number; of: number[]; since: 'due' | 'produced' }
  /** When the calls of that window that came were due, µs: each once, however often it came. */
  | { cameFrom: number; cameTo: number; of: number[] }

/** Numbers in the order in which they came, outside of V8's heap: its collections would hold up answers. */
class Samples {
  readonly #blocks: Float64Array[] = []
  length = 0

  push(value: number): void {
    const at = this.length++ % blockSize
    if (at === 0) this.#blocks.push(new Float64Array(blockSize))
    this.#blocks.at(-1)![at] = value
  }

  at(index: number): number {
    return this.#blocks[Math.floor(index / blockSize)]![index % blockSize]!
  }
}

interface Endpoint {
  counted: boolean
  behaviour: Behaviour
  requests: number
  dueAt: Samples
  /** When it came and when it was produced, after that. */
  cameAfter: Samples
  producedAfter: Samples
}

const unavailable = Buffer.from('HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n')
const endless = Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n')
const dripMs = 1_000
const blockSize = 65_536

const answers: Record<Behaviour, (socket: Socket) => void> = {
  ok: (socket) => void socket.write(okAnswer),
  hang: () => {},
  '503': (socket) => void socket.write(unavailable),
  drip(socket) {
    socket.write(endless)
    const timer = setInterval(() => socket.write('.'), dripMs)
    socket.once('close', () => clearInterval(timer))
  },
  reset: (socket) => void socket.resetAndDestroy(),
}

const endpoints = Array.from({ length: Number(process.argv[2]) }, (): Endpoint => ({
  counted: false,
  behaviour: 'ok',
  requests: 0,
  dueAt: new Samples(),
  cameAfter: new Samples(),
  producedAfter: new Samples(),
}))

const milestones = new Milestones()

function arrived(endpoint: Endpoint, head: string): void {
  endpoint.requests++
  if (endpoint.counted) milestones.arrived()
  if (endpoint.behaviour !== 'ok') return
  const [, clock, digits, later] = /dempotency-[Kk]ey: (due|wall)-(\d+)-(\d+)/.exec(head) ?? []
  if (clock === undefined) return
  const dueAt = clock === 'due' ? Number(digits) / 1_000 : Number(digits)
  endpoint.dueAt.push(dueAt)
  endpoint.cameAfter.push((clock === 'due' ? monotonicMs() : Date.now()) - dueAt)
  endpoint.producedAfter.push(clock === 'due' ? Number(later) / 1_000 : 0)
}

/** `calls` counts each once, however often it came: by the clock of the machine no two are due at the same time. */
function quantiles({ from, to, of, since }: Extract<Question, { since: unknown }>) {
  const all: number[] = []
  const calls = new Set<number>()
  for (const index of of) {
    const { dueAt, cameAfter, producedAfter } = endpoints[index]!
    for (let at = 0; at < dueAt.length; at++)
      if (dueAt.at(at) >= from && dueAt.at(at) < to) {
        calls.add(dueAt.at(at))
        all.push(cameAfter.at(at) - (since === 'produced' ? producedAfter.at(at) : 0))
      }
  }
  const sorted = Float64Array.from(all).sort()
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN
  const [p50, p90, p95, p99, p999] = [0.5, 0.9, 0.95, 0.99, 0.999].map(at)
  return { count: sorted.length, calls: calls.size, min: at(0), p50, p90, p95, p99, p999, max: at(1) }
}

function came({ cameFrom, cameTo, of }: Extract<Question, { cameFrom: unknown }>): number[] {
  const calls = new Set<number>()
  for (const index of of) {
    const { dueAt } = endpoints[index]!
    for (let at = 0; at < dueAt.length; at++)
      if (dueAt.at(at) >= cameFrom && dueAt.at(at) < cameTo) calls.add(Math.round(dueAt.at(at) * 1_000))
  }
  return [...calls]
}

const ports = await Promise.all(
  endpoints.map(async (endpoint) => {
    const server = createServer((socket) =>
      eachRequest(socket, (head) => {
        arrived(endpoint, head)
        answers[endpoint.behaviour](socket)
      }),
    )
    await new Promise<void>((resolve) =>
      server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }, resolve),
    )
    return (server.address() as { port: number }).port
  }),
)

process.on('message', (question: Question) => {
  if ('behave' in question) {
    question.behave.forEach((behaviour, index) => (endpoints[index]!.behaviour = behaviour))
    process.send!({ kind: 'behaving' })
  } else if ('expect' in question) {
    endpoints.forEach((endpoint, index) => (endpoint.counted = question.counted.includes(index)))
    milestones.expect(question.expect, question.warmUp)
    process.send!({ kind: 'ready' })
  } else if ('total' in question) {
    process.send!({ kind: 'totals', at: monotonicMs(), requests: endpoints.map(({ requests }) => requests) })
  } else if ('cameFrom' in question) {
    process.send!({ kind: 'came', dueAt: came(question) })
  } else {
    process.send!({ kind: 'quantiles', ...quantiles(question) })
  }
})
process.on('disconnect', () => process.exit())
process.send!({ kind: 'listening', ports })
