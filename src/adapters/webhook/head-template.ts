/** What the heads of an endpoint's requests have in common. Fields are names and values by turns. */
export class HeadTemplate {
  readonly method: string
  /** With its query. */
  readonly path: string
  /** Those before the fields of a request. */
  readonly first: readonly string[]
  /** Those after them: the static headers. */
  readonly own: readonly string[]
  #text: { first: string; own: string } | null = null

  constructor(method: string, path: string, first: readonly string[], own: readonly string[]) {
    this.method = method
    this.path = path
    this.first = first
    this.own = own
  }

  /** The same with another path. */
  to(path: string): HeadTemplate {
    return new HeadTemplate(this.method, path, this.first, this.own)
  }

  /** All lines of a head but the last, which says how long the body is. In Latin-1. */
  linesWith(fields: readonly string[]): string {
    this.#text ??= {
      first: `${this.method} ${this.path} HTTP/1.1\r\n${linesOf(this.first)}`,
      own: linesOf(this.own),
    }
    return this.#text.first + linesOf(fields) + this.#text.own
  }
}

function linesOf(fields: readonly string[]): string {
  let text = ''
  for (let at = 0; at < fields.length; at += 2) text += `${fields[at]!}: ${fields[at + 1]!}\r\n`
  return text
}
