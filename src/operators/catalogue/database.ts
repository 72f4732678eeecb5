import type { DatabaseSync, SQLOutputValue } from 'node:sqlite'
import type { CallType } from '../../core/call/analytics-call.ts'
import type { CallShape } from '../../core/catalogue/call-shape.ts'
import {
  addCalls,
  fieldsOfText,
  fieldsText,
  isNamedByPlace,
  maxEventsOf,
  noCalls,
  type EventKey,
  type SeenCalls,
  type SeenEvent,
} from '../../core/catalogue/event-fold.ts'
import type { EventSummary, SourceEvents, WholeEvent } from './catalogue.ts'

/** A call as the catalogue counts it. */
export interface CataloguedCall {
  sourceId: string
  /** Null of a call that is of no event. */
  event: EventKey | null
  shape: CallShape
}

/** Sources, known or not, whose events are kept. */
const maxSources = 1_000
/** What names and fields of all events take, about. */
const maxLength = 64_000_000

/** Tables beside those of the index of messages, made and removed with them. */
export const dropCatalogue =
  'DROP TABLE IF EXISTS events; DROP TABLE IF EXISTS event_sources; DROP TABLE IF EXISTS events_known'
export const createCatalogue = `
  CREATE TABLE event_sources (source TEXT PRIMARY KEY, omitted INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TABLE events (source TEXT, type TEXT, name TEXT, calls INTEGER NOT NULL, first INTEGER NOT NULL,
    last INTEGER NOT NULL, field_count INTEGER NOT NULL, fields TEXT NOT NULL, omitted INTEGER NOT NULL,
    UNIQUE (source, type, name));
  CREATE TABLE events_known (first INTEGER, missed INTEGER, length INTEGER NOT NULL);
  INSERT INTO events_known VALUES (NULL, NULL, 0)`
export const clearCatalogue =
  'DELETE FROM events; DELETE FROM event_sources; UPDATE events_known SET first = NULL, missed = NULL, length = 0'

type Row = Record<string, SQLOutputValue>

/** Which events came in, in the file of the index of messages: both are taken in together or not at all. */
export class CatalogueTables {
  readonly #db: DatabaseSync
  readonly #maxLength: number

  constructor(db: DatabaseSync, most = maxLength) {
    this.#db = db
    this.#maxLength = most
  }

  /**
   * Within the transaction that records up to where calls were taken in.
   *
   * @param calls each with the broker's time, epoch ms
   */
  take(calls: readonly (CataloguedCall & { timestamp: number })[]): void {
    if (calls.length === 0) return
    for (const [sourceId, its] of Map.groupBy(calls, (call) => call.sourceId)) this.#takeOf(sourceId, its)
    const first = calls.reduce((first, { timestamp }) => Math.min(first, timestamp), Infinity)
    this.#db.prepare('UPDATE events_known SET first = min(coalesce(first, ?1), ?1)').run(first)
  }

  /** Calls that brokers got before this time (epoch ms) were never counted, or not all of them. */
  missed(until: number): void {
    this.#db.prepare('UPDATE events_known SET missed = max(coalesce(missed, ?1), ?1)').run(until)
  }

  /** Every call that brokers got since was counted, epoch ms; null where there was none. */
  knownSince(): number | null {
    const { since } = this.#db.prepare('SELECT coalesce(missed, first) AS since FROM events_known').get()!
    return since === null ? null : Number(since)
  }

  #takeOf(sourceId: string, calls: readonly (CataloguedCall & { timestamp: number })[]): void {
    const known = this.#db.prepare('SELECT omitted FROM event_sources WHERE source = ?').get(sourceId)
    if (!known && this.#sources() >= maxSources) return
    let omitted = Number(known?.omitted ?? 0)
    const counts = new Map<CallType, number>()
    const length = this.#length()
    let grown = 0
    const byEvent = Map.groupBy(calls, ({ event }) => event && JSON.stringify([event.type, event.name]))
    for (const [key, its] of byEvent) {
      if (key === null) omitted += its.length
      else {
        const event = its[0]!.event!
        const { type } = event
        const row = this.#rowOf(sourceId, event)
        // Those of pages and screens leave half of it to what they are not to crowd out.
        const mayGrow = length < (isNamedByPlace(type) ? this.#maxLength / 2 : this.#maxLength)
        const count = counts.get(type) ?? this.#count(sourceId, type)
        if (!row && (count >= maxEventsOf(type) || !mayGrow)) omitted += its.length
        else {
          counts.set(type, row ? count : count + 1)
          grown +=
            this.#put(sourceId, event, withCalls(row ? eventOf(row) : noCalls(), its, mayGrow)) -
            lengthOf(row)
        }
      }
    }
    this.#db.prepare('INSERT OR REPLACE INTO event_sources VALUES (?, ?)').run(sourceId, omitted)
    this.#db.prepare('UPDATE events_known SET length = length + ?').run(grown)
  }

  eventsOf(sourceId: string): Omit<SourceEvents, 'knownSince'> {
    const events = this.#db
      .prepare(
        'SELECT type, name, calls, first, last, field_count FROM events WHERE source = ? ORDER BY type, name',
      )
      .all(sourceId)
      .map((row): EventSummary => {
        const { calls, first, last, field_count: fields } = row
        return {
          ...keyOf(row),
          calls: Number(calls),
          firstSeen: Number(first),
          lastSeen: Number(last),
          fields: Number(fields),
        }
      })
    const source = this.#db.prepare('SELECT omitted FROM event_sources WHERE source = ?').get(sourceId)
    return { events, omittedCalls: Number(source?.omitted ?? 0) }
  }

  wholeEventsOf(sourceId: string, isWanted: (key: EventKey) => boolean): WholeEvent[] {
    const rows = this.#db
      .prepare('SELECT * FROM events WHERE source = ? ORDER BY type, name')
      .iterate(sourceId)
    const found: WholeEvent[] = []
    for (const row of rows) if (isWanted(keyOf(row))) found.push({ ...keyOf(row), event: eventOf(row) })
    return found
  }

  #sources(): number {
    return Number(this.#db.prepare('SELECT count(*) AS count FROM event_sources').get()!.count)
  }

  #count(sourceId: string, type: CallType): number {
    return Number(
      this.#db
        .prepare('SELECT count(*) AS count FROM events WHERE source = ? AND type = ?')
        .get(sourceId, type)!.count,
    )
  }

  #length(): number {
    return Number(this.#db.prepare('SELECT length FROM events_known').get()!.length)
  }

  #rowOf(sourceId: string, { type, name }: EventKey): Row | undefined {
    return this.#db
      .prepare('SELECT * FROM events WHERE source = ? AND type = ? AND name = ?')
      .get(sourceId, type, name ?? '')
  }

  /** Gives what it takes. */
  #put(sourceId: string, { type, name }: EventKey, event: SeenEvent): number {
    const { calls, firstSeen, lastSeen, fields, omittedFields } = event
    const text = fieldsText(fields)
    this.#db
      .prepare('INSERT OR REPLACE INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)')
      .run(sourceId, type, name ?? '', calls, firstSeen, lastSeen, fields.size, text, omittedFields)
    return (name ?? '').length + text.length
  }
}

const lengthOf = (row: Row | undefined): number =>
  row ? String(row.name).length + String(row.fields).length : 0

/** Calls of one event: those of one shape count at once. */
function withCalls(
  event: SeenEvent,
  calls: readonly (CataloguedCall & { timestamp: number })[],
  mayGrow: boolean,
): SeenEvent {
  const byShape = new Map<CallShape, SeenCalls>()
  for (const { shape, timestamp } of calls) {
    const seen = byShape.get(shape)
    if (!seen) byShape.set(shape, { calls: 1, firstSeen: timestamp, lastSeen: timestamp, shape })
    else {
      seen.calls++
      seen.firstSeen = Math.min(seen.firstSeen, timestamp)
      seen.lastSeen = Math.max(seen.lastSeen, timestamp)
    }
  }
  for (const seen of byShape.values()) addCalls(event, seen, mayGrow)
  return event
}

/** An empty name is none. */
const keyOf = ({ type, name }: Row): EventKey => ({
  type: String(type) as CallType,
  name: String(name) === '' ? null : String(name),
})

const eventOf = ({ calls, first, last, fields, omitted }: Row): SeenEvent => ({
  calls: Number(calls),
  firstSeen: Number(first),
  lastSeen: Number(last),
  fields: fieldsOfText(String(fields)),
  omittedFields: Number(omitted),
})
