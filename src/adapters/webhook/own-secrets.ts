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
    const spellings = new Set(values.flatMap(spellingsOf))
    this.#needles = [...spellings]
      .map((text) => Buffer.from(text))
      .filter(({ length }) => length >= minBytes)
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

/** As it is, behind the scheme of an `Authorization`, and both as a JSON string writes them. */
function spellingsOf(value: string): string[] {
  const credentials = /^[A-Za-z][\w-]* +(.+)$/.exec(value)?.[1]
  const plain = credentials === undefined ? [value] : [value, credentials]
  return plain.flatMap((each) => [each, JSON.stringify(each).slice(1, -1)])
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
