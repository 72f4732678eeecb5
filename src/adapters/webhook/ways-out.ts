import { isIP } from 'node:net'
import type { SecureContext } from 'node:tls'
import { noProxy } from '../../core/delivery/proxy-url.ts'
import { AddressGuard, AddressNotAllowedError } from './address-guard.ts'
import { dialBy, TroubledAddresses, type AddressesOf, type Dial, type SourceAddresses } from './dial.ts'
import type { NameLookup } from './name-lookup.ts'
import { ProxyBreaker } from './proxy-breaker.ts'
import { tunnelBy } from './tunnel.ts'

/** How the deployment has requests go out. */
export interface WayOutSettings {
  /** A forward proxy for all destinations that name none themselves. Its address is not vetted. */
  proxy: { url: string; login: string | null } | null
  /** Proxies look names up, and vet what they resolve to. */
  proxyResolves: boolean
  /** Addresses of this machine to connect from: at most one of each family. None: the system chooses. */
  sourceAddresses: readonly string[]
  /** Of addresses of webhooks; null: both. */
  ipFamily: 4 | 6 | null
}

export const plainWayOut: WayOutSettings = {
  proxy: null,
  proxyResolves: false,
  sourceAddresses: [],
  ipFamily: null,
}

/** A way to servers: directly, or through one proxy. */
export interface WayOut {
  /** The proxy's origin; empty where there is none. */
  readonly proxy: string
  readonly dial: Dial
}

export interface WaysOutParts {
  guard: AddressGuard
  names: NameLookup
  /** The roots to trust at servers, and at proxies. */
  trust: { servers: SecureContext | undefined; proxies: SecureContext | undefined }
  steadyNow: () => number
}

const everywhere = ['0.0.0.0/0', '::/0']

/** Directly, and through each proxy that was asked for: a connection is made by one of them. */
export class WaysOut {
  readonly #settings: WayOutSettings
  readonly #parts: WaysOutParts
  readonly #direct: WayOut
  readonly #byProxy = new Map<string, WayOut>()
  readonly #source: SourceAddresses
  readonly #addressesOfServers: AddressesOf

  constructor(settings: WayOutSettings, parts: WaysOutParts) {
    this.#settings = settings
    this.#parts = parts
    this.#source = Object.fromEntries(settings.sourceAddresses.map((address) => [isIP(address), address]))
    this.#addressesOfServers = onlyOf(settings.ipFamily, 'WEBHOOK_IP_FAMILY', addressesBy(parts.guard))
    this.#direct = { proxy: '', dial: this.#dialFromHere(this.#addressesOfServers, parts.trust.servers) }
  }

  /** @param own of a destination: the URL of a proxy, `none`, or null for that of the deployment */
  of(own: string | null): WayOut {
    const url = own ?? this.#settings.proxy?.url ?? noProxy
    if (url === noProxy) return this.#direct
    const { origin } = new URL(url)
    const known = this.#byProxy.get(origin)
    if (known !== undefined) return known
    const way = { proxy: origin, dial: this.#dialThrough(new URL(origin)) }
    this.#byProxy.set(origin, way)
    return way
  }

  #dialThrough(proxy: URL): Dial {
    const { guard, names, trust, steadyNow } = this.#parts
    const { proxy: given, proxyResolves } = this.#settings
    const isGiven = given !== null && new URL(given.url).origin === proxy.origin
    // One that a destination names is trusted no more than its URLs are.
    const addressesOfProxies = addressesBy(isGiven ? new AddressGuard(everywhere, names) : guard)
    return tunnelBy({
      proxy,
      login: isGiven ? given.login : null,
      dial: this.#dialFromHere(addressesOfProxies, trust.proxies),
      troubled: new TroubledAddresses(steadyNow),
      breaker: new ProxyBreaker(steadyNow),
      hostsOf: proxyResolves ? this.#unresolved : this.#addressesOfServers,
      secureContext: trust.servers,
    })
  }

  #dialFromHere(addressesOf: AddressesOf, secureContext: SecureContext | undefined): Dial {
    const [family, ...others] = Object.keys(this.#source).map(Number)
    const isOne = family !== undefined && others.length === 0
    const reachable = onlyOf(isOne ? family : null, 'WEBHOOK_SOURCE_ADDRESS', addressesOf)
    return dialBy(reachable, { secureContext, source: this.#source })
  }

  /** Names as they are, but for those of this machine, which would be those of the proxy's. Addresses are vetted. */
  readonly #unresolved: AddressesOf = (host, callback) => {
    if (isIP(host) !== 0) {
      this.#addressesOfServers(host, callback)
      return
    }
    const refusal = this.#parts.guard.hostRefusal(host)
    queueMicrotask(() => {
      if (refusal === null) callback(null, [{ address: host, family: 0 }])
      else callback(new AddressNotAllowedError(refusal), [])
    })
  }
}

const addressesBy =
  (guard: AddressGuard): AddressesOf =>
  (host, callback) =>
    guard.addressesOf(host, callback)

/** Only addresses of this family; null: of both. */
function onlyOf(family: number | null, setting: string, addressesOf: AddressesOf): AddressesOf {
  if (family === null) return addressesOf
  return (host, callback) =>
    addressesOf(host, (error, addresses) => {
      const fitting = addresses.filter(({ address }) => isIP(address) === family)
      if (error !== null || fitting.length > 0) callback(error, fitting)
      else callback(new Error(`${host} has no IPv${family} address, and ${setting} allows no other`), [])
    })
}
