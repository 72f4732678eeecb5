import type { Socket } from 'node:net'
import { methodPatch } from './patch.ts'

interface Connection {
  socket?: Socket | undefined
}

/**
 * kafkajs calls `unref` on a connection's socket at each disconnect, also on one that was closed long ago. Node puts
 * such a call off until the socket connects, by one more listener each time. Now a disconnect lets go of a socket that
 * is closed already.
 */
export const forgetClosedSocket = methodPatch({
  name: 'forget-closed-socket',
  file: 'src/network/connection',
  method: 'disconnect',
  fields: { chunks: 'array' },
  instead(this: Connection, disconnect: () => Promise<unknown>) {
    if (this.socket?.destroyed) this.socket = undefined
    return disconnect.call(this)
  },
})
