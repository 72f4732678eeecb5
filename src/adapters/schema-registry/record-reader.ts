import type { Type } from 'avsc'
import type { Logger } from 'pino'
import { PostriderError, messageOf } from '../../errors.ts'
import { BoundedTap, hasEndlessItems } from './bounded-tap.ts'
import type { Registry } from './registry.ts'
import type { RecordSchema } from './schemas.ts'

/** How long an id that the registry does not have, or whose schema is not ours, is not asked for again, in ms. */
const refusalMs = 10_000
/** Anybody can write any id: beyond this many the refusals are forgotten. */
const maxRefusals = 1_000
/** Unknown ids looked up per second: each takes two requests, and everything behind its record waits. */
const maxAskedIds = 20
const askedIdsMs = 1_000

/**
 * For how long the registry may fail for one id, while it answers for others, until records with that id count as
 * undecodable, in ms: what stands behind them would wait for ever.
 */
const maxStuckMs = 300_000

/** The magic byte and the schema's id (Confluent wire format). */
export const headerBytes = 5

/** An avsc type or resolver, by the method that both read with. */
interface ReadsFrom {
  _read(tap: BoundedTap): unknown
}

interface Refusal {
  error: PostriderError
  until: number
}

/**
 * Reads one kind of record whatever version of its schema it was written with. The way from each writer's schema
 * to ours is compiled once; after that reading is synchronous.
 */
export class RecordReader {
  readonly #schema: RecordSchema
  readonly #registry: Registry
  readonly #log: Logger
  /** A subject that the registry must know if it is the one that the records were written with. */
  readonly #knownSubject: string
  /** Where the schemas of these records are registered. */
  readonly #subjects: () => readonly string[]
  readonly #resolvers = new Map<number, ReadsFrom>()
  readonly #refusals = new Map<number, Refusal>()
  readonly #loading = new Map<number, Promise<void>>()
  /** Since when the registry has failed for an id, each time it was asked, and has answered for another. */
  readonly #stuckSince = new Map<number, number>()
  readonly #now: () => number
  /** Unknown ids that were asked for since `#askedSince`. */
  readonly #asked = new Set<number>()
  #askedSince = 0
  /** The ids of the subjects' versions, while there are too many unknown ones to ask for each. */
  #registered: Promise<ReadonlySet<number>> | null = null
  readonly #tap = new BoundedTap()
  #lastId = 0
  #lastResolver: ReadsFrom | undefined

  constructor(
    schema: RecordSchema,
    registry: Registry,
    knownSubject: string,
    subjects: () => readonly string[],
    log: Logger,
    now: () => number = () => performance.now(),
  ) {
    this.#now = now
    this.#schema = schema
    this.#registry = registry
    this.#knownSubject = knownSubject
    this.#subjects = subjects
    this.#log = log
  }

  /** Registered as ours: nothing has to be fetched for it. */
  registerOwnSchema(id: number): void {
    this.#resolvers.set(id, this.#schema.type as unknown as ReadsFrom)
  }

  /** The record as avsc gives it; undefined when its schema has to be loaded first. Throws 'undecodable'. */
  tryRead(value: Buffer | null): unknown {
    const id = idOf(value)
    let resolver = this.#lastResolver
    if (id !== this.#lastId || resolver === undefined) {
      resolver = this.#resolvers.get(id)
      if (resolver === undefined) {
        this.#throwRefusal(id)
        return undefined
      }
      this.#lastId = id
      this.#lastResolver = resolver
    }
    const tap = this.#tap
    tap.reset(value!, headerBytes)
    let record: unknown
    try {
      record = resolver._read(tap)
    } catch (error) {
      throw undecodable(`the bytes are no ${this.#schema.name} of schema ${id}: ${messageOf(error)}`, error)
    } finally {
      tap.release()
    }
    if (!tap.isAtEnd) throw undecodable(`the bytes go on behind the ${this.#schema.name} of schema ${id}`)
    return record
  }

  /** Fetches the writer's schema. Throws 'registry_unavailable' (try again) or 'undecodable' (final). */
  load(value: Buffer): Promise<void> {
    const id = idOf(value)
    let loading = this.#loading.get(id)
    if (loading === undefined) {
      loading = this.#load(id).finally(() => this.#loading.delete(id))
      this.#loading.set(id, loading)
    }
    return loading
  }

  async #load(id: number): Promise<void> {
    if (this.#resolvers.has(id)) return
    this.#throwRefusal(id)
    try {
      if (!this.#mayAsk(id)) await this.#requireRegistered(id)
      this.#resolvers.set(id, this.#resolverFrom(await this.#fetch(id), id))
      this.#log.debug(
        { schemaId: id, record: this.#schema.name },
        'learned a schema that records are written with',
      )
    } catch (error) {
      if (error instanceof PostriderError && error.code === 'undecodable') this.#refuse(id, error)
      throw error
    }
  }

  #mayAsk(id: number): boolean {
    const now = performance.now()
    if (now - this.#askedSince >= askedIdsMs) {
      this.#asked.clear()
      this.#askedSince = now
      this.#registered = null
    }
    if (this.#asked.has(id)) return true
    if (this.#asked.size >= maxAskedIds) return false
    this.#asked.add(id)
    return true
  }

  /** Instead of asking for one more id: whether any version of the records' subjects has it. */
  async #requireRegistered(id: number): Promise<void> {
    const registered = (this.#registered ??= this.#registeredIds())
    registered.catch(() => {
      if (this.#registered === registered) this.#registered = null
    })
    if ((await registered).has(id)) return
    throw undecodable(
      `schema ${id} is of no version of ${this.#subjects().join(', ')}, and there are too many unknown ones to ask for each`,
    )
  }

  async #registeredIds(): Promise<ReadonlySet<number>> {
    const found = await Promise.all(this.#subjects().map((subject) => this.#registry.idsOf(subject)))
    const ids = found.filter((each) => each !== null)
    if (ids.length > 0) return new Set(ids.flatMap((each) => [...each]))
    throw new PostriderError(
      'registry_unavailable',
      `the schema registry at ${this.#registry.url} knows none of ${this.#subjects().join(', ')}`,
    )
  }

  async #fetch(id: number): Promise<Type> {
    try {
      const type = await this.#registry.schema(id)
      this.#stuckSince.delete(id)
      return type
    } catch (error) {
      if (!(error instanceof PostriderError)) throw error
      if (error.code !== 'undecodable') throw await this.#stuck(id, error)
      // A registry that was set up again, or a wrong URL, has no schema for any record: that is no record's fault.
      if (await this.#registry.knows(this.#knownSubject)) throw error
      throw new PostriderError(
        'registry_unavailable',
        `the schema registry at ${this.#registry.url} knows neither schema ${id} nor ${this.#knownSubject}: is it the one that the records were written with?`,
      )
    }
  }

  /**
   * The error for an id that the registry fails for: the given one, which has it asked again, until it has failed for
   * that id alone for `maxStuckMs`. A registry that is away, or refuses the login, fails for the known subject as well,
   * and then that time begins again: it never makes a record undecodable.
   */
  async #stuck(id: number, error: PostriderError): Promise<PostriderError> {
    if (!(await this.#registry.gives(this.#knownSubject))) {
      this.#stuckSince.delete(id)
      return error
    }
    const now = this.#now()
    const since = this.#stuckSince.get(id)
    if (since === undefined) {
      if (this.#stuckSince.size >= maxRefusals) this.#stuckSince.clear()
      this.#stuckSince.set(id, now)
      return error
    }
    if (now - since < maxStuckMs) return error
    const refusal = undecodable(
      `the registry has failed for schema ${id} for ${Math.round((now - since) / 60_000)} minutes, and gives others: ${messageOf(error)}`,
      error,
    )
    this.#log.error({ schemaId: id }, `records of schema ${id} cannot be read: ${refusal.message}`)
    return refusal
  }

  #resolverFrom(writer: Type, id: number): ReadsFrom {
    const { name, type } = this.#schema
    if (writer.name !== name) throw undecodable(`schema ${id} is ${writer.name ?? 'unnamed'}, not ${name}`)
    if (hasEndlessItems(writer)) throw undecodable(`schema ${id} has a list of items without bytes`)
    if (type.equals(writer)) return type as unknown as ReadsFrom
    try {
      return type.createResolver(writer) as unknown as ReadsFrom
    } catch (error) {
      throw undecodable(`schema ${id} cannot be read as ${name}: ${messageOf(error)}`, error)
    }
  }

  #throwRefusal(id: number): void {
    const refusal = this.#refusals.get(id)
    if (refusal === undefined) return
    if (performance.now() < refusal.until) throw refusal.error
    this.#refusals.delete(id)
  }

  #refuse(id: number, error: PostriderError): void {
    if (this.#refusals.size >= maxRefusals) this.#refusals.clear()
    this.#refusals.set(id, { error, until: performance.now() + refusalMs })
  }
}

/** The id of the schema that the record names. Throws 'undecodable' for what is not in the Confluent wire format. */
export function idOf(value: Buffer | null): number {
  if (value === null) throw undecodable('the record has no value')
  if (value.length < headerBytes)
    throw undecodable(`the record has ${value.length} bytes; a header alone has ${headerBytes}`)
  if (value[0] !== 0)
    throw undecodable('the record does not begin with the magic byte 0 of the Confluent format')
  const id = value.readInt32BE(1)
  if (id < 0) throw undecodable(`there is no schema ${id}: ids are not negative`)
  return id
}

function undecodable(message: string, cause?: unknown): PostriderError {
  return new PostriderError('undecodable', message, cause === undefined ? {} : { cause })
}
