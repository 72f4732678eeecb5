import { createServer, type Server, type Socket } from 'node:net'
import { connect } from 'node:net'
import type { AddressInfo } from 'node:net'

/** A TCP proxy on loopback, between the forwarders and the broker: what happens on a network happens here. */
export interface TcpProxy {
  port: number
  connections(): number
  /** Resets every connection. With `refuse`, new ones are reset too, until `heal`. */
  cut(refuse?: boolean): void
  /** Holds every chunk back for so long, in both directions; their order stays. */
  delay(ms: number): void
  /** Passes nothing on in either direction, with all connections open, until `heal`: then it all comes. */
  stall(): void
  heal(): void
  close(): Promise<void>
}

interface Lane {
  from: Socket
  to: Socket
  /** What is held back, and when it may go on (monotonic ms). */
  held: { chunk: Buffer; due: number }[]
}

const tickMs = 5

export async function startTcpProxy(targetPort: number): Promise<TcpProxy> {
  const lanes = new Set<Lane>()
  let mode: 'pass' | 'stall' | 'refuse' = 'pass'
  let delayMs = 0

  const flush = (lane: Lane) => {
    const now = performance.now()
    while (mode === 'pass' && lane.held.length > 0 && lane.held[0]!.due <= now)
      lane.to.write(lane.held.shift()!.chunk)
  }
  const timer = setInterval(() => {
    for (const lane of lanes) if (lane.held.length > 0) flush(lane)
  }, tickMs)
  timer.unref()

  const join = (from: Socket, to: Socket) => {
    const lane: Lane = { from, to, held: [] }
    lanes.add(lane)
    from.setNoDelay(true)
    from.on('data', (chunk: Buffer) => {
      if (mode === 'pass' && delayMs === 0 && lane.held.length === 0) to.write(chunk)
      else lane.held.push({ chunk, due: performance.now() + delayMs })
    })
    from.on('error', () => {})
    from.on('close', () => {
      lanes.delete(lane)
      // Through a network that passes nothing on, nobody learns that the other side is gone either.
      if (mode !== 'stall') to.destroy()
    })
  }
  const server: Server = createServer((client) => {
    if (mode === 'refuse') {
      client.on('error', () => {})
      client.resetAndDestroy()
      return
    }
    const broker = connect({ port: targetPort, host: '127.0.0.1' })
    join(client, broker)
    join(broker, client)
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  const dropAll = () => {
    for (const { from } of lanes) from.resetAndDestroy()
  }
  return {
    port: (server.address() as AddressInfo).port,
    connections: () => lanes.size / 2,
    cut(refuse = false) {
      if (refuse) mode = 'refuse'
      dropAll()
    },
    delay: (ms) => void (delayMs = ms),
    stall: () => void (mode = 'stall'),
    heal() {
      mode = 'pass'
      delayMs = 0
      for (const lane of lanes) {
        if (lane.to.destroyed) lane.from.destroy()
        flush(lane)
      }
    },
    async close() {
      clearInterval(timer)
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      dropAll()
      await closed
    },
  }
}
