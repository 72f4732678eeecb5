import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/** Finds the address that a request came from, behind the proxies that are trusted. */
export class ClientAddress {
  readonly #trusted: [ipaddr.IPv4 | ipaddr.IPv6, number][]

  /** `trustedProxies` are CIDRs; with none, it is always the peer's. */
  constructor(trustedProxies: readonly string[]) {
    this.#trusted = trustedProxies.map((network) => ipaddr.parseCIDR(network))
  }

  /**
   * `peer` is the other end of the connection. Each proxy appends to X-Forwarded-For the address it had the
   * request from, and any sender can forge its beginning: it is read from the right, while trusted proxies wrote it.
   * What is no address there (`unknown`) ends it: the proxy's own is then as far as is known.
   */
  of(peer: string, forwardedFor: string | undefined): string {
    let address = plain(peer)
    if (forwardedFor === undefined || this.#trusted.length === 0) return address
    const hops = forwardedFor.split(',')
    while (hops.length > 0 && this.trusts(address)) {
      const next = addressIn(hops.pop()!.trim())
      if (next === null) return address
      address = next
    }
    return address
  }

  /** Whether it is a trusted proxy's. */
  trusts(address: string): boolean {
    if (this.#trusted.length === 0 || isIP(address) === 0) return false
    return ipaddr.subnetMatch(ipaddr.process(address), { trusted: this.#trusted }) === 'trusted'
  }
}

/**
 * What shares and limits take for one sender: an IPv4 address, or the network of an IPv6 one (/64), of which one host can
 * have as many addresses as it likes.
 */
export function senderOf(address: string): string {
  if (!address.includes(':') || isIP(address) === 0) return address
  return ipaddr.IPv6.parse(address)
    .parts.slice(0, 4)
    .map((part) => part.toString(16))
    .join(':')
}

/** IPv4 as it is usually written, also where a socket takes both. */
const plain = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, '')

/** Some proxies add the port, and brackets then: `192.0.2.1:80`, `[2001:db8::1]:80`. */
function addressIn(hop: string): string | null {
  const bracketed = /^\[([^\]]*)\](?::\d+)?$/.exec(hop)
  const text = plain(bracketed ? bracketed[1]! : hop.replace(/^([\d.]+):\d+$/, '$1'))
  return isIP(text) === 0 ? null : text
}
