import { isIP, type Socket } from 'node:net'
import { connect as connectSecurely, type SecureContext, type TLSSocket } from 'node:tls'
import { AddressNotAllowedError, hostOf } from './address-guard.ts'
import {
  alternating,
  portOf,
  secureOptions,
  type AddressesOf,
  type Dial,
  type Dialed,
  type DialOptions,
  type Hangup,
  type TroubledAddresses,
} from './dial.ts'
import type { ProxyBreaker } from './proxy-breaker.ts'
import { ClosedByServer, describe, maxPartBytes, ProxyFailure } from './response.ts'

export interface TunnelSettings {
  /** Of the proxy: scheme, host and port. */
  proxy: URL
  /** `user:password`, for Basic; null: it takes everybody. */
  login: string | null
  /** Connects to the proxy itself. */
  dial: Dial
  /** Of the proxy. */
  troubled: TroubledAddresses
  breaker: ProxyBreaker
  /** The hosts to ask the proxy for, in place of the host of a URL: its addresses, where they were looked up. */
  hostsOf: AddressesOf
  /** The roots to trust at servers; undefined stands for Node's own. */
  secureContext: SecureContext | undefined
}

/**
 * Connects to an origin through a forward proxy (CONNECT: RFC 9110, 9.3.6), so that what comes after is as on a connection
 * of our own: TLS is with the server, and the connection carries one request after another.
 */
export function tunnelBy(settings: TunnelSettings): Dial {
  return (origin, dialed, options) => {
    const tunnel = new Tunnel(origin, dialed, options, settings)
    settings.hostsOf(hostOf(origin.hostname), (error, hosts) => {
      if (error) tunnel.fail(error)
      else tunnel.begin(hosts.map(({ address }) => address))
    })
    return () => tunnel.hangUp()
  }
}

/**
 * Of a name that has more. A proxy that cannot connect to the first may have no way to addresses of its kind: the second is
 * of the other one where there is one.
 */
const maxHosts = 2

/** One connection to an origin, by one connection to the proxy, and another one where it could not connect. */
class Tunnel {
  readonly #origin: URL
  readonly #dialed: Dialed
  readonly #options: DialOptions
  readonly #settings: TunnelSettings
  #left: string[] = []
  /** The host that the proxy was asked for last. */
  #asked = ''
  #hangup: Hangup = () => {}
  #secured: TLSSocket | null = null
  #isOver = false
  #asking: Asking | null = null

  constructor(origin: URL, dialed: Dialed, options: DialOptions, settings: TunnelSettings) {
    this.#origin = origin
    this.#dialed = dialed
    this.#options = options
    this.#settings = settings
  }

  begin(hosts: readonly string[]): void {
    if (this.#isOver) return
    this.#left = this.#options.troubled.last(alternating(hosts)).slice(0, maxHosts)
    this.#next()
  }

  fail(error: Error, untrusted = false): void {
    if (this.#isOver) return
    this.#end()
    this.#dialed.onEnded(error, untrusted)
  }

  hangUp(): void {
    if (this.#isOver) return
    // The proxy may wait for an address that does not answer.
    if (this.#dialed.waitsForProxy) this.#options.troubled.add(this.#asked)
    this.#asking?.giveUp()
    this.#end()
  }

  #end(): void {
    this.#isOver = true
    this.#secured?.destroy()
    this.#hangup()
  }

  #next(): void {
    const host = this.#left.shift()!
    this.#asked = host
    this.#dialed.waitsForProxy = true
    const { breaker } = this.#settings
    const begun = breaker.begin()
    if ('leftAloneMs' in begun) {
      const left = `it is left alone for another ${Math.ceil(begun.leftAloneMs / 1_000)} s`
      this.fail(new ProxyFailure(`the proxy could not be reached of late: ${left}`))
      return
    }
    const asking = new Asking(host, portOf(this.#origin), this.#settings, {
      onSaid: (event) => breaker.ended(begun, event),
      onOpen: (socket) => {
        this.#dialed.waitsForProxy = false
        this.#options.troubled.remove(host)
        this.#onOpen(socket)
      },
      onEnded: (error) => {
        const hasFailed = error instanceof ProxyFailure && error.status !== null && error.status >= 500
        if (hasFailed) this.#options.troubled.add(host)
        if (!hasFailed || this.#left.length === 0 || this.#isOver) this.fail(error)
        else {
          this.#hangup()
          this.#next()
        }
      },
    })
    this.#asking = asking
    const { dial, proxy, troubled } = this.#settings
    this.#hangup = dial(proxy, asking, { session: null, troubled, secureContext: null })
  }

  #onOpen(socket: Socket): void {
    if (this.#isOver) return
    if (this.#origin.protocol !== 'https:') {
      this.#onConnected(socket)
      return
    }
    const secureContext = this.#options.secureContext ?? this.#settings.secureContext
    const options = secureOptions(this.#origin, secureContext, this.#options.session)
    const secured = connectSecurely({ ...options, socket })
    this.#secured = secured
    const onEnded = (error: Error) => this.fail(error, !!secured.authorizationError)
    secured.once('secureConnect', () => this.#onConnected(secured))
    secured.on('error', onEnded)
    secured.on('end', () => onEnded(new ClosedByServer('other side closed')))
    secured.on('close', () => onEnded(new ClosedByServer('closed')))
    secured.on('session', (session: Buffer) => this.#dialed.onSession(session))
  }

  #onConnected(socket: Socket): void {
    if (this.#isOver) return
    // Node reads into a buffer of the caller's only from sockets that it opens by itself.
    if (!this.#dialed.readsStream) socket.on('data', (data: Buffer) => this.#dialed.onRead(data)).resume()
    this.#dialed.onConnected(socket)
  }
}

interface AskingOwner {
  /** Once: whether the proxy answered; null where nobody waited for it any longer. */
  onSaid(event: 'success' | 'failure' | null): void
  /** The proxy has connected: what goes through the socket goes to the server. */
  onOpen(socket: Socket): void
  /** It has not, or the connection has ended since. */
  onEnded(error: Error): void
}

/** What a connection to the proxy is for: it asks for one to a server, and then is that connection. */
class Asking implements Dialed {
  readonly readsStream = true
  waitsForProxy = false
  readonly #authority: string
  readonly #settings: TunnelSettings
  readonly #owner: AskingOwner
  #socket: Socket | null = null
  #isOpen = false
  #hasSaid = false
  #answer = ''

  constructor(host: string, port: number, settings: TunnelSettings, owner: AskingOwner) {
    this.#authority = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`
    this.#settings = settings
    this.#owner = owner
  }

  onConnected(socket: Socket): void {
    this.#socket = socket
    socket.on('data', this.#onData)
    const { login } = this.#settings
    const fields = [
      // Of the address, too: a proxy that went by a name here would look it up by itself.
      `Host: ${this.#authority}`,
      'User-Agent: postrider/1.0',
      ...(login === null ? [] : [`Proxy-Authorization: Basic ${Buffer.from(login).toString('base64')}`]),
    ]
    socket.write(`CONNECT ${this.#authority} HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\n`)
  }

  readonly #onData = (data: Buffer): void => {
    this.#answer += data.toString('latin1')
    const status = statusOf(this.#answer)
    if (status === 'open') return
    if (status === 'not_http') this.#fail('answered CONNECT with what is not HTTP/1')
    else if (status < 200 || status > 299)
      this.#fail(`answered CONNECT with ${status}${hints[status] ?? ''}`, status)
    else this.#onHead()
  }

  /** Its fields mean nothing: not even Content-Length (RFC 9110, 9.3.6). */
  #onHead(): void {
    const end = this.#answer.indexOf('\r\n\r\n')
    if (end < 0) {
      if (this.#answer.length > maxPartBytes) this.#fail('answered CONNECT with too long a header')
      return
    }
    // A server speaks first neither in HTTP nor in TLS, so this was meant for nobody.
    if (this.#answer.length > end + 4) {
      this.#fail('sent something behind its answer to CONNECT')
      return
    }
    const socket = this.#socket!
    socket.off('data', this.#onData)
    socket.pause()
    this.#answer = ''
    this.#isOpen = true
    this.#said('success')
    this.#owner.onOpen(socket)
  }

  /** Nobody waits for it any longer: one that took the connection may wait for a server. */
  giveUp(): void {
    this.#said(this.#socket === null ? 'failure' : null)
  }

  #said(event: 'success' | 'failure' | null): void {
    if (this.#hasSaid) return
    this.#hasSaid = true
    this.#owner.onSaid(event)
  }

  #fail(phrase: string, status: number | null = null): void {
    this.#said(status === null ? 'failure' : 'success')
    this.#socket!.off('data', this.#onData)
    this.#owner.onEnded(new ProxyFailure(`the proxy ${phrase}`, status))
  }

  onRead(): void {}

  onSession(): void {}

  onEnded(error: Error, untrusted: boolean): void {
    // An address that is not allowed says nothing of the proxy.
    this.#said(error instanceof AddressNotAllowedError ? null : 'failure')
    this.#owner.onEnded(this.#isOpen ? error : this.#failureOf(error, untrusted))
  }

  #failureOf(error: Error, untrusted: boolean): Error {
    if (error instanceof AddressNotAllowedError)
      return new AddressNotAllowedError(`the proxy may not be used: ${error.message}`)
    if (this.#socket !== null && error instanceof ClosedByServer)
      return new ProxyFailure('the proxy closed the connection before it answered CONNECT')
    const failure = untrusted ? 'has a certificate that is not trusted' : 'could not be reached'
    return new ProxyFailure(`the proxy ${failure}: ${describe(error, 'WEBHOOK_PROXY_CA_FILE')}`)
  }
}

const hints: Readonly<Record<number, string>> = {
  407: ': WEBHOOK_PROXY has no user and password that it takes',
}

/** Of the answer so far; `open`: its first line has not ended. */
function statusOf(answer: string): number | 'open' | 'not_http' {
  const beginning = 'HTTP/1.'
  if (!answer.startsWith(beginning.slice(0, answer.length))) return 'not_http'
  const end = answer.indexOf('\n')
  if (end < 0) return answer.length > maxPartBytes ? 'not_http' : 'open'
  const status = /^HTTP\/1\.[01] ([1-9]\d\d)(?: .*)?\r$/.exec(answer.slice(0, end))?.[1]
  return status === undefined ? 'not_http' : Number(status)
}
