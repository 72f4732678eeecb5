import { COMPATIBILITY, SchemaRegistry, SchemaType } from '@kafkajs/confluent-schema-registry'
import avro from 'avsc'
import type { Type } from 'avsc'
import type { Config } from '../../config/config.ts'
import { PostriderError, messageOf } from '../../errors.ts'
import type { RecordSchema } from './schemas.ts'

/** Levels under which a new version can read what an older one wrote. */
const backwardLevels = [
  COMPATIBILITY.BACKWARD,
  COMPATIBILITY.BACKWARD_TRANSITIVE,
  COMPATIBILITY.FULL,
  COMPATIBILITY.FULL_TRANSITIVE,
]

/** How long a request to the registry may take, in ms. */
const requestTimeoutMs = 5_000

/** Of a request for one schema: these speak of the login, or of the moment, and not of what was asked for. */
const passingRefusals = [401, 407, 408, 425, 429]
/** Begins the messages of the client's own errors. */
const clientId = 'registry'
/** More versions of one subject are not looked at, the oldest first. */
const maxVersions = 200

/**
 * The schema registry, each request bounded by a deadline. Every method throws PostriderError
 * 'registry_unavailable' when the registry is away, too slow, or answers with anything that it should not.
 */
export class Registry {
  readonly url: string
  #client: SchemaRegistry
  readonly #open: () => SchemaRegistry
  readonly #authorization: string | null
  readonly #timeoutMs: number
  #hasConfluentApi = false

  constructor(config: Config['registry'], timeoutMs = requestTimeoutMs) {
    this.url = config.url.replace(/\/+$/, '')
    this.#timeoutMs = timeoutMs
    const { username, password } = config
    this.#authorization =
      username === null ? null : `Basic ${Buffer.from(`${username}:${password ?? ''}`).toString('base64')}`
    this.#open = () =>
      new SchemaRegistry({
        clientId,
        host: this.url,
        ...(username === null ? {} : { auth: { username, password: password ?? '' } }),
        // The caller knows better whether and when to retry.
        retry: { retries: 0 },
        // Frees the socket; the promise itself is bounded in `#ask`, for the client forgets about a response that
        // stops halfway.
        middlewares: [
          () => ({
            prepareRequest: async (next) =>
              (await next()).enhance({ signal: AbortSignal.timeout(timeoutMs) as never }),
          }),
        ],
      })
    this.#client = this.#open()
  }

  /**
   * The schema of an id. Throws PostriderError 'undecodable' when there is none, none that is Avro, or none that the
   * registry gives to us.
   */
  async schema(id: number): Promise<Type> {
    const schema = await this.#ask(`schema ${id}`, async () => {
      try {
        return await this.#client.getSchema(id)
      } catch (error) {
        if (isRefusal(error))
          throw new PostriderError(
            'undecodable',
            `the registry does not give schema ${id} (${error.status}): ${said(error)}`,
            { cause: error },
          )
        if (isResponse(error)) throw error
        throw new PostriderError('undecodable', `schema ${id} makes no sense: ${messageOf(error)}`, {
          cause: error,
        })
      }
    })
    if (schema === null) throw new PostriderError('undecodable', `the registry has no schema ${id}`)
    if (!avro.Type.isType(schema)) throw new PostriderError('undecodable', `schema ${id} is not Avro`)
    return schema as unknown as Type
  }

  /** The id of exactly this schema under the subject; null when it is not registered there. */
  async idOf(subject: string, schema: RecordSchema): Promise<number | null> {
    const id = await this.#ask(subject, () => this.#client.getRegistryIdBySchema(subject, asAvro(schema)))
    return id === null ? null : this.#checkedId(subject, id)
  }

  /** Whether the subject has any version. */
  async knows(subject: string): Promise<boolean> {
    const id = await this.#ask(subject, () => this.#client.getLatestSchemaId(subject))
    return id !== null && this.#checkedId(subject, id) > 0
  }

  /** The ids of all versions of a subject; null when there is no such subject. */
  async idsOf(subject: string): Promise<Set<number> | null> {
    return this.#ask(subject, async () => {
      const versions = await this.#versionsOf(subject)
      if (versions === null) return null
      const ids = versions.slice(-maxVersions).map((version) => this.#client.getRegistryId(subject, version))
      return new Set(await Promise.all(ids))
    })
  }

  /**
   * Whether the registry gives the newest schema of a subject now, with the same login. Nothing is remembered. Never
   * throws.
   */
  async gives(subject: string): Promise<boolean> {
    try {
      const latest = await this.#get(`/subjects/${encodeURIComponent(subject)}/versions/latest`)
      const { id } = (latest.body ?? {}) as { id?: unknown }
      if (typeof id !== 'number') return false
      const { body } = await this.#get(`/schemas/ids/${id}`)
      return typeof (body as { schema?: unknown } | null | undefined)?.schema === 'string'
    } catch {
      return false
    }
  }

  /** The client has no such call. */
  async #versionsOf(subject: string): Promise<number[] | null> {
    const { status, body: versions } = await this.#get(`/subjects/${encodeURIComponent(subject)}/versions`)
    if (status === 404) {
      await this.#requireConfluentApi()
      return null
    }
    if (Array.isArray(versions) && versions.every((version) => typeof version === 'number')) return versions
    throw this.#unavailable(subject, 'it does not list its versions')
  }

  /** What the client has no call for. `body` is undefined where it is no JSON. */
  async #get(path: string): Promise<{ status: number; body: unknown }> {
    try {
      const response = await fetch(`${this.url}${path}`, {
        redirect: 'error',
        signal: AbortSignal.timeout(this.#timeoutMs),
        headers: this.#authorization === null ? {} : { authorization: this.#authorization },
      })
      const text = await response.text()
      return { status: response.status, body: jsonOf(text) }
    } catch (error) {
      const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
      throw this.#unreachable(messageOf(cause), error)
    }
  }

  /**
   * A 404 says that there is no such thing only where the API is that could have it. Any registry answers this request,
   * by an `error_code` too.
   */
  async #requireConfluentApi(): Promise<void> {
    if (this.#hasConfluentApi) return
    const { status, body } = await this.#get('/config')
    const code: unknown =
      typeof body === 'object' && body !== null && 'error_code' in body ? body.error_code : null
    if (status === 404 && typeof code !== 'number')
      throw new PostriderError(
        'registry_unavailable',
        `there is no Confluent API at the schema registry's URL ${this.url}; Apicurio has it at ${new URL(this.url).origin}/apis/ccompat/v7`,
      )
    this.#hasConfluentApi = true
  }

  /**
   * Registers the schema as the subject's newest version and gives its id. A new subject gets BACKWARD
   * compatibility; one that exists keeps its own. Throws PostriderError 'setup' when the subject's level lets
   * schemas in that break readers, or when the registry finds the schema incompatible with its older versions.
   */
  async register(subject: string, schema: RecordSchema): Promise<number> {
    const isNew = !(await this.knows(subject))
    for (const compatibility of backwardLevels) {
      try {
        const registered = await this.#ask(subject, () =>
          this.#client.register(asAvro(schema), { subject, compatibility, updateConfig: isNew }),
        )
        if (registered !== null) return this.#checkedId(subject, registered.id)
      } catch (error) {
        const refusal = refusalOf(error, subject)
        if (refusal !== 'other level') throw refusal
      }
    }
    throw new PostriderError(
      'setup',
      `subject ${subject} has a compatibility level that lets a schema in that consumers cannot read; set it to BACKWARD in the registry (PUT ${this.url}/config/${subject} {"compatibility":"BACKWARD"}), then run \`postrider setup\` again`,
    )
  }

  /**
   * Null for a 404. Errors of the client itself, and what a registry refuses (409, 422), are passed on; all
   * others become 'registry_unavailable'.
   */
  async #ask<T>(what: string, request: () => Promise<T>): Promise<T | null> {
    let timer: NodeJS.Timeout | undefined
    const deadline = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => {
        // It keeps a request that it forgot about, and has whoever asks for the same wait for that.
        this.#client = this.#open()
        reject(this.#unavailable(what, `no answer within ${this.#timeoutMs} ms`))
      }, this.#timeoutMs)
    })
    try {
      return await Promise.race([request(), deadline])
    } catch (error) {
      // What the client makes of a 404 when it looks a schema up.
      const isLookUp = error instanceof Error && error.name === 'ConfluentSchemaRegistryError'
      if (isLookUp || (isResponse(error) && error.status === 404)) {
        await this.#requireConfluentApi()
        return null
      }
      if (!isResponse(error)) throw error
      if (error.status === 409 || error.status === 422) throw error
      const unanswered = unansweredReason(error)
      if (unanswered !== null) throw this.#unreachable(unanswered, error)
      throw this.#unavailable(what, reasonOf(error), error)
    } finally {
      clearTimeout(timer)
    }
  }

  /** Something else than a registry may answer 200 too. */
  #checkedId(subject: string, id: unknown): number {
    if (typeof id === 'number') return id
    throw this.#unavailable(subject, 'what answers there is no schema registry')
  }

  #unreachable(reason: string, cause: unknown): PostriderError {
    return new PostriderError(
      'registry_unavailable',
      `the schema registry at ${this.url} cannot be reached: ${reason}`,
      { cause },
    )
  }

  #unavailable(what: string, reason: string, cause?: unknown): PostriderError {
    return new PostriderError(
      'registry_unavailable',
      `the schema registry at ${this.url} gave no answer about ${what}: ${reason}`,
      { cause },
    )
  }
}

const asAvro = (schema: RecordSchema) =>
  ({ type: SchemaType.AVRO, schema: JSON.stringify(schema.json) }) as const

/** What the client throws for every request that went wrong; without a response the status is 400. */
interface FailedResponse extends Error {
  status: number
}

const isResponse = (error: unknown): error is FailedResponse =>
  error instanceof Error && 'status' in error && typeof error.status === 'number'

const said = (error: FailedResponse): string => messageOf(error).replace(`${clientId} - `, '')

/** Why there was no answer at all, of which the client makes a status of 400 too, but no message of a registry's. */
const unansweredReason = (error: FailedResponse): string | null =>
  /^Error, status 400: (?!\[object )(.+)$/.exec(said(error))?.[1] ?? null

/** The registry answered that it does not give what was asked for. */
const isRefusal = (error: unknown): error is FailedResponse =>
  isResponse(error) &&
  error.status >= 400 &&
  error.status < 500 &&
  error.status !== 404 &&
  !passingRefusals.includes(error.status) &&
  unansweredReason(error) === null

function reasonOf(error: FailedResponse): string {
  if (error.status === 401 || error.status === 403)
    return `it refuses the login (${error.status}); check SCHEMA_REGISTRY_USERNAME and SCHEMA_REGISTRY_PASSWORD`
  return said(error)
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function refusalOf(error: unknown, subject: string): unknown {
  if (error instanceof Error && error.name === 'ConfluentSchemaRegistryCompatibilityError')
    return 'other level'
  if (!isResponse(error)) return error
  return new PostriderError(
    'setup',
    `the registry refuses the schema of ${subject} (${error.status}): ${said(error)}. Its versions there are not Postrider's own: use another TOPIC_PREFIX, or delete the subject`,
    { cause: error },
  )
}
