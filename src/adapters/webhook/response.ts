import { maxResponseBytes, type OutcomeKind } from '../../core/delivery/outcome.ts'
import { AddressNotAllowedError } from './address-guard.ts'

/** The header of a response: its text with the status line, or values by lower-case names. */
export type ResponseFields = string | Record<string, string | string[] | undefined>

/** What is told of a response as it comes. */
export interface ResponseHandler {
  /**
   * The final response's status, from 200 on, and its first Retry-After. `isEncoded`: its body has a Content-Encoding.
   */
  onHead(status: number, retryAfter: string | null, isEncoded: boolean, fields: ResponseFields): void
  /** A part of its body: a window on memory that the next read writes over. */
  onBody(chunk: Buffer): void
}

/** What came is not a response as RFC 9112 has it, or has too long a header. The message holds nothing of it. */
export class MalformedResponse extends Error {}

/** Not even its first bytes are those of a response: they may be left over from one before. */
export class NotHttp extends MalformedResponse {
  constructor() {
    super('the response is not HTTP/1')
  }
}

/** The response is longer than is read of any. */
export class ResponseTooLong extends MalformedResponse {}

/**
 * All that is read of a response, whatever it consists of. Beside the body there may be as much as this of each of: the
 * header; interim responses; what says how long chunks are, with its extensions, and trailers.
 */
export const maxPartBytes = 16_384
export const maxRawBytes = maxResponseBytes + 3 * maxPartBytes
/** Interim responses before the final one. */
export const maxInterims = 8

export const tooLongHeader = 'the header of the response is too long'
export const tooLongResponse = 'the response is too long'
export const tooManyInterims = 'the server sends too many interim responses'

/** A body in any of these would not be text, and secrets in it would not be found. */
export const isEncoding = (contentEncoding: string): boolean => !/^(?:identity)?$/.test(contentEncoding)

/**
 * A Connection field that ends the connection, in lower case. Space around a member is also tabs (RFC 9110, 5.6.3). With more
 * behind such a space it is no member, and believed all the same: a connection may be closed at any time.
 */
export const saysClose = (connection: string): boolean => /(?:^|,)[\t ]*close(?:[\t ,]|$)/.test(connection)

/** What a Keep-Alive field says: it is in no RFC, but servers send it. Lower case. */
export function keepAliveOf(field: string): { seconds: number | null; isLast: boolean } {
  const seconds = /(?:^|[,;\s])timeout\s*=\s*"?(\d{1,9})/.exec(field)
  // `max`: how many requests it takes still.
  return { seconds: seconds && Number(seconds[1]), isLast: /(?:^|[,;\s])max\s*=\s*"?0+(?!\d)/.test(field) }
}

/** The server ended a connection in order, or as if it had lost track of it. */
export class ClosedByServer extends Error {}

/** The forward proxy refused the connection, or failed. The message holds nothing that it sent, and no login. */
export class ProxyFailure extends Error {
  /** That it answered CONNECT with, where it did. */
  readonly status: number | null

  constructor(message: string, status: number | null = null) {
    super(message)
    this.status = status
  }
}

/** The outcome of a request that has no whole response, with a line for people that holds no URL and no secret. */
export function failureOf(error: Error, untrusted: boolean): { kind: OutcomeKind; detail: string } {
  if (error instanceof AddressNotAllowedError) return { kind: 'blocked', detail: error.message }
  if (error instanceof ProxyFailure) return { kind: 'proxy', detail: error.message }
  return { kind: untrusted ? 'tls' : 'network', detail: describe(error) }
}

/** The other side, or something between, closed the connection: as when a keep-alive connection ends of age. */
export function wasClosedUnderneath(error: Error): boolean {
  const code = codeOf(error)
  return (
    error instanceof ClosedByServer || code === 'ECONNRESET' || code === 'EPIPE' || code === 'ECONNABORTED'
  )
}

function codeOf(error: Error): string | null {
  return 'code' in error && typeof error.code === 'string' ? error.code : null
}

/** Node's own advice would have every root of the machine trusted, at the brokers and the registry too. */
const nodesAdvice = /; if the root CA is installed locally, try running Node\.js with --use-system-ca/

/** What errors of Node and OpenSSL mean to somebody who looks after the endpoint. */
const meanings: Readonly<Record<string, string>> = {
  ENOTFOUND: 'the host name does not exist',
  EAI_AGAIN: 'the host name could not be looked up at present',
  ECONNREFUSED: 'nothing accepts connections there',
  ECONNRESET: 'the other side broke the connection off',
  EPIPE: 'the other side broke the connection off',
  ETIMEDOUT: 'its address did not answer',
  EHOSTUNREACH: 'no network leads to its address',
  ENETUNREACH: 'no network leads to its address',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is signed by itself only',
  SELF_SIGNED_CERT_IN_CHAIN: 'its certificate leads to a root that is not trusted',
  UNABLE_TO_GET_ISSUER_CERT: 'its certificate leads to no root that is trusted',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'its certificate leads to no root that is trusted',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its server sends a certificate without those between it and its root',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for other names',
}

/**
 * In plain words where they are known, and in the system's.
 * @param caSetting names the setting that adds roots to trust
 */
export function describe(error: Error, caSetting = 'WEBHOOK_CA_FILE'): string {
  // Several addresses were tried: the message of the whole is empty.
  const each = error instanceof AggregateError ? error.errors.filter((one) => one instanceof Error) : []
  const message = each.length > 0 ? each.map((one) => one.message).join('; ') : error.message || error.name
  const code = codeOf(error)
  const isAdvised = nodesAdvice.test(message)
  const plain = message.replace(nodesAdvice, '')
  const said = code === null || plain.includes(code) ? plain : `${code}: ${plain}`
  const meaning = code === null ? undefined : meanings[code]
  const line = meaning === undefined ? said : `${meaning} (${said})`
  const advised = isAdvised ? `${line}; ${caSetting} adds roots to trust` : line
  return advised.replace(/\s+/g, ' ').slice(0, 300)
}
