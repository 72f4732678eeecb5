import fc from 'fast-check'
import { ResponseReader } from '../../../src/adapters/webhook/direct/response-reader.ts'
import { MalformedResponse } from '../../../src/adapters/webhook/response.ts'

/** What a reader made of the first response of some bytes. */
export interface Read {
  status: number | null
  retryAfter: string | null
  /** In Latin-1, as far as it came. */
  body: string
  keepsConnection: boolean
  keepsSeconds: number | null
  /** Where the response ends in all of the bytes; -1: it does not end in them. */
  end: number
  mayEndNow: boolean
  /** It threw MalformedResponse. */
  refused: boolean
}

/** Nothing more can come, and the response is whole. */
export const isWhole = (read: Read): boolean => !read.refused && (read.end >= 0 || read.mayEndNow)

/** A status line and fields, as they are written. */
export const head = (...lines: string[]): string => `${lines.join('\r\n')}\r\n\r\n`

/** Feeds Latin-1 text in pieces that end at `cuts`, in ascending order, until a response ends. */
export function read(text: string, cuts: readonly number[] = [], reader = new ResponseReader()): Read {
  const found: Read = {
    ...{ status: null, retryAfter: null, body: '', keepsConnection: true, keepsSeconds: null },
    ...{ end: -1, mayEndNow: false, refused: false },
  }
  let start = 0
  try {
    for (const cut of [...cuts, text.length]) {
      const piece = Buffer.from(text.slice(start, cut), 'latin1')
      const end = reader.read(piece, {
        onHead(status, retryAfter) {
          if (found.status !== null) throw new Error('a second head')
          Object.assign(found, { status, retryAfter })
        },
        onBody(chunk) {
          if (found.status === null) throw new Error('a body before its head')
          found.body += chunk.toString('latin1')
        },
      })
      // The next read writes over the memory of this one.
      piece.fill('!')
      if (end >= 0) {
        found.end = start + end
        break
      }
      start = cut
    }
  } catch (error) {
    if (!(error instanceof MalformedResponse)) throw error
    found.refused = true
  }
  const { keepsConnection, keepsSeconds, mayEndNow } = reader
  return { ...found, keepsConnection, keepsSeconds, mayEndNow }
}

/** With as many x between that it has `size` bytes. */
export const padded = (size: number, before: string, after: string): string =>
  before + 'x'.repeat(size - before.length - after.length) + after

export const afterEachByte = (text: string): number[] => [...Array(text.length).keys()]

/** Whole, byte by byte, and cut at every single position, or at some where there are thousands. */
export const allCuts = (text: string): number[][] => [
  ...[[], afterEachByte(text), [text.length >> 1], [1_000, 9_000, 17_000].filter((cut) => cut < text.length)],
  ...(text.length < 1_000 ? afterEachByte(text) : []).map((cut) => [cut]),
]

/** In thousandths of a length that is not known yet, everywhere alike. */
const place = fc.noBias(fc.integer({ min: 0, max: 999 }))
const placed = (at: number, text: string): number => Math.floor((at * text.length) / 1_000)

export const someCuts = fc.array(place, { maxLength: 12 })

export const cutsOf = (places: readonly number[], text: string): number[] =>
  places.map((at) => placed(at, text)).sort((a, b) => a - b)

const textOf = (characters: string, constraints: fc.StringConstraints): fc.Arbitrary<string> =>
  fc.string({ ...constraints, unit: fc.constantFrom(...characters) })

const latin1 = (from: number, to: number): string =>
  String.fromCharCode(...Array.from({ length: to - from + 1 }, (_, index) => from + index))
const letters = 'abcxyzABCXYZ'
const inField = `\t${latin1(0x20, 0x7e)}${latin1(0x80, 0xff)}`
const space = textOf(' \t', { maxLength: 2 })
const value = textOf(inField, { maxLength: 20 })
const field = fc
  .tuple(textOf(`${letters}09!#$%&'*+-.^_\`|~`, { minLength: 1, maxLength: 18 }), value)
  .map(([name, of]) => `${name}:${of}`)
const anyBytes = textOf(latin1(0, 0xff), { maxLength: 60 })

/** A name that matters, in any case, and a value with space around it: undici takes no space after a length. */
const written = (name: string, of: string): fc.Arbitrary<string> =>
  fc
    .tuple(
      fc.constantFrom(name, name.toLowerCase(), name.toUpperCase()),
      space,
      name === 'Content-Length' || name === 'Transfer-Encoding' ? fc.constant('') : space,
    )
    .map(([cased, before, after]) => `${cased}:${before}${of}${after}`)

const chunked = fc
  .record({
    chunks: fc.array(
      fc.record({
        data: textOf(latin1(0, 0xff), { minLength: 1, maxLength: 20 }),
        zeros: fc.nat(4),
        upper: fc.boolean(),
        extension: fc.constantFrom('', '', ';a', ';a=b', ';a="b c"', ';a=b;c'),
      }),
      { maxLength: 4 },
    ),
    trailers: fc.array(field, { maxLength: 2 }),
    end: fc.constantFrom('0', '00', '0;a=b'),
    encoding: fc.constantFrom('chunked', 'Chunked', 'gzip, chunked', 'gzip,chunked'),
  })
  .chain(({ chunks, trailers, end, encoding }) => {
    const parts = chunks.map(({ data, zeros, upper, extension }) => {
      const size = '0'.repeat(zeros) + data.length.toString(16)
      return `${upper ? size.toUpperCase() : size}${extension}\r\n${data}\r\n`
    })
    return written('Transfer-Encoding', encoding).map((line) => ({
      lines: [line],
      sent: `${parts.join('')}${end}\r\n${trailers.map((each) => `${each}\r\n`).join('')}\r\n`,
      body: chunks.map(({ data }) => data).join(''),
      framing: 'chunked' as const,
    }))
  })
const sized = anyBytes.chain((body) =>
  written('Content-Length', `${body.length}`).map((line) => ({
    ...{ lines: [line], sent: body, body, framing: 'length' as const },
  })),
)
const untilEnd = anyBytes.map((body) => ({
  ...{ lines: [] as string[], sent: body, body, framing: 'end' as const },
}))
const empty = fc.constant({ lines: [] as string[], sent: '', body: '', framing: 'none' as const })

const optional = <T>(arbitrary: fc.Arbitrary<T[]>): fc.Arbitrary<T[]> =>
  fc.oneof(fc.constant<T[]>([]), arbitrary)

const reason = textOf(inField, { maxLength: 12 })
const interim = fc
  .tuple(fc.constantFrom(100, 102, 103, 103, 103), fc.array(field, { maxLength: 2 }))
  .map(([status, fields]) => head(`HTTP/1.1 ${status} Wait`, ...fields))

/** A well-formed response and what it says. */
export interface Response {
  text: string
  expected: Read
}

export const response: fc.Arbitrary<Response> = fc
  .record({
    interims: fc.oneof({ weight: 4, arbitrary: fc.constant([]) }, fc.array(interim, { maxLength: 2 })),
    minor: fc.constantFrom(1, 1, 1, 0),
    body: fc.oneof(chunked, sized, untilEnd, empty),
    status: fc.integer({ min: 200, max: 999 }),
    bodiless: fc.constantFrom(204, 304),
    reason: fc.oneof(
      fc.constant(''),
      reason.map((text) => ` ${text}`),
    ),
    fields: fc.array(field, { maxLength: 4 }),
    connection: fc.constantFrom(null, 'close', 'Close', 'keep-alive', 'Keep-Alive', 'x, close', 'Upgrade'),
    seconds: fc.oneof(fc.constant(null), fc.nat(1_000)),
    retryAfter: optional(fc.array(fc.constantFrom('7', '120', 'Sun, 06 Nov 1994 08:49:37 GMT'))),
  })
  .chain((parts) => {
    const { body, minor, connection, seconds, retryAfter } = parts
    const retries = fc.tuple(...retryAfter.map((of) => written('Retry-After', of)))
    const others = fc.tuple(
      ...(connection === null ? [] : [written('Connection', connection)]),
      ...(seconds === null ? [] : [written('Keep-Alive', `timeout=${seconds}, max=9`)]),
    )
    return fc.tuple(retries, others).chain(([first, rest]) => {
      const lines = [...parts.fields, ...body.lines, ...rest]
      // In any order, but Retry-After, of which the first counts.
      return fc.shuffledSubarray(lines, { minLength: lines.length }).map((shuffled): Response => {
        const status = body.framing === 'none' ? parts.bodiless : parts.status
        const isBodiless = status === 204 || status === 304
        const all = [...shuffled, ...first]
        const start = head(`HTTP/1.${minor} ${status}${parts.reason}`, ...all)
        const before = parts.interims.join('') + start
        const text = isBodiless ? before : before + body.sent
        const says = connection?.toLowerCase() ?? ''
        const ends = isBodiless || body.framing !== 'end'
        const keeps =
          (minor === 0 ? says === 'keep-alive' && body.framing !== 'chunked' : !says.includes('close')) &&
          !(isBodiless && (body.framing === 'chunked' || (body.framing === 'length' && body.body !== '')))
        return {
          text,
          expected: {
            status,
            retryAfter: retryAfter[0] ?? null,
            body: isBodiless ? '' : body.body,
            keepsConnection: ends && keeps,
            keepsSeconds: seconds,
            end: ends ? text.length : -1,
            mayEndNow: !ends,
            refused: false,
          },
        }
      })
    })
  })

const marks = [
  '\r',
  '\n',
  '\r\n',
  '\r\n\r\n',
  ' ',
  '\t',
  ':',
  ',',
  ';',
  '"',
  '=',
  '0',
  '9',
  '\0',
  '\x80',
  '\xa0',
]
const words = [
  ...[
    'chunked',
    'gzip',
    'close',
    'Content-Length: 3\r\n',
    'Content-Length: ',
    'Transfer-Encoding: chunked\r\n',
  ],
  ...[
    'Transfer-Encoding: ',
    'HTTP/1.1 200 OK\r\n',
    'HTTP/1.0 ',
    '0\r\n\r\n',
    '5\r\nhello\r\n',
    'x: y\r\n',
    'ffffffff',
  ],
]
const mutation = fc.record({
  at: place,
  length: fc.nat(6),
  what: fc.constantFrom('change', 'remove', 'insert', 'double'),
  text: fc.oneof(
    fc.constantFrom(...marks),
    fc.constantFrom(...words),
    textOf(latin1(0, 0xff), { maxLength: 3 }),
  ),
})

/** A well-formed response with a few bytes changed, removed, inserted or doubled. */
export const mutated: fc.Arbitrary<string> = fc
  .tuple(response, fc.array(mutation, { minLength: 1, maxLength: 3 }))
  .map(([{ text }, mutations]) =>
    mutations.reduce((before, { at, length, what, text: inserted }) => {
      const start = placed(at, before)
      const left = before.slice(0, start)
      const right = before.slice(start)
      if (what === 'change') return left + inserted + right.slice(inserted.length)
      if (what === 'remove') return left + right.slice(length)
      if (what === 'insert') return left + inserted + right
      return left + right.slice(0, length) + right
    }, text),
  )

/** Well-formed or not, or not even like a response. */
export const anything: fc.Arbitrary<string> = fc.oneof(
  { weight: 3, arbitrary: mutated },
  anyBytes,
  anyBytes.map((text) => head('HTTP/1.1 200 OK', 'Transfer-Encoding: chunked') + text),
)
