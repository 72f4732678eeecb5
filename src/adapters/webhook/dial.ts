import { connect as connectPlain, isIP, type Socket } from 'node:net'
import type { LookupAddress } from 'node:dns'
import {
  connect as connectSecurely,
  createSecureContext,
  TLSSocket,
  type ConnectionOptions,
  type SecureContext,
} from 'node:tls'
import { hostOf } from './address-guard.ts'
import { ClosedByServer } from './response.ts'

/** What a socket is connected for. */
export interface Dialed {
  /** Whether what it waits for is the forward proxy's to do. */
  waitsForProxy: boolean
  /** It reads the socket as a stream, and not by `onRead`. */
  readonly readsStream: boolean
  onConnected(socket: Socket): void
  /** `data` is a window on memory that the next read writes over. */
  onRead(data: Buffer): void
  /** A TLS session that another connection can take up. */
  onSession(session: Buffer): void
  /** There is no connection, or none any more. `untrusted`: the server's certificate was not trusted. */
  onEnded(error: Error, untrusted: boolean): void
}

/** Ends what was begun, whatever it is doing. Nothing is called afterwards. */
export type Hangup = () => void

export interface DialOptions {
  /** A TLS session to take up. */
  session: Buffer | null
  /** Addresses that did not answer of late. Kept up to date. */
  troubled: TroubledAddresses
  /** In place of that of the way out, where the origin's connections have something of their own in TLS. */
  secureContext: SecureContext | null
}

/** Connects to an origin. Nothing is called back from within. */
export type Dial = (origin: URL, dialed: Dialed, options: DialOptions) => Hangup

/** The addresses of a host, which is a name or an address, that may be connected to; or an error. Calls back later. */
export type AddressesOf = (
  host: string,
  callback: (error: Error | null, addresses: LookupAddress[]) => void,
) => void

/** This machine's addresses that connections are made from, by family; where there is none, the system chooses. */
export type SourceAddresses = Readonly<Partial<Record<number, string>>>

const dialedFor = Symbol('dialed')
type ReadSocket = Socket & { [dialedFor]?: Dialed }

const tcpKeepAliveMs = 60_000
/** Of a name that has more, in one attempt. */
const maxAddresses = 4
/** When the next address is tried beside those that have not answered yet, in ms (RFC 8305, 5). */
const nextAddressMs = 250

/**
 * All sockets read into one buffer, one after another: what comes is looked at before the next read. Streams would give
 * each read a buffer of its own, put it in a queue and take it out again.
 */
const onread = {
  buffer: Buffer.allocUnsafeSlow(65_536),
  callback(this: ReadSocket, length: number, buffer: Uint8Array): boolean {
    this[dialedFor]?.onRead((buffer as Buffer).subarray(0, length))
    return true
  },
}

/**
 * Connects over TCP, or over TLS with verified certificates.
 *
 * The addresses are tried here and not by Node, which tries them one after the other, gives up each after 250 ms, and
 * offers no TLS session once the first has failed.
 */
export function dialBy(addressesOf: AddressesOf, settings: DialSettings): Dial {
  return (origin, dialed, options) => {
    const dialing = new Dialing(origin, dialed, options, settings)
    addressesOf(hostOf(origin.hostname), (error, addresses) => {
      if (error) dialing.fail(error)
      else dialing.begin(addresses.map(({ address }) => address))
    })
    return () => dialing.hangUp()
  }
}

export interface DialSettings {
  /** The roots to trust; undefined stands for Node's own. */
  secureContext: SecureContext | undefined
  source: SourceAddresses
}

/** How a server is verified over TLS, and what it is told. */
export function secureOptions(
  { hostname }: URL,
  secureContext: SecureContext | undefined,
  session: Buffer | null,
): ConnectionOptions {
  const host = hostOf(hostname)
  return {
    // What the certificate is checked for where no name is sent.
    host,
    // NODE_TLS_REJECT_UNAUTHORIZED would decide otherwise.
    rejectUnauthorized: true,
    ALPNProtocols: ['http/1.1'],
    // Without the dot that ends an absolute name (RFC 6066, 3).
    ...(isIP(host) === 0 && { servername: host.replace(/\.$/, '') }),
    ...(session && { session }),
    secureContext: secureContext ?? (nodesOwnRoots ??= createSecureContext()),
  }
}

/** A receiver that restarts ends a thousand connections at once, and the stack of an error says nothing there. */
const endedByServer = new ClosedByServer('other side closed')
const closed = new ClosedByServer('closed')

/** Without it Node would make one for each connection. */
let nodesOwnRoots: SecureContext | undefined

/** Of an origin, also where it is its scheme's own. */
export const portOf = ({ protocol, port }: URL): number =>
  port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port)

class Dialing {
  readonly #origin: URL
  readonly #dialed: Dialed
  readonly #options: DialOptions
  readonly #settings: DialSettings
  readonly #sockets = new Map<Socket, string>()
  readonly #errors: Error[] = []
  #left: string[] = []
  #timer: NodeJS.Timeout | undefined
  /** The one that the server accepted first. */
  #accepted: Socket | null = null
  #isOver = false

  constructor(origin: URL, dialed: Dialed, options: DialOptions, settings: DialSettings) {
    this.#origin = origin
    this.#dialed = dialed
    this.#options = options
    this.#settings = settings
  }

  begin(addresses: readonly string[]): void {
    if (this.#isOver) return
    this.#left = this.#options.troubled.last(alternating(addresses)).slice(0, maxAddresses)
    this.#next()
  }

  fail(error: Error): void {
    if (this.#isOver) return
    this.hangUp()
    const isUntrusted = this.#accepted instanceof TLSSocket && !!this.#accepted.authorizationError
    this.#dialed.onEnded(error, isUntrusted)
  }

  hangUp(): void {
    if (this.#isOver) return
    this.#isOver = true
    clearTimeout(this.#timer)
    for (const [socket, address] of this.#sockets) {
      socket.destroy()
      if (this.#accepted === null) this.#options.troubled.add(address)
    }
  }

  #next(): void {
    clearTimeout(this.#timer)
    const address = this.#left.shift()
    if (address === undefined) {
      if (this.#sockets.size > 0) return
      const [error] = this.#errors
      this.fail(this.#errors.length === 1 ? error! : new AggregateError(this.#errors))
      return
    }
    if (this.#left.length > 0) this.#timer = setTimeout(() => this.#next(), nextAddressMs)
    try {
      this.#connect(address)
    } catch (error) {
      // Later, as all failures to connect.
      setImmediate(() => this.fail(error as Error))
    }
  }

  #connect(address: string): void {
    const { source } = this.#settings
    const secureContext = this.#options.secureContext ?? this.#settings.secureContext
    const secure = this.#origin.protocol === 'https:'
    const localAddress = source[isIP(address)]
    const target = {
      host: address,
      port: portOf(this.#origin),
      ...(localAddress !== undefined && { localAddress }),
      ...(!this.#dialed.readsStream && { onread }),
    }
    const socket: ReadSocket = secure
      ? connectSecurely({ ...secureOptions(this.#origin, secureContext, this.#options.session), ...target })
      : connectPlain(target)
    this.#sockets.set(socket, address)
    socket.setNoDelay(true)
    socket.setKeepAlive(true, tcpKeepAliveMs)
    socket.once('connect', () => this.#onAccepted(socket, address))
    if (secure) socket.once('secureConnect', () => this.#onConnected(socket))
    socket.on('error', (error) => this.#onEnded(socket, address, error))
    socket.on('end', () => this.#onEnded(socket, address, endedByServer))
    socket.on('close', () => this.#onEnded(socket, address, closed))
    if (secure) socket.on('session', (session: Buffer) => this.#dialed.onSession(session))
  }

  #onAccepted(socket: ReadSocket, address: string): void {
    if (this.#isOver || this.#accepted !== null) return
    this.#accepted = socket
    clearTimeout(this.#timer)
    for (const other of this.#sockets.keys()) if (other !== socket) other.destroy()
    this.#sockets.clear()
    this.#sockets.set(socket, address)
    this.#options.troubled.remove(address)
    socket[dialedFor] = this.#dialed
    if (!(socket instanceof TLSSocket)) this.#onConnected(socket)
  }

  #onConnected(socket: Socket): void {
    if (!this.#isOver) this.#dialed.onConnected(socket)
  }

  #onEnded(socket: Socket, address: string, error: Error): void {
    if (this.#isOver || !this.#sockets.has(socket)) return
    if (socket === this.#accepted) {
      this.fail(error)
      return
    }
    this.#sockets.delete(socket)
    this.#options.troubled.add(address)
    this.#errors.push(error)
    this.#next()
  }
}

/** IPv6 and IPv4 by turns, beginning with the kind of the first, and otherwise in the order given (RFC 8305, 4). */
export function alternating(addresses: readonly string[]): string[] {
  const first = addresses.filter((address) => isIP(address) === isIP(addresses[0]!))
  const second = addresses.filter((address) => !first.includes(address))
  const turns = first.flatMap((address, index) =>
    index < second.length ? [address, second[index]!] : [address],
  )
  return [...turns, ...second.slice(first.length)]
}

/** For how long an address that did not answer comes after the others, in ms. */
const troubledMs = 10 * 60_000

/** Addresses of one origin that did not answer of late. */
export class TroubledAddresses {
  readonly #since = new Map<string, number>()
  readonly #steadyNow: () => number

  constructor(steadyNow: () => number) {
    this.#steadyNow = steadyNow
  }

  add(address: string): void {
    this.#since.set(address, this.#steadyNow())
  }

  remove(address: string): void {
    if (this.#since.size > 0) this.#since.delete(address)
  }

  /** Puts them behind the others. */
  last(addresses: readonly string[]): string[] {
    if (this.#since.size === 0) return [...addresses]
    const now = this.#steadyNow()
    for (const [address, since] of this.#since) if (now - since > troubledMs) this.#since.delete(address)
    const isTroubled = (address: string) => this.#since.has(address)
    return [...addresses.filter((each) => !isTroubled(each)), ...addresses.filter(isTroubled)]
  }
}
