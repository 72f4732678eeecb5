import type { Socket } from 'node:net'
import { silentLogger, type Patch } from './patch.ts'

interface Connection {
  disconnect(): Promise<unknown>
  socket?: Socket | undefined
}

const file = 'src/network/connection'

/**
 * kafkajs calls `unref` on a connection's socket at each disconnect, also on one that was closed long ago. Node puts
 * such a call off until the socket connects, by one more listener each time: while brokers are away they add up, and
 * Node warns of a leak (MaxListenersExceededWarning). No upstream issue known.
 *
 * Now a disconnect lets go of a socket that is closed already.
 */
export const forgetClosedSocket: Patch = {
  name: 'forget-closed-socket',
  targets: [
    {
      file,
      members: { 'prototype.disconnect': 'function' },
      fields: { args: [{ logger: silentLogger }], kinds: { chunks: 'array' } },
    },
  ],
  install(load) {
    const { prototype } = load(file) as { prototype: Connection }
    const { disconnect } = prototype
    prototype.disconnect = function (this: Connection) {
      if (this.socket?.destroyed) this.socket = undefined
      return disconnect.call(this)
    }
  },
}
