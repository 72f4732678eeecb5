import { createServer, type Socket } from 'node:net'
import { once } from 'node:events'
import type { TestContext } from 'node:test'

/** A server on loopback that writes bytes by hand; ended after the test. */
export interface RawServer {
  url: string
  /** Connections so far. */
  connections(): number
  /** Whole requests as they came, in order. */
  requests: string[]
}

/**
 * `answer` is called with each whole request, in order over all connections, from 0; with `answersEarly`, with the first
 * bytes of each connection, and nothing more is read from it.
 */
export async function startRawServer(
  t: TestContext,
  answer: (socket: Socket, index: number) => void,
  { answersEarly = false } = {},
): Promise<RawServer> {
  const sockets = new Set<Socket>()
  const requests: string[] = []
  let accepted = 0
  const server = createServer((socket) => {
    accepted++
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket)).on('error', () => {})
    let come = ''
    if (answersEarly) {
      socket.once('data', () => answer(socket.pause(), accepted - 1))
      return
    }
    socket.on('data', (data) => {
      come += data.toString('latin1')
      for (let end = endOfRequest(come); end > 0; end = endOfRequest(come)) {
        requests.push(come.slice(0, end))
        come = come.slice(end)
        answer(socket, requests.length - 1)
      }
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(async () => {
    for (const socket of sockets) socket.destroy()
    server.close()
    await once(server, 'close')
  })
  const { port } = server.address() as { port: number }
  return { url: `http://127.0.0.1:${port}/hook`, connections: () => accepted, requests }
}

/** 0: it is not whole. */
function endOfRequest(come: string): number {
  const head = come.indexOf('\r\n\r\n')
  if (head < 0) return 0
  const end = head + 4 + Number(/^content-length: (\d+)$/im.exec(come.slice(0, head))![1])
  return come.length < end ? 0 : end
}
