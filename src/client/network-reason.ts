import { messageOf } from '../errors.ts'

/** The connection on which an error came. */
export interface UsedConnection {
  hasTls: boolean
  /** Not one that was kept open from an earlier request: a server may close those at any time. */
  isNew: boolean
}

interface NetworkError extends Error {
  code?: string
  /** One for each address of a name. */
  errors?: readonly Error[]
}

const untrusted =
  /^(?:DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_GET_ISSUER_CERT|UNABLE_TO_GET_ISSUER_CERT_LOCALLY|UNABLE_TO_VERIFY_LEAF_SIGNATURE|CERT_UNTRUSTED)$/
/** What OpenSSL makes of an answer that is not TLS. */
const notTls = /wrong version number|packet length too long|unknown protocol|http request/

/** Why a request got no answer, in one line, with what to do where that is known. */
export function networkReason(error: NetworkError, { hasTls, isNew }: UsedConnection): string {
  const { code = '', errors = [] } = error
  if (errors.length > 0) return [...new Set(errors.map(messageOf))].join(', ')
  if (untrusted.test(code))
    return `the server's certificate is not trusted (${code}); NODE_EXTRA_CA_CERTS names a file with more authorities`
  if (code === 'EPROTO' || code.startsWith('ERR_SSL_')) {
    // write EPROTO 80ACC765AD7F0000:error:0A00010B:SSL routines:ssl3_get_record:wrong version number:../deps/…
    const reason = /SSL routines:[^:]*:([^:]+)/.exec(error.message)?.[1] ?? messageOf(error)
    return notTls.test(reason)
      ? `no TLS at this port (${reason}); check the port, or use http://`
      : `TLS failed: ${reason}`
  }
  if (code === 'ECONNRESET' && isNew && !hasTls)
    return `the connection was closed without an answer (${messageOf(error)}); check the port, or use https:// if it takes only TLS`
  return error.message === '' && code !== '' ? code : messageOf(error)
}
