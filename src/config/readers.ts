// How the text of an environment variable becomes a value. A `custom` issue's message says what exactly is
// wrong with the text; for every other issue, what the variable takes says enough.
import { readFileSync } from 'node:fs'
import ipaddr from 'ipaddr.js'
import { z } from 'zod'
import { formatDuration, parseDuration } from '../core/duration.ts'
import type { Tier } from '../core/topics.ts'

export type Reader<T> = z.ZodType<T, string>

/** A reader by a function that returns a value, or hands a complaint (empty: none beyond what it takes) to `wrong`. */
export function reader<T>(read: (text: string, wrong: (complaint: string) => never) => T): Reader<T> {
  return z.string().transform((text, context) => {
    try {
      return read(text, (complaint) => {
        throw new Complaint(complaint)
      })
    } catch (error) {
      if (!(error instanceof Complaint)) throw error
      context.addIssue({ code: 'custom', message: error.message || noComplaint })
      return z.NEVER
    }
  })
}

class Complaint extends Error {}

/** Zod puts words of its own in place of an empty message. */
export const noComplaint = '-'

const items = (text: string): string[] => text.split(',').map((item) => item.trim())

export const matching = (pattern: RegExp): Reader<string> => z.string().regex(pattern)

export const oneOf = <const T extends string>(...values: T[]): Reader<T> =>
  reader((text, wrong) => values.find((value) => value === text.toLowerCase()) ?? wrong(''))

export const flag: Reader<boolean> = reader((text, wrong) => {
  if (text === 'true' || text === '1') return true
  return text === 'false' || text === '0' ? false : wrong('')
})

export const whole = (min: number, max: number): Reader<number> =>
  reader((text, wrong) => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : NaN
    return value >= min && value <= max ? value : wrong('')
  })

/** In milliseconds. */
export const duration = (minMs: number, maxMs: number): Reader<number> =>
  reader((text, wrong) => {
    const value = parseDuration(text)
    if (value === null) return wrong('')
    if (value > maxMs) return wrong(`above ${formatDuration(maxMs)}`)
    return value < minMs ? wrong(`below ${formatDuration(minMs)}`) : value
  })

export const brokerList: Reader<string[]> = reader((text, wrong) =>
  items(text).map((item) => {
    const port = Number(/^(?:[\w.-]+|\[[0-9a-fA-F:]+\]):(\d{1,5})$/.exec(item)?.[1] ?? 0)
    return port >= 1 && port <= 65_535 ? item : wrong(`"${item}" is not host:port`)
  }),
)

export const httpUrl: Reader<string> = reader((text, wrong) => {
  const url = URL.canParse(text) ? new URL(text) : wrong('')
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return wrong('')
  if (url.username !== '' || url.password !== '') return wrong('credentials do not belong into the URL')
  return text.replace(/\/+$/, '')
})

/** Ascending and distinct, so that "the next tier" and "the smallest tier that covers a wait" are well defined. */
export const tierList = (maxMs: number, maxTiers: number): Reader<Tier[]> =>
  reader((text, wrong) => {
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
  })

/** CIDRs; an address alone stands for itself. */
export const networkList: Reader<string[]> = reader((text, wrong) =>
  items(text).map((item) => {
    if (item.includes('/') && ipaddr.isValidCIDR(item)) return item
    if (!ipaddr.IPv4.isValidFourPartDecimal(item) && !ipaddr.IPv6.isValid(item))
      return wrong(`"${item}" is neither an address nor a CIDR`)
    return item.includes(':') ? `${item}/128` : `${item}/32`
  }),
)

export const address: Reader<string> = reader((text, wrong) =>
  ipaddr.IPv4.isValidFourPartDecimal(text) || ipaddr.IPv6.isValid(text) ? text : wrong(''),
)

export const certificateFile: Reader<string> = reader((path, wrong) => {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    return wrong(`cannot be read: ${(error as NodeJS.ErrnoException).code}`)
  }
  return text.includes('-----BEGIN CERTIFICATE-----') ? path : wrong('holds no certificate')
})

/** 32-byte keys as hex or base64 (also its URL-safe form), the one that encrypts first. */
export const keyList: Reader<Uint8Array[]> = reader((text, wrong) =>
  items(text).map((item, index) => {
    const bytes = /^[0-9a-fA-F]{64}$/.test(item)
      ? Buffer.from(item, 'hex')
      : /^[\w+/-]{43}=?$/.test(item)
        ? Buffer.from(item, 'base64')
        : null
    return bytes?.length === 32 ? new Uint8Array(bytes) : wrong(`key ${index + 1} is not 32 bytes`)
  }),
)
