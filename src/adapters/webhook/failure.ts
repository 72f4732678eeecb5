import type { OutcomeKind } from '../../core/delivery/outcome.ts'
import { AddressNotAllowedError } from './address-guard.ts'

/** The server ended a connection in order, or as if it had lost track of it. */
export class ClosedByServer extends Error {}

/** The outcome of a request that has no whole response, with a line for people that holds no URL and no secret. */
export function failureOf(error: Error, untrusted: boolean): { kind: OutcomeKind; detail: string } {
  if (error instanceof AddressNotAllowedError) return { kind: 'blocked', detail: error.message }
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

function describe(error: Error): string {
  // Several addresses were tried: the message of the whole is empty.
  const each = error instanceof AggregateError ? error.errors.filter((one) => one instanceof Error) : []
  const message = each.length > 0 ? each.map((one) => one.message).join('; ') : error.message || error.name
  const code = codeOf(error)
  const line = code === null || message.includes(code) ? message : `${code}: ${message}`
  return line.replace(/\s+/g, ' ').replace(nodesAdvice, '; WEBHOOK_CA_FILE adds roots to trust').slice(0, 300)
}
