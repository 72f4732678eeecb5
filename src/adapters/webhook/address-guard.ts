import type { LookupAddress } from 'node:dns'
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { NameLookup } from './name-lookup.ts'

type Address = ipaddr.IPv4 | ipaddr.IPv6

/** No address of the host may be connected to. Its message says which address and why, and nothing secret. */
export class AddressNotAllowedError extends Error {
  readonly code = 'ADDRESS_NOT_ALLOWED'
  override name = 'AddressNotAllowedError'
}

/** Azure's metadata and host services; the other clouds' lie in link-local, unique-local or CGNAT networks. */
const azureHost = ipaddr.parseCIDR('168.63.129.16/32')
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3')

/** Of a URL's host name: a name, or an address without the brackets of IPv6. */
export const hostOf = (hostname: string): string =>
  hostname.startsWith('[') ? hostname.slice(1, -1) : hostname

/**
 * Keeps webhooks out of networks that the URL's author should not reach through us: loopback, private, link-local
 * (with the clouds' metadata services), unique-local, CGNAT, multicast, reserved. It decides on addresses, at
 * connect time, so neither a DNS answer nor a later change of it (rebinding) gets round it.
 */
export class AddressGuard {
  readonly #allowed: [Address, number][]
  readonly #names: Pick<NameLookup, 'find'>
  /** Look-ups in flight: connections that open together share one answer. Nothing is kept afterwards. */
  readonly #pending = new Map<string, ((error: Error | null, addresses: LookupAddress[]) => void)[]>()

  /** `allowedNetworks` are CIDRs that may be reached although they are not public. */
  constructor(allowedNetworks: readonly string[], names: Pick<NameLookup, 'find'> = new NameLookup()) {
    this.#allowed = allowedNetworks.map((network) => ipaddr.parseCIDR(network))
    this.#names = names
  }

  /** Why this host of a URL, given as an address, must not be connected to; null also for names, vetted when resolved. */
  addressRefusal(hostname: string): string | null {
    const address = hostOf(hostname)
    const refusal = isIP(address) === 0 ? null : this.refusal(address)
    return refusal === null ? null : notAllowed(address, refusal).message
  }

  /** The same before anything is sent there; `localhost` is always this machine (RFC 6761). */
  readonly hostRefusal = (hostname: string): string | null => {
    if (!/^(.+\.)?localhost\.?$/i.test(hostname)) return this.addressRefusal(hostname)
    const refusal = this.refusal('127.0.0.1')
    return refusal === null || this.refusal('::1') === null
      ? null
      : notAllowed('127.0.0.1', refusal, hostname).message
  }

  /** Null when the address may be connected to, else what kind of address it is. */
  refusal(address: string): string | null {
    if (isIP(address) === 0) return 'not an IP address'
    return this.#refusalOf(ipaddr.parse(address))
  }

  #refusalOf(address: Address): string | null {
    const known = { allowed: this.#allowed, 'metadata service': azureHost }
    const range = ipaddr.subnetMatch(address, known, address.range())
    if (range === 'allowed') return null
    const inner = embeddedIPv4(address)
    if (inner !== null) {
      const refusal = this.#refusalOf(inner)
      return refusal === null ? null : `${refusal}, within an IPv6 address`
    }
    if (range !== 'unicast') return range
    return address instanceof ipaddr.IPv6 && !address.match(globalUnicast) ? 'not global unicast' : null
  }

  /**
   * All addresses of a host that may be connected to, or AddressNotAllowedError when there is none. Calls back later. The
   * host is a name, or an address.
   */
  addressesOf(host: string, callback: (error: Error | null, addresses: LookupAddress[]) => void): void {
    if (isIP(host) === 0) {
      this.#resolve(host, callback)
      return
    }
    const refusal = this.refusal(host)
    const addresses = [{ address: host, family: isIP(host) }]
    queueMicrotask(() => {
      if (refusal === null) callback(null, addresses)
      else callback(notAllowed(host, refusal), [])
    })
  }

  #resolve(hostname: string, callback: (error: Error | null, addresses: LookupAddress[]) => void): void {
    const waiting = this.#pending.get(hostname)
    if (waiting !== undefined) return void waiting.push(callback)
    const callbacks = [callback]
    this.#pending.set(hostname, callbacks)
    this.#names.find(hostname, (error, found) => {
      this.#pending.delete(hostname)
      let failure = error
      let addresses: LookupAddress[] = []
      if (failure === null) {
        addresses = found.filter(({ address }) => this.refusal(address) === null)
        if (addresses.length === 0) failure = refusalError(hostname, found, this)
      }
      for (const each of callbacks) each(failure, addresses)
    })
  }
}

function refusalError(hostname: string, found: LookupAddress[], guard: AddressGuard): Error {
  const first = found[0]
  if (first === undefined)
    return Object.assign(new Error(`${hostname} has no address`), { code: 'ENOTFOUND' })
  return notAllowed(first.address, guard.refusal(first.address)!, hostname)
}

/** `hostname` is what resolved to the address, when it was not given as such. */
export function notAllowed(address: string, refusal: string, hostname?: string): AddressNotAllowedError {
  const of = hostname === undefined ? '' : ` of ${hostname}`
  return new AddressNotAllowedError(
    `the address ${address}${of} is not allowed (${refusal}): WEBHOOK_ALLOWED_NETWORKS allows networks`,
  )
}

/** The IPv4 address that a packet to this IPv6 address may end at: mapped, translated, NAT64, 6to4, compatible. */
function embeddedIPv4(address: Address): ipaddr.IPv4 | null {
  if (!(address instanceof ipaddr.IPv6)) return null
  const parts = address.parts
  const range = address.range()
  if (range === '6to4') return fromParts(parts[1]!, parts[2]!)
  // 64:ff9b:1::/48 (local-use NAT64, RFC 8215) may place the IPv4 address elsewhere: never allowed by what it holds.
  if (range === 'rfc6052') return parts[2] === 0 ? fromParts(parts[6]!, parts[7]!) : null
  if (range === 'ipv4Mapped' || range === 'rfc6145') return fromParts(parts[6]!, parts[7]!)
  return null
}

function fromParts(high: number, low: number): ipaddr.IPv4 {
  return new ipaddr.IPv4([high >> 8, high & 0xff, low >> 8, low & 0xff])
}
