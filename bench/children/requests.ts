import type { Socket } from 'node:net'

/**
 * Finds where each request on a raw socket ends and passes on its head, as it stands before the empty line. Node's
 * own HTTP server would take as much of a core as what is measured.
 */
export function eachRequest(socket: Socket, onRequest: (head: string) => void): void {
  let rest: Buffer | null = null
  socket.setNoDelay(true)
  socket.on('error', () => {})
  socket.on('data', (chunk: Buffer) => {
    let data: Buffer = rest ? Buffer.concat([rest, chunk]) : chunk
    rest = null
    for (;;) {
      const end = data.indexOf('\r\n\r\n')
      if (end < 0) break
      const head = data.toString('latin1', 0, end)
      const length = Number(/ontent-[Ll]ength: (\d+)/.exec(head)?.[1] ?? 0)
      if (data.length < end + 4 + length) break
      onRequest(head)
      data = data.subarray(end + 4 + length)
      if (data.length === 0) return
    }
    rest = data
  })
}

export const okAnswer = Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')

/** Calls back after one and the same delay, in order: cheaper than a timer each. */
export function delayed(delayMs: number): (done: () => void) => void {
  if (delayMs === 0) return (done) => done()
  const waiting: { at: number; done: () => void }[] = []
  let first = 0
  const work = () => {
    const now = performance.now()
    while (first < waiting.length && waiting[first]!.at <= now) waiting[first++]!.done()
    if (first > 10_000) {
      waiting.splice(0, first)
      first = 0
    }
    if (first < waiting.length) setTimeout(work, Math.max(1, waiting[first]!.at - now))
  }
  return (done) => {
    waiting.push({ at: performance.now() + delayMs, done })
    if (waiting.length - first === 1) setTimeout(work, delayMs)
  }
}
