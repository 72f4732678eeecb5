import { PostriderError } from '../../errors.ts'
import { headerBytes } from './record-reader.ts'
import type { RecordReader } from './record-reader.ts'
import type { Registry } from './registry.ts'
import type { RecordSchema } from './schemas.ts'

/** Between what a part works with and the fields of the Avro record. */
export interface Mapping<T> {
  toFields(record: T): object
  /** Gets what avsc read, which nobody else holds. Throws PostriderError 'undecodable'. */
  fromFields(fields: unknown): T
}

/** Most records fit; it grows for those that do not, and shrinks again after the very large. */
const scratchBytes = 64 * 1_024
let scratch = Buffer.allocUnsafeSlow(scratchBytes)

/**
 * Records of one topic, in the Confluent wire format. Synchronous but for `ready`, which must have resolved once
 * before the first `encode`, and `load`, for records with a schema that was not seen before.
 */
export class RecordCodec<T> {
  readonly subject: string
  readonly #schema: RecordSchema
  readonly #registry: Registry
  readonly #reader: RecordReader
  readonly #mapping: Mapping<T>
  #id: number | null = null

  constructor(
    subject: string,
    schema: RecordSchema,
    registry: Registry,
    reader: RecordReader,
    mapping: Mapping<T>,
  ) {
    this.subject = subject
    this.#schema = schema
    this.#registry = registry
    this.#reader = reader
    this.#mapping = mapping
  }

  /**
   * Looks up the id to write with. Throws 'setup' when our schema is not registered under the topic's subject, and
   * 'registry_unavailable'. Idempotent.
   */
  async ready(): Promise<void> {
    if (this.#id !== null) return
    const id = await this.#registry.idOf(this.subject, this.#schema)
    if (id === null)
      throw new PostriderError(
        'setup',
        `the schema registry at ${this.#registry.url} has no ${this.#schema.name} of this version under ${this.subject}: run \`postrider setup\``,
      )
    this.#reader.knowOwn(id)
    this.#id = id
  }

  /** The record's bytes, which nobody else holds. Throws for what the schema cannot hold: that is a bug. */
  encode(record: T): Buffer {
    if (this.#id === null) throw new Error(`${this.subject}: ready() comes before encode()`)
    const fields = this.#mapping.toFields(record)
    let end = this.#schema.type.encode(fields, scratch, headerBytes)
    if (end < 0) {
      // So many bytes are missing.
      scratch = Buffer.allocUnsafeSlow(scratch.length - end)
      end = this.#schema.type.encode(fields, scratch, headerBytes)
    }
    const value = Buffer.from(scratch.subarray(0, end))
    value[0] = 0
    value.writeInt32BE(this.#id, 1)
    if (scratch.length > 16 * scratchBytes) scratch = Buffer.allocUnsafeSlow(scratchBytes)
    return value
  }

  /**
   * The record; undefined when the schema that it was written with has to be loaded first. Throws 'undecodable'
   * for bytes that are no such record, and for a schema that a `load` within the last seconds refused.
   */
  tryDecode(value: Buffer | null): T | undefined {
    const fields = this.#reader.tryRead(value)
    return fields === undefined ? undefined : this.#mapping.fromFields(fields)
  }

  /**
   * Fetches the schema that a record was written with. Throws 'registry_unavailable' when the registry is away or
   * slow (try again), 'undecodable' when there is no such schema or it is not this record's (final).
   */
  load(value: Buffer): Promise<void> {
    return this.#reader.load(value)
  }

  /** `tryDecode`, and `load` where needed. */
  async decode(value: Buffer | null): Promise<T> {
    const known = this.tryDecode(value)
    if (known !== undefined) return known
    await this.load(value!)
    return this.tryDecode(value)!
  }
}
