// A receiver on raw sockets, in a process and on a core of its own: it finds where each request ends, answers 200
// and counts. It keeps when the first and the last of the expected requests came, and its own CPU time.
import { createServer } from 'node:net'

const answer = Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
const delayMs = Number(process.argv[2] ?? 0)

let count = 0
let expected = Infinity
let firstAt = 0
let lastAt = 0
let cpuAtFirst = process.cpuUsage()
let cpuUsed = 0

function arrived(): void {
  if (count === 0) {
    firstAt = performance.now()
    cpuAtFirst = process.cpuUsage()
  }
  count++
  if (count !== expected) return
  lastAt = performance.now()
  const { user, system } = process.cpuUsage(cpuAtFirst)
  cpuUsed = (user + system) / 1_000
  process.send!({ kind: 'done', count, elapsedMs: lastAt - firstAt, cpuMs: cpuUsed })
}

const server = createServer((socket) => {
  socket.setNoDelay(true)
  socket.on('error', () => {})
  let rest: Buffer | null = null
  socket.on('data', (chunk: Buffer) => {
    let data: Buffer = rest ? Buffer.concat([rest, chunk]) : chunk
    rest = null
    for (;;) {
      const head = data.indexOf('\r\n\r\n')
      if (head < 0) break
      const match = /ontent-[Ll]ength: (\d+)/.exec(data.toString('latin1', 0, head))
      const end = head + 4 + Number(match?.[1] ?? 0)
      if (data.length < end) break
      arrived()
      if (delayMs === 0) socket.write(answer)
      else setTimeout(() => socket.write(answer), delayMs)
      data = data.subarray(end)
      if (data.length === 0) return
    }
    rest = data
  })
})

process.on('message', (message: { expect?: number; progress?: boolean }) => {
  if (message.expect !== undefined) {
    count = 0
    expected = message.expect
    process.send!({ kind: 'ready' })
  } else {
    process.send!({ kind: 'progress', count })
  }
})
process.on('disconnect', () => process.exit())
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  process.send!({ kind: 'listening', port: typeof address === 'object' ? address!.port : 0 })
})
