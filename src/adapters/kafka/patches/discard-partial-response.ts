import type { Socket } from 'node:net'
import { methodPatch } from './patch.ts'

interface Connection {
  isConnected(): boolean
  socket?: Socket
  chunks: Buffer[]
  bytesBuffered: number
  bytesNeeded: number
}

/** The size of a response, which stands before it. */
const sizeBytes = 4

/**
 * When a connection breaks in the middle of a response, kafkajs keeps the part that came and takes the first bytes of
 * the next socket for the rest of it: responses are lost and the sizes of later ones misread. Now a new socket begins
 * with a new response, and the socket before it is not listened to any more.
 */
export const discardPartialResponse = methodPatch({
  name: 'discard-partial-response',
  file: 'src/network/connection',
  method: 'connect',
  calls: ['isConnected'],
  fields: { chunks: 'array', bytesBuffered: 'number', bytesNeeded: 'number' },
  instead(this: Connection, connect: () => Promise<unknown>) {
    // A socket that is connecting has brought nothing yet, and kafkajs waits for its outcome.
    if (!this.isConnected() && !this.socket?.connecting) {
      this.socket?.removeAllListeners().on('error', () => {})
      this.socket?.destroy()
      this.chunks = []
      this.bytesBuffered = 0
      this.bytesNeeded = sizeBytes
    }
    return connect.call(this)
  },
})
