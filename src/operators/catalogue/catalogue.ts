import { isoOrNull } from '../../core/duration.ts'
import { asyncApiDocument } from '../../core/catalogue/asyncapi.ts'
import type { FieldKind, PathStep } from '../../core/catalogue/call-shape.ts'
import { mergeEvents, type EventKey, type SeenEvent } from '../../core/catalogue/event-fold.ts'
import { eventsSchema, type DocumentObject } from '../../core/catalogue/json-schema.ts'
import { callFilter } from '../../core/call/filter.ts'
import type { Destination, Source } from '../../core/settings/settings.ts'
import type { FactsOptions } from '../why/facts.ts'

/** An event of a source, without its fields. */
export interface EventSummary extends EventKey {
  calls: number
  /** When brokers got the first and the last one, epoch ms. */
  firstSeen: number
  lastSeen: number
  /** How many are kept. */
  fields: number
}

/** What is known of all events. */
export interface CatalogueReach {
  /** Every call that brokers got since was counted, epoch ms; null: there was none. */
  knownSince: number | null
}

export interface SourceEvents extends CatalogueReach {
  events: EventSummary[]
  /** Calls that are of no event here: beyond the bound, or of no form that can be delivered. */
  omittedCalls: number
}

export type WholeEvent = EventKey & { event: SeenEvent }

/** Which events come in, kept by the index of messages, which reads the calls anyway. Both reject as `MessagePorts.facts`. */
export interface EventCatalogue {
  /** Sorted by type and name. */
  eventsOf(sourceId: string, options?: FactsOptions): Promise<SourceEvents>
  wholeEventsOf(
    sourceIds: readonly string[],
    isWanted: (key: EventKey) => boolean,
    options?: FactsOptions,
  ): Promise<CatalogueReach & { events: WholeEvent[] }>
}

export async function jsonSchemaOf(
  { id, name }: Source,
  catalogue: EventCatalogue,
  options: FactsOptions,
): Promise<DocumentObject> {
  const { events, knownSince } = await catalogue.wholeEventsOf([id], () => true, options)
  return eventsSchema(name, events, isoOrNull(knownSince))
}

/** Of the webhooks that a destination gets, with its types, events and dropped paths. */
export async function asyncApiOf(
  { id, name, urls, sharedSecret, sourceIds, options: chosen }: Destination,
  catalogue: EventCatalogue,
  options: FactsOptions,
): Promise<DocumentObject> {
  const names = callFilter(chosen).filter?.names ?? null
  // A `delete` has a message of its own.
  const isSent = ({ type, name }: EventKey) => type !== 'delete' && (names === null || names(type, name))
  const { events, knownSince } = await catalogue.wholeEventsOf([...new Set(sourceIds)], isSent, options)
  const described = { id, name, urls, isSigned: sharedSecret !== null, options: chosen }
  return asyncApiDocument(described, mergedEvents(events), isoOrNull(knownSince))
}

/** Sources may have events of one name. */
function mergedEvents(events: readonly WholeEvent[]): WholeEvent[] {
  const byKey = new Map<string, WholeEvent>()
  for (const each of events) {
    const key = JSON.stringify([each.type, each.name])
    const known = byKey.get(key)
    if (known) mergeEvents(known.event, each.event)
    else byKey.set(key, each)
  }
  return [...byKey.values()]
}

/** `properties.items[].price`, and `*` for keys that are data; a key that could be taken for something else in quotes. */
export function pathText(path: string): string {
  const [first, ...rest] = JSON.parse(path) as PathStep[]
  return rest.reduce<string>(
    (text, step) => (step === 0 ? `${text}[]` : `${text}.${step === null ? '*' : keyText(step)}`),
    String(first),
  )
}

const keyText = (key: string): string => (/^[^\s".*[\]]+$/.test(key) ? key : JSON.stringify(key))

export interface FieldView {
  path: string
  /** Calls that had it. */
  calls: number
  kinds: { kind: FieldKind; calls: number }[]
}

/** By path. */
export const fieldViews = ({ fields }: SeenEvent): FieldView[] =>
  Array.from(fields, ([path, { calls, kinds }]) => ({
    path: pathText(path),
    calls,
    kinds: (Object.entries(kinds) as [FieldKind, number][])
      .map(([kind, calls]) => ({ kind, calls }))
      .sort((a, b) => b.calls - a.calls || (a.kind < b.kind ? -1 : 1)),
  })).sort((a, b) => (a.path < b.path ? -1 : 1))
