/** Shorter ones are no secrets, and would be found in many an innocent word. */
const minBytes = 4
const removed = Buffer.from('[removed]')

/**
 * The header values and shared secrets of one endpoint, to be struck out of what its receiver sends back: some answer a
 * bad request with its headers, and what is kept of a response stays in Kafka for weeks, for every reader of failures.
 */
export class OwnSecrets {
  /** Longer ones first: one may hold another. */
  readonly #needles: readonly Buffer[]
  /** Of the longest, in bytes. */
  readonly longest: number

  constructor(values: readonly string[]) {
    const secrets = values.flatMap(partsOf).filter((text) => Buffer.byteLength(text) >= minBytes)
    this.#needles = [...new Set(secrets.flatMap(spellingsOf))]
      .map((text) => Buffer.from(text))
      .sort((a, b) => b.length - a.length)
    this.longest = this.#needles[0]?.length ?? 0
  }

  /** The first `max` bytes of the text without any of them. */
  strike(text: Buffer, max: number): Buffer {
    // Not what lies behind: there the text may end in the middle of one, and what is struck out would bring it forward.
    let end = Math.min(max, text.length)
    for (const needle of this.#needles) {
      const last = text.lastIndexOf(needle, end - 1)
      if (last >= 0) end = Math.max(end, last + needle.length)
    }
    let struck = text.subarray(0, end)
    for (const needle of this.#needles) struck = without(struck, needle)
    return Math.max(text.length, struck.length) > max ? Buffer.from(struck.subarray(0, max)) : struck
  }
}

/** All of it, what is behind the scheme of an `Authorization`, and the password that `Basic` holds. */
function partsOf(value: string): string[] {
  const [, scheme, credentials] = /^([A-Za-z][\w-]*) +(.+)$/.exec(value) ?? []
  if (scheme === undefined || credentials === undefined) return [value]
  const login = scheme.toLowerCase() === 'basic' ? Buffer.from(credentials, 'base64').toString() : ''
  return [value, credentials, login, login.slice(login.indexOf(':') + 1)]
}

/** As it is, and as receivers write what they repeat: in JSON, a URL, a form, HTML or base64, and each in lower case. */
function spellingsOf(text: string): string[] {
  const bytes = Buffer.from(text)
  const html = text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
  const spelled = [
    text,
    JSON.stringify(text).slice(1, -1),
    encodeURIComponent(text.toWellFormed()),
    new URLSearchParams([['', text]]).toString().slice(1),
    html,
    html.replaceAll("'", '&#39;'),
    html.replaceAll("'", '&#x27;'),
    // Without padding: it is a part of the spelling with it.
    bytes.toString('base64').replace(/=+$/, ''),
    bytes.toString('base64url'),
  ]
  return spelled.flatMap((each) => [each, each.toLowerCase()])
}

function without(text: Buffer, needle: Buffer): Buffer {
  const parts: Buffer[] = []
  let start = 0
  for (let at = text.indexOf(needle); at >= 0; at = text.indexOf(needle, start)) {
    parts.push(text.subarray(start, at), removed)
    start = at + needle.length
  }
  if (start === 0) return text
  parts.push(text.subarray(start))
  return Buffer.concat(parts)
}
