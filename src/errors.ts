/**
 * The closed set of errors that cross a module's boundary. `canRetry` says whether the same call may succeed
 * later without any change (infrastructure that is away).
 */
export const errorCodes = {
  /** A flag, setting, environment variable or input line is wrong. The message names it. Exit code 2. */
  usage: { canRetry: false },
  /** What was asked for clashes with the current state: an id in use, an unknown id, a version that has passed. */
  conflict: { canRetry: false },
  not_found: { canRetry: false },
  /** A broker cannot be reached or does not answer. */
  kafka_unavailable: { canRetry: true },
  /** The schema registry cannot be reached or does not answer. */
  registry_unavailable: { canRetry: true },
  /** Topics, schemas or the installation are incomplete or wrong; the message says how to fix it. */
  setup: { canRetry: false },
  /** A record's bytes are not what its schema says, or its schema is not ours. Final for that record. */
  undecodable: { canRetry: false },
  /** A secret cannot be opened: its key is not among SECRETS_KEY. */
  secrets_key: { canRetry: false },
  /** Something did not hold that must always hold: a bug. The process stops, for it could lose records. */
  invariant: { canRetry: false },
  /** A child process, a port or a file that `dev` needs is not to be had. */
  local: { canRetry: false },
} as const

export type ErrorCode = keyof typeof errorCodes

export class PostriderError extends Error {
  readonly code: ErrorCode
  override name = 'PostriderError'

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.code = code
  }

  get canRetry(): boolean {
    return errorCodes[this.code].canRetry
  }
}

/** What is missing, and both ways on: after `npm start` it is enough to wait. */
export const notSetUp = (missing: string, options?: { cause?: unknown }): PostriderError =>
  new PostriderError(
    'setup',
    `${missing}: run \`postrider setup\`, or, where \`npm start\` has just begun, wait until it is ready`,
    options,
  )

/** The message of anything thrown, in one line. */
export function messageOf(error: unknown): string {
  const text = error instanceof Error ? error.message || error.name : String(error)
  return text.replace(/\s*\n\s*/g, ' ')
}

/** The stack of anything thrown, for bugs of ours. */
export function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
