// Sends batches over raw sockets, in a process and on a core of its own: bodies are made once, and only the digits of
// their messageIds change, so that it takes as little of its core as it can. With a rate, requests are sent when they
// are due, and their time counts from then, however slow anything was.
import { connect, type Socket } from 'node:net'
import { nthCall } from '../calls.ts'

interface Order {
  port: number
  writeKey: string
  /** Calls a request; 1 goes to /v1/track. */
  batchSize: number
  /** Asked for by GET, in place of calls. */
  path?: string
  connections: number
  /** Both have passed when the measurement begins: what is compiled as it runs counts by what it ran, not by time. */
  warmUpMs: number
  warmUpCalls: number
  measureMs: number
  /** Requests a second; 0: as fast as they are answered. */
  rate: number
}

const digits = 12
const maxWarmUpMs = 60_000
let nextId = 0
let nextUser = 0

/** A request's bytes, and where its messageIds stand. */
function template(order: Order): { bytes: Buffer; ids: number[] } {
  if (order.path) return { bytes: Buffer.from(`GET ${order.path} HTTP/1.1\r\nHost: bench\r\n\r\n`), ids: [] }
  const items = Array.from({ length: order.batchSize }, () => {
    const call = nthCall(nextUser++, 10_000)
    const { type, userId, event } = call
    return (
      `{"type":"${type}","messageId":"bench-${'#'.repeat(digits)}","userId":"${userId}","event":"${event}",` +
      `"timestamp":"2026-01-01T00:00:00.000Z","properties":${call.properties},"context":${call.context}}`
    )
  })
  const body =
    order.batchSize === 1 ? items[0]! : `{"batch":[${items.join()}],"sentAt":"2026-01-01T00:00:00.000Z"}`
  const head =
    `POST /v1/${order.batchSize === 1 ? 'track' : 'batch'} HTTP/1.1\r\nHost: bench\r\n` +
    `Authorization: Basic ${btoa(`${order.writeKey}:`)}\r\nContent-Type: application/json\r\n` +
    `Content-Length: ${body.length}\r\n\r\n`
  const bytes = Buffer.from(head + body, 'latin1')
  const ids: number[] = []
  for (let at = bytes.indexOf('#'); at >= 0; at = bytes.indexOf('#', at + digits)) ids.push(at)
  return { bytes, ids }
}

function stamp(bytes: Buffer, ids: readonly number[]): void {
  for (const start of ids) {
    let rest = nextId++
    for (let at = start + digits - 1; at >= start; at--) {
      bytes[at] = 0x30 + (rest % 10)
      rest = Math.floor(rest / 10)
    }
  }
}

const ok = Buffer.from('HTTP/1.1 200')

async function run(order: Order): Promise<void> {
  const began = performance.now()
  let [from, until] = [Infinity, Infinity]
  const times: number[] = []
  /** All since it began; and since it is warm, within the time and behind it. */
  let [all, answered, late, failed] = [0, 0, 0, 0]
  let cpu = process.cpuUsage()
  const warming = setInterval(() => {
    const now = performance.now()
    const enough = now >= began + order.warmUpMs && all * order.batchSize >= order.warmUpCalls
    if (!enough && now < began + maxWarmUpMs) return
    clearInterval(warming)
    from = now
    until = now + order.measureMs
    cpu = process.cpuUsage()
    process.send!({ kind: 'warm' })
  }, 10)
  const idle: (() => void)[] = []
  const due: number[] = []
  const sockets: Socket[] = []
  let open = order.connections
  const finished = Promise.withResolvers<void>()
  const end = () => {
    if (--open === 0) finished.resolve()
  }
  for (let n = 0; n < order.connections; n++) {
    const { bytes, ids } = template(order)
    let startedAt = 0
    const socket = connect({ port: order.port, host: '127.0.0.1', noDelay: true })
    sockets.push(socket)
    const send = (at: number) => {
      startedAt = at
      stamp(bytes, ids)
      socket.write(bytes)
    }
    const next = () => {
      const now = performance.now()
      if (now > until) return end()
      if (order.rate === 0) return send(now)
      const at = due.shift()
      if (at === undefined) idle.push(() => send(due.shift()!))
      else send(at)
    }
    let rest = 0
    socket.on('data', (chunk: Buffer) => {
      // Answers are small: head and body nearly always come in one piece.
      if (rest === 0 && !chunk.subarray(0, ok.length).equals(ok)) failed++
      if (chunk.at(-1) !== 0x7d) return void rest++
      rest = 0
      const now = performance.now()
      all++
      if (now > until) late++
      else if (now > from) {
        answered++
        times.push(now - startedAt)
      }
      next()
    })
    socket.on('error', () => failed++)
    socket.once('connect', next)
  }
  let timer: NodeJS.Timeout | undefined
  if (order.rate > 0) {
    let sent = 0
    timer = setInterval(() => {
      const now = performance.now()
      if (now > until) {
        clearInterval(timer)
        for (let n = idle.length; n > 0; n--) end()
        idle.length = 0
        return
      }
      for (const total = Math.floor(((now - began) / 1_000) * order.rate); sent < total; sent++) {
        due.push(began + (sent / order.rate) * 1_000)
        idle.pop()?.()
      }
    }, 1)
  }
  await finished.promise
  const { user, system } = process.cpuUsage(cpu)
  for (const socket of sockets) socket.destroy()
  times.sort((a, b) => a - b)
  const quantile = (share: number) => times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0
  process.send!({
    kind: 'posted',
    perSecond: (answered * order.batchSize * 1_000) / order.measureMs,
    calls: (answered + late) * order.batchSize,
    failed,
    p50Ms: quantile(0.5),
    p99Ms: quantile(0.99),
    cpuShare: (user + system) / 1_000 / (performance.now() - from),
  })
}

process.on('message', (order: Order) => void run(order))
process.on('disconnect', () => process.exit())
process.send!({ kind: 'listening' })
