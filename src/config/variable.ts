// How the text of an environment variable becomes a value.
import ipaddr from 'ipaddr.js'
import { parseRoleGrants, type RoleGrant } from '../core/access/company-roles.ts'
import { proxyUrlFaults } from '../core/delivery/proxy-url.ts'
import { formatDuration, parseDuration } from '../core/duration.ts'
import type { Tier } from '../core/topics.ts'

export interface Variable<T> {
  reader: Reader<T>
  /** As one would write it in the environment; the value is null when there is none. */
  default?: string | undefined
  takes: string
  meaning: string
  /** Never shown; can also be given as the path of a file, in `<NAME>_FILE`. */
  secret?: true
}

/** `value` is only a type: with a default the value is always there, without one it may be null. */
export function variable<T, const D extends string | undefined = undefined>(
  reader: Reader<T>,
  rest: Omit<Variable<T>, 'reader' | 'default'> & { default?: D },
): Variable<T> & { value?: D extends string ? T : T | null } {
  return { reader, ...rest }
}

export const partitions = (preset: string, topic: string) =>
  variable(whole(1, 10_000), {
    default: preset,
    takes: 'a whole number from 1 to 10000',
    meaning: `Partitions of ${topic} when \`setup\` creates it.`,
  })

export const port = (preset: string, meaning: string) =>
  variable(whole(0, 65_535), {
    default: preset,
    takes: 'a port, or 0 for any that is free',
    meaning,
  })

export const host = (preset: string, meaning: string) =>
  variable(address, {
    default: preset,
    takes: 'an IP address; 127.0.0.1 is this machine alone, :: or 0.0.0.0 all of its addresses',
    meaning,
  })

/** Makes a value of a text. Throws a Complaint for a text that the variable does not take. */
export type Reader<T> = (text: string) => T

/** Its message says what exactly is wrong; it is empty where what the variable takes says enough. */
export class Complaint extends Error {}

export function wrong(complaint = ''): never {
  throw new Complaint(complaint)
}

const items = (text: string): string[] => text.split(',').map((item) => item.trim())

export const matching =
  (pattern: RegExp): Reader<string> =>
  (text) =>
    pattern.test(text) ? text : wrong()

export const oneOf =
  <const T extends string>(...values: T[]): Reader<T> =>
  (text) =>
    values.find((value) => value === text.toLowerCase()) ?? wrong()

export const flag: Reader<boolean> = (text) => {
  if (text === 'true' || text === '1') return true
  return text === 'false' || text === '0' ? false : wrong()
}

export const whole =
  (min: number, max: number): Reader<number> =>
  (text) => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : NaN
    return value >= min && value <= max ? value : wrong()
  }

/** In milliseconds. */
export const duration =
  (minMs: number, maxMs: number): Reader<number> =>
  (text) => {
    const value = parseDuration(text) ?? wrong()
    if (value > maxMs) return wrong(`above ${formatDuration(maxMs)}`)
    return value < minMs ? wrong(`below ${formatDuration(minMs)}`) : value
  }

export const brokerList: Reader<string[]> = (text) =>
  items(text).map((item) => {
    // The client takes what comes before the first colon for the host.
    if (item.startsWith('[')) return wrong(`"${item}" is an IPv6 address: give the broker's name`)
    const port = Number(/^[\w.-]+:(\d{1,5})$/.exec(item)?.[1] ?? 0)
    return port >= 1 && port <= 65_535 ? item : wrong(`"${item}" is not host:port`)
  })

export const httpUrl: Reader<string> = (text) => {
  const url = URL.parse(text) ?? wrong()
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return wrong()
  if (url.username !== '' || url.password !== '') return wrong('credentials do not belong into the URL')
  return text.replace(/\/+$/, '')
}

/** As it was written: a slash at the end belongs to the name of an issuer. */
export const issuerUrl: Reader<string> = (text) => {
  httpUrl(text)
  const { protocol, hostname, search, hash } = new URL(text)
  if (search !== '' || hash !== '') return wrong('an issuer has no query and no fragment')
  const isOwnMachine = ['localhost', '127.0.0.1', '[::1]'].includes(hostname)
  return protocol === 'https:' || isOwnMachine ? text : wrong('what a login says must come over TLS')
}

export const roleGrants: Reader<RoleGrant[]> = (text) => {
  const grants = parseRoleGrants(text)
  return 'fault' in grants ? wrong(grants.fault) : grants
}

/** A forward proxy: its URL without the login, which is `user:password`. */
export const proxyUrl: Reader<{ url: string; login: string | null }> = (text) => {
  const [fault] = proxyUrlFaults(text)
  if (fault !== undefined) return wrong(`it ${fault}`)
  const { origin, username, password } = new URL(text)
  if (username === '' && password === '') return { url: origin, login: null }
  let user: string, secret: string
  try {
    user = decodeURIComponent(username)
    secret = decodeURIComponent(password)
  } catch {
    return wrong('a % in the user and the password is written %25')
  }
  // It ends where the password begins (RFC 7617, 2).
  return user.includes(':') ? wrong('the user has a colon') : { url: origin, login: `${user}:${secret}` }
}

/** A mail server and the login there. */
export interface SmtpServer {
  host: string
  port: number
  /** TLS from the first byte; else STARTTLS. */
  isTls: boolean
  login: { user: string; password: string } | null
}

/** Ports by RFC 8314 and RFC 6409. */
const smtpPorts: Readonly<Record<string, number>> = { 'smtps:': 465, 'smtp:': 587 }

export const smtpUrl: Reader<SmtpServer> = (text) => {
  const { protocol, hostname, port, username, password, pathname, search, hash } = URL.parse(text) ?? wrong()
  const usual = smtpPorts[protocol] ?? wrong('it begins with smtp:// or smtps://')
  if (hostname === '') return wrong('it has no host')
  if (!['', '/'].includes(pathname) || search !== '' || hash !== '') return wrong('nothing follows the port')
  if ((username === '') !== (password === '')) return wrong('user and password come together')
  let login: SmtpServer['login']
  try {
    login =
      username === '' ? null : { user: decodeURIComponent(username), password: decodeURIComponent(password) }
  } catch {
    return wrong('a % in the user and the password is written %25')
  }
  const host = hostname.replace(/^\[|\]$/g, '')
  return { host, port: port === '' ? usual : Number(port), isTls: protocol === 'smtps:', login }
}

const mailAddress = /^[^\s@<>,;:"()[\]\\]{1,64}@[^\s@<>,;:"()[\]\\]{1,255}$/

export const mailAddresses =
  (max: number): Reader<string[]> =>
  (text) => {
    const found = items(text)
    for (const item of found)
      if (!mailAddress.test(item)) return wrong(`${JSON.stringify(item)} is no mail address`)
    return found.length > max ? wrong(`${found.length} addresses`) : found
  }

/** Own addresses, at most one of each family. */
export const sourceAddresses: Reader<string[]> = (text) => {
  const found = items(text)
  for (const item of found) if (!isAddress(item)) return wrong(`"${item}" is no IP address`)
  const families = new Set(found.map((item) => item.includes(':')))
  return families.size < found.length ? wrong('two are of one family') : found
}

/** Ascending and distinct, so that "the next tier" and "the smallest tier that covers a wait" are well defined. */
export const tierList =
  (maxMs: number, maxTiers: number): Reader<Tier[]> =>
  (text) => {
    const tiers: Tier[] = []
    for (const name of items(text)) {
      const delayMs = parseDuration(name)
      const before = tiers.at(-1)
      if (delayMs === null || delayMs === 0) return wrong(`"${name}" is not a duration`)
      if (delayMs > maxMs) return wrong(`${name} is above ${formatDuration(maxMs)}`)
      if (before && delayMs <= before.delayMs) return wrong(`${name} does not come after ${before.name}`)
      tiers.push({ name, delayMs })
    }
    return tiers.length > maxTiers ? wrong(`${tiers.length} tiers`) : tiers
  }

const isAddress = (text: string): boolean =>
  ipaddr.IPv4.isValidFourPartDecimal(text) || ipaddr.IPv6.isValid(text)

export const address: Reader<string> = (text) => (isAddress(text) ? text : wrong())

/** Short forms stand for other addresses than people mean: `10/8` would be 0.0.0.0/8, which leads to loopback. */
const isCidr = (text: string): boolean =>
  ipaddr.IPv4.isValidCIDRFourPartDecimal(text) || ipaddr.IPv6.isValidCIDR(text)

/** CIDRs; an address alone stands for itself. */
export const networkList: Reader<string[]> = (text) =>
  items(text).map((item) => {
    if (isCidr(item)) return item
    if (!isAddress(item)) return wrong(`"${item}" is neither an address nor a CIDR`)
    return item.includes(':') ? `${item}/128` : `${item}/32`
  })

/** 32-byte keys as hex or base64 (also its URL-safe form), the one that encrypts first. */
export const keyList: Reader<Uint8Array[]> = (text) =>
  items(text).map((item, index) => {
    if (/^[0-9a-fA-F]{64}$/.test(item)) return new Uint8Array(Buffer.from(item, 'hex'))
    if (/^[\w+/-]{43}=?$/.test(item)) return new Uint8Array(Buffer.from(item, 'base64'))
    return wrong(`key ${index + 1} is not 32 bytes`)
  })
