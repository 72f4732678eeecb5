import { z } from 'zod'
import { callTypes } from '../core/analytics-call.ts'
import { deliverToChoices } from '../core/destination-options.ts'
import { aggregateOf, type SettingsEvent } from '../core/settings-events.ts'
import type { SettingsRecord } from '../core/settings-fold.ts'
import { PostriderError } from '../errors.ts'

/** The Avro record `SettingsEvent`, field by field (schemas/settings-event.avsc). */
export interface SettingsEventFields {
  commandId: string
  expectedVersion: number
  /** Epoch milliseconds. */
  at: number
  aggregate: string
  aggregateId: string
  /** The event's type, for those who look into the topic. */
  type: string
  /** The whole event as JSON text. */
  data: string
}

const sealed = z.object({
  keyId: z.string(),
  iv: z.string(),
  ciphertext: z.string(),
  tag: z.string(),
  fingerprint: z.string(),
})
const source = z.object({ id: z.string(), name: z.string(), writeKey: z.string(), enabled: z.boolean() })
const endpoint = z.object({
  id: z.string(),
  url: z.string(),
  headers: z.array(z.object({ name: z.string(), value: sealed })),
})
const options = z
  .object({
    standardWebhooks: z.boolean(),
    types: z.array(z.enum(callTypes)).nullable(),
    events: z.array(z.string()).nullable(),
    deliverTo: z.enum(deliverToChoices),
  })
  .partial()
const destination = z.object({
  id: z.string(),
  name: z.string(),
  type: z.literal('Webhooks'),
  sourceIds: z.array(z.string()),
  urls: z.array(endpoint),
  sharedSecret: sealed.nullable(),
  options: options.optional(),
  enabled: z.boolean(),
})
const id = z.string()
const kind = z.enum(['audience', 'trait'])
const at = z.number().int()

/** Fields that a newer Postrider added are left out; a type that it added is refused. */
const event: z.ZodType<SettingsEvent> = z.discriminatedUnion('type', [
  z.object({ type: z.literal('source_created'), source }),
  z.object({
    type: z.literal('source_updated'),
    id,
    name: z.string().optional(),
    writeKey: z.string().optional(),
  }),
  z.object({ type: z.literal('source_enabled'), id }),
  z.object({ type: z.literal('source_disabled'), id }),
  z.object({ type: z.literal('destination_created'), destination }),
  z.object({
    type: z.literal('destination_updated'),
    id,
    name: z.string().optional(),
    sourceIds: z.array(z.string()).optional(),
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
    headers: z.array(z.object({ urlId: z.string(), name: z.string(), value: sealed })),
  }),
  z.object({ type: z.literal('endpoint_gone'), id, urlId: z.string(), at }),
  z.object({
    type: z.literal('computation_created'),
    kind,
    id,
    name: z.string(),
    key: z.string(),
    sourceId: z.string(),
  }),
  z.object({
    type: z.literal('sync_started'),
    kind,
    id,
    syncId: z.string(),
    mode: z.enum(['full', 'change', 'farewell']),
    at,
  }),
  z.object({
    type: z.literal('sync_finished'),
    kind,
    id,
    syncId: z.string(),
    at,
    entered: z.number(),
    left: z.number(),
  }),
  z.object({ type: z.literal('computation_deleted'), kind, id }),
])

const fields = z.object({
  commandId: z.string().min(1),
  // Some Avro readers give logical types and longs as Date and bigint.
  expectedVersion: z.coerce.number().int().nonnegative(),
  at: z.coerce.number(),
  data: z.string(),
})

export function toFields(record: SettingsRecord): SettingsEventFields {
  const { aggregate, id: aggregateId } = aggregateOf(record.event)
  const { commandId, expectedVersion, at } = record
  return {
    commandId,
    expectedVersion,
    at,
    aggregate,
    aggregateId,
    type: record.event.type,
    data: JSON.stringify(record.event),
  }
}

/** Throws `undecodable` saying what is wrong; never with the event's content. */
export function fromFields(decoded: unknown): SettingsRecord {
  const outer = fields.safeParse(decoded)
  if (!outer.success) throw undecodable(outer.error)
  const { commandId, expectedVersion, at, data } = outer.data
  let json: unknown
  try {
    json = JSON.parse(data)
  } catch {
    throw new PostriderError('undecodable', 'its data is not JSON')
  }
  const inner = event.safeParse(json)
  if (!inner.success) throw undecodable(inner.error)
  return { commandId, expectedVersion, at, event: inner.data }
}

function undecodable(error: z.ZodError): PostriderError {
  const [issue] = error.issues
  const place = issue && issue.path.length > 0 ? `${issue.path.join('.')}: ` : ''
  return new PostriderError('undecodable', `${place}${issue?.message ?? 'it is not a settings event'}`)
}
