import { connect as connectPlain, isIP, type LookupFunction, type Socket } from 'node:net'
import { connect as connectSecurely, type SecureContext } from 'node:tls'

/** Reads what comes on a socket. */
export interface SocketReader {
  /** `data` is a window on memory that the next read writes over. */
  onRead(data: Buffer): void
}

/** A socket that is connecting, and the event with which it is connected. */
export interface Connecting {
  socket: Socket
  connected: 'connect' | 'secureConnect'
}

/** Begins to connect to an origin; `session` is a TLS session to take up. May throw. */
export type Connect = (origin: URL, reader: SocketReader, session: Buffer | null) => Connecting

const readerOf = Symbol('reader')
type ReadSocket = Socket & { [readerOf]?: SocketReader }

const tcpKeepAliveMs = 60_000

/** Of a URL's host name: a name, or an address without the brackets of IPv6. */
export const hostOf = (hostname: string): string =>
  hostname.startsWith('[') ? hostname.slice(1, -1) : hostname

/**
 * All sockets read into one buffer, one after another: what comes is looked at before the next read. Streams would give
 * each read a buffer of its own, put it in a queue and take it out again.
 */
const onread = {
  buffer: Buffer.allocUnsafeSlow(65_536),
  callback(this: ReadSocket, length: number, buffer: Uint8Array): boolean {
    this[readerOf]?.onRead((buffer as Buffer).subarray(0, length))
    return true
  },
}

/** Connects over TCP, or over TLS with verified certificates. `secureContext`: the roots to trust; default Node's own. */
export function connectBy(lookup: LookupFunction, secureContext?: SecureContext): Connect {
  return ({ protocol, hostname, port }, reader, session) => {
    const host = hostOf(hostname)
    const secure = protocol === 'https:'
    const target = { host, port: port === '' ? (secure ? 443 : 80) : Number(port), lookup, onread }
    const socket: ReadSocket = secure
      ? connectSecurely({
          ...target,
          // NODE_TLS_REJECT_UNAUTHORIZED would decide otherwise.
          rejectUnauthorized: true,
          ALPNProtocols: ['http/1.1'],
          ...(isIP(host) === 0 && { servername: host }),
          ...(session && { session }),
          ...(secureContext && { secureContext }),
        })
      : connectPlain(target)
    socket[readerOf] = reader
    socket.setNoDelay(true)
    socket.setKeepAlive(true, tcpKeepAliveMs)
    return { socket, connected: secure ? 'secureConnect' : 'connect' }
  }
}
