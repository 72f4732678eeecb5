import { createServer } from 'node:net'
import { randomInt } from 'node:crypto'
import { PostriderError } from '../errors.ts'

/** Times that a server is started, each time on other free ports. */
const maxStarts = 3

/** Whether a port of 127.0.0.1 can be listened on now. */
export function isPortFree(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(false)
      else
        reject(new PostriderError('local', `port ${port} cannot be used: ${error.message}`, { cause: error }))
    })
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)))
  })
}

/**
 * A free port of 127.0.0.1, below the range from which systems draw the near end of outgoing connections
 * (32768 and up on Linux, 49152 and up elsewhere). A port of that range could be lost to a connection while its
 * server restarts; a client that tries again and again can even end up connected to itself.
 */
export async function freePort(except: readonly number[] = []): Promise<number> {
  for (let tries = 0; tries < 1000; tries++) {
    const port = randomInt(20_000, 32_000)
    if (!except.includes(port) && (await isPortFree(port))) return port
  }
  throw new PostriderError('local', 'no free port between 20000 and 32000 on 127.0.0.1')
}

/** Starts a server on free ports, and again where another process took one of them before the server did. */
export async function startOnFreePorts<T>(start: () => Promise<T>): Promise<T> {
  for (let starts = 1; ; starts++) {
    try {
      return await start()
    } catch (error) {
      const isLost = error instanceof PostriderError && /already in use|BindException/.test(error.message)
      if (!isLost || starts === maxStarts) throw error
    }
  }
}
