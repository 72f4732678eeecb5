import { z } from 'zod'
import { roles } from '../../core/access/roles.ts'
import { callTypes } from '../../core/call/analytics-call.ts'
import { deadLetterReasons } from '../../core/delivery/delivery.ts'
import { maxQuotaCount, parseRate } from '../../core/pacing/rate.ts'
import { replayKinds, replayStates } from '../../core/replay/replay-job.ts'
import { deliverToChoices } from '../../core/settings/destination-options.ts'
import { aggregateOf, type SettingsEvent } from '../../core/settings/events.ts'
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

const text = z.string()
const id = text
const kind = z.enum(['audience', 'trait'])
const mode = z.enum(['full', 'change', 'farewell'])
const at = z.number().int()
const count = z.number()
const sealed = z.object({
  keyId: text,
  iv: text,
  ciphertext: text,
  tag: text,
  fingerprint: text,
  bound: z.literal(true).optional(),
})
const maxRate = text.refine((rate) => parseRate(rate, maxQuotaCount) !== null, 'no rate')
const source = z.object({
  id,
  name: text,
  writeKey: text,
  maxRate: maxRate.optional(),
  enabled: z.boolean(),
})
const endpoint = z.object({ id, url: text, headers: z.array(z.object({ name: text, value: sealed })) })
const options = z
  .object({
    standardWebhooks: z.boolean(),
    types: z.array(z.enum(callTypes)).nullable(),
    events: z.array(text).nullable(),
    deliverTo: z.enum(deliverToChoices),
    maxRate: text.nullable(),
    maxInFlight: count.nullable(),
    where: text.nullable(),
    drop: z.array(text).nullable(),
    traceContext: z.boolean(),
  })
  .partial()
const destination = z.object({
  id,
  name: text,
  type: z.literal('Webhooks'),
  sourceIds: z.array(text),
  urls: z.array(endpoint),
  sharedSecret: sealed.nullable(),
  options: options.optional(),
  enabled: z.boolean(),
})

/** Earlier versions have none of what is `0` or null by default. */
const totals = z.object({
  held: count,
  skipped: count,
  failed: count,
  delivered: count,
  raw: count.default(0),
  looked: count,
  erased: count,
  refused: count,
  repeated: count.default(0),
  lost: count,
})
const anyReplay = z.object({
  id,
  rate: count.nullable(),
  pauseId: text.nullable(),
  createdAt: at,
  keptSince: at.nullable(),
  state: z.enum(replayStates),
  changedAt: at,
  totals: totals.nullable(),
})
const callReplay = anyReplay.extend({
  deadLetters: z.null().default(null),
  destinationId: id,
  only: z.array(z.enum(replayKinds)),
  since: at,
  until: at,
  types: z.array(z.enum(callTypes)).nullable(),
  events: z.array(text).nullable(),
  user: text.nullable(),
  messageId: text.nullable().default(null),
})
const texts = z.array(text).nullable()
const kindOfDeadLetters = z.object({
  reason: z.enum(deadLetterReasons).nullable(),
  status: z.union([text, count]).nullable(),
  destinationId: id.nullable(),
})
const deadLetterReplay = anyReplay.extend({
  deadLetters: z.object({
    ids: texts,
    reason: texts,
    destination: texts,
    status: texts,
    kinds: z.array(kindOfDeadLetters).nullable(),
  }),
  ends: z.array(z.object({ partition: count, offset: count })),
  since: at.nullable(),
  until: at.nullable(),
})
const replay = z.union([callReplay, deadLetterReplay])

const singles = [
  z.object({ type: z.literal('source_created'), source }),
  z.object({
    type: z.literal('source_updated'),
    id,
    name: text.optional(),
    writeKey: text.optional(),
    maxRate: maxRate.nullable().optional(),
  }),
  z.object({ type: z.literal('source_enabled'), id }),
  z.object({ type: z.literal('source_disabled'), id }),
  z.object({ type: z.literal('destination_created'), destination }),
  z.object({
    type: z.literal('destination_updated'),
    id,
    name: text.optional(),
    sourceIds: z.array(text).optional(),
    urls: z.array(endpoint).optional(),
    sharedSecret: sealed.nullable().optional(),
    earlierSecret: sealed.optional(),
    options: options.optional(),
  }),
  z.object({ type: z.literal('destination_enabled'), id }),
  z.object({ type: z.literal('destination_disabled'), id }),
  z.object({
    type: z.literal('secrets_resealed'),
    id,
    sharedSecret: sealed.optional(),
    earlierSecret: sealed.optional(),
    headers: z.array(z.object({ urlId: text, name: text, value: sealed })),
  }),
  z.object({ type: z.literal('destination_paused'), id, pauseId: text, at, until: at.nullable() }),
  z.object({ type: z.literal('destination_resumed'), id, pauseId: text, at }),
  z.object({ type: z.literal('replay_started'), replay }),
  z.object({ type: z.literal('replay_paused'), id, at }),
  z.object({ type: z.literal('replay_resumed'), id, at }),
  z.object({ type: z.literal('replay_cancelled'), id, at, totals: totals.nullable() }),
  z.object({ type: z.literal('replay_finished'), id, at, totals: totals.nullable() }),
  z.object({ type: z.literal('endpoint_gone'), id, urlId: text, at }),
  z.object({ type: z.literal('computation_created'), kind, id, name: text, key: text, sourceId: text }),
  z.object({ type: z.literal('sync_started'), kind, id, syncId: text, mode, at }),
  z.object({ type: z.literal('sync_finished'), kind, id, syncId: text, at, entered: count, left: count }),
  z.object({ type: z.literal('computation_deleted'), kind, id }),
] as const
const events = [
  ...singles,
  z.object({ type: z.literal('token_created'), id, role: z.enum(roles), hash: text, at }),
  z.object({ type: z.literal('token_revoked'), id, at }),
  z.object({ type: z.literal('settings_applied'), events: z.array(z.discriminatedUnion('type', singles)) }),
] as const
/** Fields that a newer Postrider added are left out; a type that it added cannot be read. */
const event: z.ZodType<SettingsEvent> = z.discriminatedUnion('type', events)
const eventTypes: ReadonlySet<string> = new Set(events.map(({ shape }) => shape.type.value))

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
