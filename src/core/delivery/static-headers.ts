export const maxHeadersPerUrl = 20
export const maxHeaderBytesPerUrl = 8_192

/** Postrider's own, and those that belong to the connection (RFC 9110, 7.6.1) or to the HTTP client. */
const reserved = new Set([
  'user-agent',
  'content-type',
  'x-signature',
  'idempotency-key',
  'host',
  'content-length',
  'connection',
  'proxy-connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'trailers',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
  'expect',
  // A plain object of headers would lose it without a word, here or at a receiver.
  '__proto__',
])

/** A field name is a token: RFC 9110, 5.6.2. */
export const isHeaderName = (name: string): boolean => /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(name)

/** Printable ASCII, spaces and tabs. */
export const isHeaderValue = (value: string): boolean => /^[\t\x20-\x7e]*$/.test(value)

/** What is wrong with a static header's name (docs/destinations.md), one phrase a fault. */
export function headerNameFaults(name: string): string[] {
  if (!isHeaderName(name)) return ['is not a valid header name']
  const lower = name.toLowerCase()
  if (reserved.has(lower) || lower.startsWith('webhook-')) return ['cannot be set: the name is reserved']
  return []
}

/** What is wrong with a static header's value. The value is not repeated: it may be a secret. */
export function headerValueFaults(value: string): string[] {
  if (value === '') return ['has no value']
  if (/[\r\n]/.test(value)) return ['has a line break in its value']
  if (!isHeaderValue(value)) return ['has a value with characters other than printable ASCII']
  if (value.trim() !== value) return ['has a value that begins or ends with white space']
  return []
}

/** What is wrong with all static headers of one URL together; `valueBytes` is the size of each value. */
export function headerSetFaults(headers: readonly { name: string; valueBytes: number }[]): string[] {
  const faults: string[] = []
  if (headers.length > maxHeadersPerUrl)
    faults.push(`has ${headers.length} headers, at most ${maxHeadersPerUrl} are allowed`)
  const bytes = headers.reduce((sum, header) => sum + header.name.length + header.valueBytes, 0)
  if (bytes > maxHeaderBytesPerUrl)
    faults.push(`has ${bytes} bytes of headers, at most ${maxHeaderBytesPerUrl} are allowed`)
  return faults
}

const plain = /^[\x21-\x24\x26-\x7e]*$/
const others = /[^\x21-\x24\x26-\x7e]/gu

/**
 * An id as a header's value. Producers choose messageIds, and what a header cannot hold (spaces, control characters,
 * letters beyond ASCII) is percent-encoded, as is the percent sign: different ids stay different.
 */
export function headerText(id: string): string {
  return plain.test(id) ? id : id.toWellFormed().replace(others, (character) => encodeURIComponent(character))
}
