import { z } from 'zod'
import { aggregateOf, settingsEvents } from '../../core/settings/events.ts'
import type { SettingsRecord } from '../../core/settings/fold.ts'
import type { SettingsEntry } from '../../core/settings/replay.ts'
import { PostriderError } from '../../errors.ts'

/** The Avro record `SettingsEvent`, field by field (schemas/settings-event.avsc). */
export interface SettingsEventFields {
  commandId: string
  expectedVersion: number
  /** Epoch milliseconds. */
  at: number
  aggregate: string
  aggregateId: string
  /** The event's type, for people who read the topic. */
  type: string
  /** The whole event as JSON text. */
  data: string
  /** Who wrote it; empty where that is not known. Records of earlier versions end before it. */
  actor: string
}

/** `cli:<user>@<host>`: host names have at most 253 characters. */
const maxActorLength = 300

const event = z.discriminatedUnion('type', settingsEvents)
const eventTypes: ReadonlySet<string> = new Set(settingsEvents.map(({ shape }) => shape.type.value))

/** Made once: making a schema takes four times as long as reading an event with it. */
const anyEvent = z.object({ type: z.string() })
const skipType = 'record_skipped'
const skip = z.object({ type: z.literal(skipType), offset: z.number().int().nonnegative() })

const fields = z.object({
  commandId: z.string().min(1),
  // Some Avro readers give logical types and longs as Date and bigint.
  expectedVersion: z.coerce.number().int().nonnegative(),
  at: z.coerce.number(),
  data: z.string(),
  // Whoever writes there can write anything: it is shown to people, and kept in memory.
  actor: z.string().transform(clean).catch(''),
})

/** A name on one line, of bounded length. */
function clean(actor: string): string {
  return actor.replace(/\p{C}/gu, '?').slice(0, maxActorLength)
}

export function toFields(record: SettingsRecord): SettingsEventFields {
  const { aggregate, id: aggregateId } = aggregateOf(record.event)
  const { commandId, expectedVersion, at, actor = '' } = record
  return {
    commandId,
    expectedVersion,
    at,
    aggregate,
    aggregateId,
    type: record.event.type,
    data: JSON.stringify(record.event),
    actor: clean(actor),
  }
}

/** The record that passes over the one at `offset`. It has no place among the versions. */
export function skipFields(commandId: string, at: number, offset: number, actor = ''): SettingsEventFields {
  const data = JSON.stringify({ type: skipType, offset })
  return {
    commandId,
    expectedVersion: 0,
    at,
    aggregate: 'settings',
    aggregateId: 'settings',
    type: skipType,
    data,
    actor: clean(actor),
  }
}

/** What reads the bytes of settings events. */
export interface SettingsReader {
  /**
   * The record's fields by our own schema, whatever schema the bytes name; null for bytes that do not begin so. Throws
   * `undecodable` for what is not in the Confluent format.
   */
  readAsOwn(value: Buffer | null): unknown
}

/**
 * What a record of the settings log is. Throws `undecodable` for what no Postrider writes. The bytes alone decide, so
 * that every reader ignores the same records, whatever its registry answers and whether it does: records of every
 * version begin with the fields that this one knows (schemas/settings-event.avsc).
 */
export function readEntry(value: Buffer | null, reader: SettingsReader): SettingsEntry {
  const decoded = reader.readAsOwn(value)
  if (decoded === null) throw new PostriderError('undecodable', 'its bytes are no settings event')
  return entryOf(decoded)
}

/**
 * What a decoded record is. Throws `undecodable` for what no Postrider writes, of whatever version: events are JSON
 * objects with a type. Says what is wrong, and never with the event's content.
 */
function entryOf(decoded: unknown): SettingsEntry {
  const outer = fields.safeParse(decoded)
  if (!outer.success) throw new PostriderError('undecodable', complaint(outer.error))
  const { data, ...envelope } = outer.data
  let json: unknown
  try {
    json = JSON.parse(data)
  } catch {
    throw new PostriderError('undecodable', 'its data is not JSON')
  }
  const typed = anyEvent.safeParse(json)
  if (!typed.success) throw new PostriderError('undecodable', 'its data is no event with a type')
  const { type } = typed.data
  if (type === skipType) {
    const found = skip.safeParse(json)
    if (!found.success) throw new PostriderError('undecodable', complaint(found.error))
    return { kind: 'skip', offset: found.data.offset }
  }
  const inner = event.safeParse(json)
  if (inner.success) return { kind: 'event', record: { ...envelope, event: inner.data } }
  const reason = eventTypes.has(type)
    ? `an event "${type}" with a field that this version cannot read (${complaint(inner.error)})`
    : `an event ${shownType(type)}, which this version does not know`
  return { kind: 'unreadable', envelope, reason }
}

/** Somebody else may have written it. */
const shownType = (type: string): string =>
  /^[\w.-]{1,64}$/.test(type) ? `"${type}"` : 'of a type without a proper name'

function complaint(error: z.ZodError): string {
  const [issue] = error.issues
  const place = issue && issue.path.length > 0 ? `${issue.path.join('.')}: ` : ''
  return `${place}${issue?.message ?? 'it is not a settings event'}`
}
