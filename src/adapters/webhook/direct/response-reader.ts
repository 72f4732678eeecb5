import {
  isEncoding,
  keepAliveOf,
  MalformedResponse,
  maxInterims,
  maxPartBytes,
  maxRawBytes,
  NotHttp,
  ResponseTooLong,
  saysClose,
  tooLongHeader,
  tooLongResponse,
  tooManyInterims,
  type ResponseHandler,
} from '../response.ts'

/** Lines between the chunks of a body, of which each has two, and its trailers. */
const maxLines = 2_048

const begin = 'HTTP/1.'
const endOfHead = '\r\n\r\n'
const endOfHeadBytes = Buffer.from(endOfHead)
const tooManyLines = 'the response has too many chunks, or too much between them'

const fieldLine = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]+:[\\t\\x20-\\x7e\\x80-\\xff]*"
/**
 * A status line and fields (RFC 9112, 4 and 5). Nothing but CRLF ends a line, field names are tokens, and a line that goes
 * on in the next one is refused.
 */
const wholeHead = new RegExp(
  `^HTTP/1\\.[01] [1-9]\\d\\d(?: [\\t\\x20-\\x7e\\x80-\\xff]*)?(?:\\r\\n${fieldLine})*$`,
)
const wholeTrailer = new RegExp(`^${fieldLine}\\r\\n$`)

const bareLf = /(?:^|[^\r])\n/

const saysKeepAlive = /(?:^|,)[\t ]*keep-alive[\t ]*(?:,|$)/
/**
 * The size of a chunk in hexadecimal digits, as far as a number is exact, and its extensions, which are passed over (RFC
 * 9112, 7.1).
 */
const chunkSize = /^0*([0-9A-Fa-f]{1,13})(?:[\t ]*;[\t\x20-\x7e\x80-\xff]*)?$/

const State = {
  head: 0,
  /** `#left` bytes are to come. */
  body: 1,
  chunkSize: 2,
  /** `#left` bytes of the chunk are to come. */
  chunk: 3,
  chunkEnd: 4,
  trailers: 5,
  /** The body is all that comes until the connection ends. */
  untilEnd: 6,
} as const

/** The fields that matter here. */
interface Head {
  status: number
  isHttp11: boolean
  contentLength: string | null
  transferEncoding: string | null
  connection: string
  keepAlive: string
  retryAfter: string | null
  contentEncoding: string
}

/**
 * Reads the responses of one connection, one after another, as they come in pieces (RFC 9112). Interim responses (1xx)
 * are passed over. It is strict where leniency could take one response for another, and knows no encoding of content: of
 * a body Postrider keeps a few bytes as they are.
 */
export class ResponseReader {
  /** Whether the server keeps the connection after the present response. Known from its header on. */
  keepsConnection = true
  /** How long it keeps an unused connection, in seconds; null: it does not say. */
  keepsSeconds: number | null = null
  #state: (typeof State)[keyof typeof State] = State.head
  #left = 0
  /** The header that was read last is all of its response. */
  #isWhole = false
  /** What has come of a header or a line that is not whole. */
  #text = ''
  /** The last bytes of a header that is not whole. */
  #tail = ''
  /** Of the present response: all that has come, interim responses, and lines of a chunked body. */
  #rawBytes = 0
  #interims = 0
  #interimBytes = 0
  #lines = 0
  #lineBytes = 0

  /** The end of the connection would be the regular end of the response. */
  get mayEndNow(): boolean {
    return this.#state === State.untilEnd
  }

  /**
   * Returns how many bytes of `data` belong to responses, if the present one ends in it, or else -1. Throws
   * MalformedResponse; nothing can be read any more then.
   */
  read(data: Buffer, handler: ResponseHandler): number {
    const room = maxRawBytes - this.#rawBytes
    const end = this.#read(data.length > room ? data.subarray(0, room) : data, handler)
    if (end >= 0) this.#rawBytes = 0
    else {
      if (data.length > room) throw new ResponseTooLong(tooLongResponse)
      this.#rawBytes += data.length
    }
    return end
  }

  #read(data: Buffer, handler: ResponseHandler): number {
    let at = 0
    while (at < data.length) {
      switch (this.#state) {
        case State.head:
          at = this.#readHead(data, at, handler)
          if (this.#isWhole) return at
          break
        case State.body:
        case State.chunk:
          at = this.#readBody(data, at, handler)
          if (this.#left > 0) break
          if (this.#state === State.body) {
            this.#state = State.head
            return at
          }
          this.#state = State.chunkEnd
          break
        case State.untilEnd:
          handler.onBody(data.subarray(at))
          return -1
        default:
          at = this.#readLine(data, at)
          if (at > 0 && this.#takeLine()) return at
      }
      if (at < 0) return -1
    }
    return -1
  }

  #readBody(data: Buffer, at: number, handler: ResponseHandler): number {
    const end = Math.min(data.length, at + this.#left)
    this.#left -= end - at
    handler.onBody(data.subarray(at, end))
    return end
  }

  /** Returns where the header ends, or -1: `data` has no more. */
  #readHead(data: Buffer, at: number, handler: ResponseHandler): number {
    this.#isWhole = false
    const end = this.#endOfHead(data, at)
    if (end < 0) {
      this.#keep(data.toString('latin1', at, at + maxPartBytes))
      return -1
    }
    if (this.#text.length + end - at > maxPartBytes) throw new MalformedResponse(tooLongHeader)
    const text = this.#text + data.toString('latin1', at, end)
    this.#checkBegin(text)
    this.#text = ''
    this.#tail = ''
    const head = headOf(text.slice(0, -endOfHead.length))
    this.#begin(head)
    if (head.status < 200) this.#countInterim(text.length)
    else {
      this.#interims = 0
      this.#interimBytes = 0
      handler.onHead(head.status, head.retryAfter, isEncoding(head.contentEncoding), text)
    }
    return end
  }

  /** Where the header ends, or -1: not in `data`. */
  #endOfHead(data: Buffer, at: number): number {
    if (this.#tail !== '') {
      const joint = this.#tail + data.toString('latin1', at, at + endOfHead.length - 1)
      const found = joint.indexOf(endOfHead)
      if (found >= 0) return at + found + endOfHead.length - this.#tail.length
    }
    const found = data.indexOf(endOfHeadBytes, at)
    return found < 0 ? -1 : found + endOfHead.length
  }

  #checkBegin(text: string): void {
    if (text.startsWith(begin) || (text.length < begin.length && begin.startsWith(text))) return
    throw this.#interims === 0 ? new NotHttp() : new MalformedResponse('the response is not HTTP/1')
  }

  #countInterim(bytes: number): void {
    this.#interims++
    this.#interimBytes += bytes
    if (this.#interims > maxInterims || this.#interimBytes > maxPartBytes)
      throw new MalformedResponse(tooManyInterims)
  }

  /** Only the end of what has come is looked at: a header that comes byte by byte would take seconds otherwise. */
  #keep(piece: string): void {
    // What is no response should not have to become long to be seen.
    if (this.#text.length < begin.length) this.#checkBegin(this.#text + piece)
    if (bareLf.test((this.#tail.endsWith('\r') ? '\r' : '') + piece))
      throw new MalformedResponse('a line of the response does not end in CRLF')
    this.#text += piece
    this.#tail = (this.#tail + piece).slice(1 - endOfHead.length)
    if (this.#text.length >= maxPartBytes) throw new MalformedResponse(tooLongHeader)
  }

  /** How long the body is, and whether the connection outlives it (RFC 9112, 6.3 and 9.3). */
  #begin({ status, isHttp11, contentLength, transferEncoding, connection, keepAlive }: Head): void {
    const codings = transferEncoding === null ? [] : members(transferEncoding)
    const isCoded = codings.length > 0
    if (codings.indexOf('chunked') !== codings.lastIndexOf('chunked'))
      throw new MalformedResponse('the response is chunked twice')
    // One that is empty stands for none.
    if (contentLength !== null && transferEncoding)
      throw new MalformedResponse('the response has both Content-Length and Transfer-Encoding')
    if (contentLength !== null && !/^\d{1,15}$/.test(contentLength))
      throw new MalformedResponse('the response has no valid Content-Length')
    if (status === 101) throw new MalformedResponse('the response switches protocols')
    if (status < 200) return
    const length = contentLength === null ? 0 : Number(contentLength)
    this.keepsConnection =
      connection === '' ? isHttp11 : !saysClose(connection) && (isHttp11 || saysKeepAlive.test(connection))
    this.keepsSeconds = null
    if (keepAlive !== '') {
      const { seconds, isLast } = keepAliveOf(keepAlive)
      this.keepsSeconds = seconds
      if (isLast) this.keepsConnection = false
    }
    if (status === 204 || status === 304) {
      // It has no body; what the server sends all the same must not be taken for the next response.
      this.#isWhole = true
      if (length > 0 || isCoded) this.keepsConnection = false
    } else if (codings.at(-1) === 'chunked') {
      this.#state = State.chunkSize
      this.#lines = 0
      this.#lineBytes = 0
      if (!isHttp11) this.keepsConnection = false
    } else if (contentLength === null) {
      this.#state = State.untilEnd
      this.keepsConnection = false
    } else if (length > 0) {
      this.#state = State.body
      this.#left = length
    } else this.#isWhole = true
  }

  /** Completes the line in `#text`; returns where it ends, or -1: `data` has no more. */
  #readLine(data: Buffer, at: number): number {
    const found = data.indexOf(0x0a, at)
    const end = found < 0 ? data.length : found + 1
    this.#lineBytes += end - at
    if (this.#lineBytes > maxPartBytes) throw new ResponseTooLong(tooManyLines)
    this.#text += data.toString('latin1', at, end)
    return found < 0 ? -1 : end
  }

  /** Takes the line in `#text` as a part of a chunked body. True: it was the last one of the response. */
  #takeLine(): boolean {
    const line = this.#text
    this.#text = ''
    if (++this.#lines > maxLines) throw new ResponseTooLong(tooManyLines)
    if (!line.endsWith('\r\n')) throw new MalformedResponse('a line of the response does not end in CRLF')
    if (this.#state === State.chunkSize) {
      const size = chunkSize.exec(line.slice(0, -2))
      if (!size) throw new MalformedResponse('the response has no valid size of a chunk')
      this.#left = parseInt(size[1]!, 16)
      this.#state = this.#left === 0 ? State.trailers : State.chunk
      return false
    }
    if (this.#state === State.chunkEnd) {
      if (line !== '\r\n') throw new MalformedResponse('a chunk of the response is longer than its size')
      this.#state = State.chunkSize
      return false
    }
    if (line !== '\r\n') {
      if (!wholeTrailer.test(line)) throw new MalformedResponse('the response has a malformed trailer')
      return false
    }
    this.#state = State.head
    return true
  }
}

function headOf(text: string): Head {
  if (!wholeHead.test(text)) throw new MalformedResponse('the header of the response is malformed')
  const head: Head = {
    status: Number(text.slice(9, 12)),
    isHttp11: text[7] === '1',
    contentLength: null,
    transferEncoding: null,
    connection: '',
    keepAlive: '',
    retryAfter: null,
    contentEncoding: '',
  }
  for (let line = text.indexOf('\r\n'); line >= 0;) {
    const start = line + 2
    line = text.indexOf('\r\n', start)
    const colon = text.indexOf(':', start)
    // Few names are as long as those that matter.
    const length = colon - start
    if (length === 10 || length === 11 || length === 14 || length === 16 || length === 17)
      take(
        head,
        text.slice(start, colon).toLowerCase(),
        trimmed(text, colon + 1, line < 0 ? text.length : line),
      )
  }
  return head
}

/** Without the spaces and tabs around it (RFC 9110, 5.6.3); String.trim() would take more. */
function trimmed(text: string, from: number, to: number): string {
  while (from < to && isBlank(text.charCodeAt(from))) from++
  while (from < to && isBlank(text.charCodeAt(to - 1))) to--
  return text.slice(from, to)
}

const isBlank = (code: number): boolean => code === 0x20 || code === 0x09

function take(head: Head, name: string, value: string): void {
  if (name === 'content-length') {
    if (head.contentLength !== null) throw new MalformedResponse('the response has two Content-Lengths')
    head.contentLength = value
  } else if (name === 'transfer-encoding') head.transferEncoding = listed(head.transferEncoding ?? '', value)
  else if (name === 'connection') head.connection = listed(head.connection, value)
  else if (name === 'keep-alive') head.keepAlive = listed(head.keepAlive, value)
  else if (name === 'retry-after') head.retryAfter ??= value
  else if (name === 'content-encoding') head.contentEncoding = listed(head.contentEncoding, value)
}

/** Of a list, without the empty ones. */
function members(list: string): string[] {
  const all = list.split(',').map((member) => trimmed(member, 0, member.length))
  return all.filter((member) => member !== '')
}

/** Fields of one name are one list, in which empty members do not count (RFC 9110, 5.3 and 5.6.1). */
function listed(before: string, value: string): string {
  if (before === '' || value === '') return before + value.toLowerCase()
  return `${before},${value.toLowerCase()}`
}
