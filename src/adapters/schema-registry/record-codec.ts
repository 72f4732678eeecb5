import { ownCopy } from '../../core/own-bytes.ts'
import { notSetUp } from '../../errors.ts'
import { readable } from './readable.ts'
import { headerBytes, idOf } from './record-reader.ts'
import type { RecordReader } from './record-reader.ts'
import type { Registry } from './registry.ts'
import type { RecordSchema } from './schemas.ts'

/** Between what a part works with and the fields of the Avro record. */
export interface Mapping<T> {
  /** The record as it is written; without this one, the record's own fields are. */
  toFields?(record: T): object
  /** Gets what avsc read; nothing else refers to it. Throws PostriderError 'undecodable'. */
  fromFields(fields: unknown): T
}

const scratchBytes = 64 * 1_024
/** What records are written into before they get memory of their own. It grows for the large, and shrinks again after the very large. */
let scratch = Buffer.allocUnsafeSlow(scratchBytes)

/**
 * Records of one topic, in the Confluent wire format. Synchronous but for `ready`, which must have resolved once
 * before the first `encode`, and `load`, for records with a schema that was not seen before.
 */
export class RecordCodec<T extends object> {
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
      throw notSetUp(
        `the schema registry at ${this.#registry.url} has no ${this.#schema.name} of this version under ${this.subject}`,
      )
    this.#reader.registerOwnSchema(id)
    this.#id = id
  }

  /** The record's bytes, in memory of their own. Throws for what the schema cannot hold: that is a bug. */
  encode(record: T): Buffer {
    let end = this.write(record, scratch, 0)
    while (end < 0) {
      scratch = Buffer.allocUnsafeSlow(scratch.length * 2)
      end = this.write(record, scratch, 0)
    }
    const value = ownCopy(scratch.subarray(0, end))
    if (scratch.length > 16 * scratchBytes) scratch = Buffer.allocUnsafeSlow(scratchBytes)
    return value
  }

  /**
   * As `encode`, into a buffer at `at`. Gives the position behind the record; -1 when the buffer may be too short,
   * of which anything behind `at` may have been overwritten then.
   */
  write(record: T, buffer: Buffer, at: number): number {
    if (this.#id === null) throw new Error(`${this.subject}: ready() comes before encode()`)
    if (at + headerBytes > buffer.length) return -1
    buffer[at] = 0
    buffer.writeInt32BE(this.#id, at + 1)
    const fields = this.#mapping.toFields?.(record) ?? record
    return this.#schema.write(fields, buffer, at + headerBytes)
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

  /**
   * The record by our own schema, whatever schema the bytes name; what stands behind it is left out, and last fields that
   * it ends before have their defaults. Null for bytes that do not begin as such a record. Throws 'undecodable' for what is not in the Confluent wire format.
   */
  readAsOwn(value: Buffer | null): T | null {
    idOf(value)
    for (const { type, defaults } of this.#schema.versions) {
      let fields: object
      try {
        const read = type.decode(value!, headerBytes)
        if (read.offset < 0) continue
        fields = read.value as object
      } catch {
        continue
      }
      return this.#mapping.fromFields({ ...defaults, ...fields })
    }
    return null
  }

  /** As `readable`: null for bytes that are no such record. */
  read(value: Buffer | null, unread?: (why: string) => void): T | null | Promise<T | null> {
    return readable(() => this.tryDecode(value) ?? this.decode(value), unread)
  }

  /** `tryDecode`, and `load` where needed. */
  async decode(value: Buffer | null): Promise<T> {
    const known = this.tryDecode(value)
    if (known !== undefined) return known
    await this.load(value!)
    return this.tryDecode(value)!
  }
}
