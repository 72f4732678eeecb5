// What the admin API consists of, as data: the server mounts operations, the OpenAPI document is made from them, and
// the same schemas check what comes in.
import type { z } from 'zod'
import type { Reach } from '../core/access/reach.ts'
import { includesRole, type Role } from '../core/access/roles.ts'
import type { ConsoleServices } from './services.ts'

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'

/** Who sends a request. */
export interface Caller {
  /** The token's, or the person's. */
  name: string
  role: Role
  /** The sources and destinations that it is for. */
  only: Reach
}

/** Sessions of browsers, which are cookies. */
export interface SessionGate {
  /** The host of the issuer by whom people can log in; null for tokens only. */
  companyLogin: string | null
  /** Begins one by a token, or by a code that works once. Throws RequestRefused `unauthorized` or `busy`. */
  begin(given: { token: string } | { code: string }): Promise<StartedSession>
  /** The cookie that takes it away again. */
  endingCookie(): string
}

export interface StartedSession {
  caller: Caller
  cookie: string
  /** Epoch milliseconds. */
  expiresAt: number
}

/** What a request asks for, once it was checked. */
export interface ApiRequest<P, Q, B> {
  /** Of an open operation: nobody. */
  caller: Caller
  session: SessionGate
  params: P
  query: Q
  body: B
  /** The lines of a streamed body. Rejects when the sender goes away in the middle. */
  lines: AsyncIterable<Uint8Array>
  /** Of the body, in lower case and without parameters. */
  contentType: string | null
  /** Null when the header is not there. */
  ifMatch: string | null
  idempotencyKey: string | null
  /** Aborts when the console stops, once its grace is over. */
  stopping: AbortSignal
  /** Aborts when the sender has gone away, too. */
  gone: AbortSignal
}

export interface ApiAnswer {
  status: number
  headers?: Record<string, string>
  body: unknown
}

/**
 * Work that may take long. Answered by its result; or, for clients that accept `application/x-ndjson`, by its progress
 * and then its result, a line each.
 */
export interface LongAnswer {
  /** Nothing wrong with the request is found any more once `progress` was called. */
  run(progress: (state: object) => void): Promise<unknown>
  /** Of the answer by its result. */
  headers?(result: unknown): Record<string, string>
}

/** Where the lines of a stream go. */
export interface LineSink {
  /** False: what was written has not been read yet, and no more should be. */
  hasRoom(): boolean
  /** A line without its end. */
  write(text: string): void
}

/** An answer without an end of its own: lines of JSON until the signal aborts. */
export interface StreamAnswer {
  /** Resolves once it has begun; what it throws before is answered as any error. */
  stream(lines: LineSink, signal: AbortSignal): Promise<{ ended: Promise<void> }>
}

/** How many requests may run at once on a console, of all operations that have the same limit. */
export interface RequestLimit {
  max: number
  /** Why one more is refused, and what to do. */
  busy: string
}

/** Values of a path are texts. */
type ParamsSchema = z.ZodObject<Record<string, z.ZodType<string>>>
type QuerySchema = z.ZodObject

export interface Operation {
  /** For clients that are made from the document, and for metrics. */
  id: string
  method: Method
  /** Below /api/v1, as OpenAPI writes it: `/sources/{id}`. */
  path: string
  /** Its words behind `postrider` as a command, such as `sources create`; null where it is none. */
  command: string | null
  /**
   * Fields whose flag has another name than theirs: `source` for `sourceIds`. With `!` before it, the flag means false.
   * Null: the command has flags of its own in place of it.
   */
  flags?: Readonly<Record<string, string | null>>
  summary: string
  description?: string
  /** What a token needs at least. `admin` unless it is given, so that one without it is safe. */
  role?: Role
  /** Parameters of the query that take a higher role. */
  queryRoles?: Readonly<Record<string, Role>>
  /** Takes no token at all. */
  isOpen?: boolean
  /** Answered by what was known last, where Kafka does not answer: for what changes nothing and shows nothing of the settings. */
  needsNoKafka?: true
  /**
   * What it does for a token that is limited to some sources and destinations. `part`: it works on what limited.ts
   * leaves of the services, where nothing else is found. `nothing`, and unless it is given: it is refused.
   */
  forLimited?: 'part' | 'nothing'
  params?: ParamsSchema
  query?: QuerySchema
  body?: z.ZodType
  /** In place of `body`: content types of a streamed one, with what each line is. */
  streams?: Record<string, { description: string; line: z.ZodType }>
  /** An Idempotency-Key is heeded; it can be answered by 409 and 422. */
  isIdempotent?: boolean
  /** If-Match is heeded; it can be answered by 409. */
  hasPrecondition?: boolean
  /** The answer when all went well; 201 has a Location. */
  success: { status: number; description: string; schema: z.ZodType; hasTag?: boolean }
  /** For a LongAnswer: the schema of its progress. */
  progress?: z.ZodType
  /** For a StreamAnswer: `success.schema` is of each line. */
  isStream?: boolean
  /** One request too many is answered by 429. */
  limit?: RequestLimit | ((body: unknown) => RequestLimit | null)
  /** Further statuses than those that every operation can have, and 404 of one with an id in its path. */
  refusals?: (404 | 409 | 429)[]
  handle(
    request: ApiRequest<unknown, unknown, unknown>,
    services: ConsoleServices,
  ): Promise<ApiAnswer | LongAnswer | StreamAnswer>
}

/** With these parameters in the query. */
export function roleOf(
  { role = 'admin', queryRoles = {} }: Pick<Operation, 'role' | 'queryRoles'>,
  query: unknown = {},
): Role {
  const given = Object.keys(query as object)
  const further = Object.entries(queryRoles).flatMap(([name, role]) => (given.includes(name) ? [role] : []))
  return further.reduce((needed, each) => (includesRole(each, needed) ? each : needed), role)
}

type Parsed<S> = S extends z.ZodType ? z.output<S> : undefined

/** An operation whose handler is typed by its own schemas. Its `route` is method and path. */
export function operation<
  P extends ParamsSchema | undefined = undefined,
  Q extends QuerySchema | undefined = undefined,
  B extends z.ZodType | undefined = undefined,
>(
  given: Omit<Operation, 'method' | 'path' | 'params' | 'query' | 'body' | 'limit' | 'handle'> & {
    route: `${Method} /${string}`
    params?: P
    query?: Q
    body?: B
    limit?: RequestLimit | ((body: Parsed<B>) => RequestLimit | null)
    handle(
      request: ApiRequest<Parsed<P>, Parsed<Q>, Parsed<B>>,
      services: ConsoleServices,
    ): Promise<ApiAnswer | LongAnswer | StreamAnswer>
  },
): Operation {
  const { route, ...rest } = given
  const [method, path] = route.split(' ')
  return { ...rest, method, path } as unknown as Operation
}

/** Reads of a whole topic. Each takes a connection, memory and time of a process that may be a collector, too. */
export const longReads: RequestLimit = {
  max: 4,
  busy: '4 requests that read a whole topic are running on this console, which is all that there may be; try again when one has ended',
}
