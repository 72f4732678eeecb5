import type { Result } from './scripted-server.ts'
import { head, read } from './responses.ts'

/** In what two results for one request differ. */
export type Difference =
  | 'only direct takes it'
  | 'only undici takes it'
  | 'both take it, and read it differently'
  | 'both refuse it, one after its Retry-After'
  | 'only direct uses the connection again'
  | 'only undici uses the connection again'
  | 'only direct sends the request again'
  | 'only undici sends the request again'

/** Null: they are alike. */
export function differenceOf(direct: Result, undici: Result): Difference | null {
  // Which one used a connection again comes first: what it got there is then another story.
  if (direct.isReused !== undici.isReused)
    return direct.isReused ? 'only direct uses the connection again' : 'only undici uses the connection again'
  if (direct.sent !== undici.sent)
    return direct.sent > undici.sent
      ? 'only direct sends the request again'
      : 'only undici sends the request again'
  if (direct.status !== null && undici.status === null) return 'only direct takes it'
  if (direct.status === null && undici.status !== null) return 'only undici takes it'
  const isSame =
    direct.kind === undici.kind &&
    direct.status === undici.status &&
    direct.body === undici.body &&
    direct.retryAfterMs === undici.retryAfterMs
  if (isSame) return null
  return direct.status === null
    ? 'both refuse it, one after its Retry-After'
    : 'both take it, and read it differently'
}

/** What a server wrote, as far as it matters for one request. */
export interface Written {
  /** As the answer to the request before. */
  before: string
  /** Between both. */
  unasked: string
  /** As the answer to this request. */
  answer: string
}

/** Where the clients may differ, and why. */
export interface ClientDifference {
  what: string
  /** The answer to one request; after it the connection ends if it is waited for. It shows the difference. */
  example: string
  direct: string
  undici: string
  /** What the RFCs say. */
  rfc: string
  applies: (written: Written) => boolean
  how: readonly Difference[]
}

const ok = 'HTTP/1.1 200 OK'
const length2 = 'Content-Length: 2'
const chunked = 'Transfer-Encoding: chunked'
const inAnswer =
  (pattern: RegExp) =>
  ({ answer }: Written): boolean =>
    pattern.test(answer)

const codingWithTab = /^transfer-encoding:[\t ]*[^\t ].*\t/im

/** What follows the response in a text that holds a whole one. */
const behind = (text: string): string => {
  const { end } = read(text)
  return end < 0 ? '' : text.slice(end)
}

export const clientDifferences: readonly ClientDifference[] = [
  {
    what: 'an interim response 100',
    example: head('HTTP/1.1 100 Continue') + head(ok, length2) + 'ok',
    direct: 'passes over it',
    undici: 'refuses the response',
    rfc: '9110, 15.2: a client must parse any 1xx before the final response, also one that it did not ask for',
    applies: inAnswer(/^HTTP\/1\.[01] 100/m),
    how: ['only direct takes it'],
  },
  {
    what: 'an interim response with `Connection: close`',
    example: head('HTTP/1.1 103 Early Hints', 'Connection: close') + head(ok, length2) + 'ok',
    direct: 'passes over it',
    undici: 'refuses what follows',
    rfc: '9112, 9.6: close is about the end of the final response; nothing is said of interim ones',
    applies: inAnswer(/^HTTP\/1\.[01] 1\d\d[^]*^connection:.*close/im),
    how: ['only direct takes it'],
  },
  {
    what: 'empty lines before a response',
    example: `\r\n${head(ok, length2)}ok`,
    direct: 'refuses the response',
    undici: 'passes over them',
    rfc: '9112, 2.2: a server should ignore them before a request; a client has no such rule',
    applies: inAnswer(/(^|\r\n\r\n)[\r\n]+(H|$)/),
    how: ['only undici takes it', 'only direct sends the request again'],
  },
  {
    what: 'empty lines behind a response',
    example: `${head(ok, length2)}ok\r\n`,
    direct: 'does not use the connection again',
    undici: 'passes over them, and uses it again',
    rfc: '9112, 9.2: what nobody asked for is no response, and the connection should be closed; an empty line can be taken for none',
    applies: ({ before, unasked }) => /^[\r\n]+$/.test(behind(before) + unasked),
    how: ['only undici uses the connection again'],
  },
  {
    what: 'control characters, or a CR alone, in a reason phrase',
    example: head('HTTP/1.1 200 O\x01K', length2) + 'ok',
    direct: 'refuses the response',
    undici: 'takes it',
    rfc: '9112, 4: a reason is tabs, spaces, visible characters and bytes from 0x80',
    applies: inAnswer(/^HTTP\/1.*([\0-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n))/m),
    how: ['only undici takes it'],
  },
  {
    what: 'another version or protocol: HTTP/0 or HTTP/2 to 9, RTSP, ICE',
    example: head('HTTP/2.0 200 OK', length2) + 'ok',
    direct: 'refuses the response',
    undici: 'takes HTTP/0.9, HTTP/2.0, RTSP and ICE',
    rfc: '9112, 2.3: HTTP/1.1 has its own version; 9110, 2.5: a higher major version may mean anything',
    applies: inAnswer(/^(HTTP\/[02-9]\.\d|RTSP\/|ICE\/)/m),
    how: ['only undici takes it', 'only direct sends the request again'],
  },
  {
    what: 'an HTTP/1.0 response in chunks that says keep-alive',
    example: head('HTTP/1.0 200 OK', chunked, 'Connection: keep-alive') + '2\r\nok\r\n0\r\n\r\n',
    direct: 'does not use the connection again',
    undici: 'uses it again',
    rfc: '9112, 6.1: such a response has faulty framing, and the connection must be closed',
    applies: ({ before }) => /^HTTP\/1\.0 [^]*^transfer-encoding:.*chunked/im.test(before),
    how: ['only undici uses the connection again'],
  },
  {
    what: 'an HTTP/1.0 response that says keep-alive with a tab behind it',
    example: head('HTTP/1.0 200 OK', length2, 'Connection: keep-alive\t') + 'ok',
    direct: 'uses the connection again',
    undici: 'does not',
    rfc: '9110, 5.6.3: optional space is spaces and tabs; 9112, 9.3: a client may close at any time',
    applies: ({ before }) => /^HTTP\/1\.0 [^]*^connection:.*keep-alive.*\t/im.test(before),
    how: ['only direct uses the connection again'],
  },
  {
    what: '`Proxy-Connection: close`',
    example: head(ok, length2, 'Proxy-Connection: close') + 'ok',
    direct: 'uses the connection again',
    undici: 'does not',
    rfc: '9112, C.2.2: the field is not standard, and may be left unheeded',
    applies: ({ before }) => /^proxy-connection:.*close/im.test(before),
    how: ['only direct uses the connection again'],
  },
  {
    what: 'a space or tab behind a Content-Length',
    example: head(ok, 'Content-Length: 2 ') + 'ok',
    direct: 'takes the response',
    undici: 'counts it as a digit, and refuses it',
    rfc: '9110, 5.5: space around a value is no part of it',
    applies: inAnswer(/^content-length:.*[\t ]\r$/im),
    how: ['only direct takes it'],
  },
  {
    what: 'a tab in a Transfer-Encoding',
    example: head('HTTP/1.1 500 Oops', 'Transfer-Encoding: chunked\t') + '2\r\nok\r\n0\r\n\r\n',
    direct: 'takes the response',
    undici: 'does not see the coding: all that comes until the end of the connection is the body',
    rfc: '9110, 5.6.3: optional space is spaces and tabs',
    applies: ({ before, answer }) => [before, answer].some((text) => codingWithTab.test(text)),
    how: [
      'only direct takes it',
      'only undici takes it',
      'both take it, and read it differently',
      'only direct uses the connection again',
    ],
  },
  {
    what: 'an odd chunk extension',
    example: head(ok, chunked) + '2;\r\nok\r\n0\r\n\r\n',
    direct: 'passes over it',
    undici: 'refuses the response',
    rfc: '9112, 7.1.1: a recipient must ignore extensions that it does not know; this one is malformed',
    applies: inAnswer(/^[\da-f]+[\t ]*;/im),
    how: ['only direct takes it'],
  },
  {
    what: 'a Content-Length or a Transfer-Encoding in trailers',
    example: head(ok, chunked) + '2\r\nok\r\n0\r\nContent-Length: 2\r\n\r\n',
    direct: 'passes over it',
    undici: 'refuses the response',
    rfc: '9110, 6.5.1: such fields must not be in trailers; 6.5.2: a recipient may ignore them',
    applies: inAnswer(/^0+(;.*)?\r\n(.+\r\n)*(content-length|transfer-encoding):/im),
    how: ['only direct takes it'],
  },
  {
    what: 'a `Connection: close` in trailers',
    example: head(ok, chunked) + '2\r\nok\r\n0\r\nConnection: close\r\n\r\n',
    direct: 'uses the connection again',
    undici: 'does not',
    rfc: '9110, 6.5.1: such a field must not be in trailers; 6.5.2: a recipient may ignore it',
    applies: ({ before }) => /^0+(;.*)?\r\n(.+\r\n)*connection:.*close/im.test(before),
    how: ['only direct uses the connection again'],
  },
  {
    what: 'chunked twice',
    example: head(ok, 'Transfer-Encoding: chunked, chunked') + '2\r\nok\r\n0\r\n\r\n',
    direct: 'refuses the response',
    undici: 'takes it as chunked once',
    rfc: '9112, 6.1: a sender must not apply chunked more than once',
    applies: inAnswer(/^transfer-encoding:[^]*chunked[^]*chunked/im),
    how: ['only undici takes it'],
  },
  {
    what: 'a header of more than 16 KB in one piece',
    example: head(ok, `X: ${'x'.repeat(20_000)}`, length2) + 'ok',
    direct: 'refuses the response',
    undici: 'takes up to 64 KB',
    rfc: '9110, 5.4: a client may refuse a header that is larger than it wants to read',
    applies: ({ answer }) => answer.indexOf('\r\n\r\n') > 16_000,
    how: ['only undici takes it'],
  },
  {
    what: 'a Retry-After of a response that both refuse',
    example:
      head('HTTP/1.1 500 Oops', 'Retry-After: 7', 'Transfer-Encoding: chunked, chunked') + 'no size\r\n',
    direct: 'heeds it if the header is well-formed',
    undici: 'heeds it if llhttp takes the header',
    rfc: '9110, 10.2.3: it says how long to wait before the next request; of a malformed response nothing is said',
    applies: () => true,
    how: ['both refuse it, one after its Retry-After'],
  },
]

/** The entry of the table that explains a difference. */
export const explanationOf = (difference: Difference, written: Written): ClientDifference | undefined =>
  clientDifferences.find(({ applies, how }) => how.includes(difference) && applies(written))
