// The tables of the index of messages.
//
// Keys are in no order: in one tree over all of them each batch would rewrite pages everywhere. So the rows of `traces`,
// which come one behind the other, are cut into segments, each of which has its own part of the tree of keys, small
// enough for the page cache: half a million rows take about 15 MB. A look-up of a key asks each segment.
import { hash } from 'node:crypto'
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { inTransaction, openView } from '../../adapters/store/view-file.ts'
import { addTally, confirmTally, newTallyChain, type TallyChain } from '../../core/ledger/tally-chain.ts'
import { heldAt, offsetsOf } from '../../core/ledger/tally.ts'
import { onlyCounts } from '../../core/ledger/result-codes.ts'
import type { Place, RunTrace, TallyFact, TallyTrace, Trace } from '../../core/ledger/trace.ts'
import { fromPairs, isInRuns } from '../../core/offsets/offset-runs.ts'
import { PostriderError } from '../../errors.ts'
import {
  CatalogueTables,
  clearCatalogue,
  createCatalogue,
  dropCatalogue,
  type CataloguedCall,
} from '../catalogue/database.ts'

/** Traces are removed once retention has taken this many of their records, and more than half of all. */
const fewestPruned = 50_000

/** What is kept of a key: a user's id cannot be read from it. */
const keyOf = (text: string): Buffer => hash('sha1', text, 'buffer').subarray(0, 10)
/** Apart from messageIds, unless one is made to look like it: what is found is compared with the call. */
export const userKey = (userId: string): string => `\0user\0${userId}`

/**
 * Where records about a message lie, and what they say, in a SQLite file; beside it which events came in, because only one
 * view reads the calls. It holds no content of calls but names of events and fields. Several processes may share the file,
 * and all of it can be deleted. Memory is bounded by SQLite's page cache.
 */
export class TraceDatabase {
  readonly catalogue: CatalogueTables
  readonly #db: DatabaseSync
  readonly #topics = new Map<string, number>()
  readonly #names = new Map<number, string>()
  #lastBeginning = NaN
  readonly #segmentBits: number
  readonly #put: StatementSync
  readonly #putKey: StatementSync
  readonly #find: StatementSync
  readonly #putTally: StatementSync
  readonly #markTally: StatementSync
  readonly #move: StatementSync

  /**
   * Throws `local`.
   *
   * @param origin names cluster, topics and group: a file that was built from others is rebuilt
   * @param segmentBits rows of a segment, as a power of two: of a file always the same
   */
  constructor(file: string, origin: string, segmentBits = 19) {
    this.#db = openView(file, (db) => makeTables(db, origin))
    this.catalogue = new CatalogueTables(this.#db)
    this.#segmentBits = segmentBits
    this.#put = this.#db.prepare('INSERT INTO traces VALUES (NULL, ?, ?, ?, ?)')
    this.#putKey = this.#db.prepare(putKey(segmentBits))
    this.#find = this.#db.prepare(findByKey(segmentBits))
    this.#putTally = this.#db.prepare('INSERT OR IGNORE INTO tallies VALUES (?, ?, ?, ?, ?, 0, ?, ?, ?, ?)')
    this.#markTally = this.#db.prepare(
      'UPDATE tallies SET is_counted = ? WHERE topic = ? AND partition = ? AND first = ? AND id = ?',
    )
    this.#move = this.#db.prepare(
      `INSERT INTO positions VALUES (?1, ?2, ?3, ?4, 0)
        ON CONFLICT DO UPDATE SET next = max(next, ?3), newest = max(newest, ?4)`,
    )
  }

  positions(): TracePosition[] {
    return this.#db
      .prepare('SELECT name, partition, next, newest, pruned FROM positions JOIN topics ON topics.id = topic')
      .all()
      .map(({ name, partition, next, newest, pruned }) => ({
        topic: String(name),
        partition: Number(partition),
        next: Number(next),
        newest: Number(newest),
        pruned: Number(pruned),
      }))
  }

  /** Counts how often the view was rebuilt. */
  get beginning(): number {
    const beginning = Number(this.#db.prepare('SELECT beginning FROM built_from').get()!.beginning)
    // A process of another deployment may have rebuilt the tables, and with them the topics' numbers.
    if (beginning !== this.#lastBeginning) {
      this.#topics.clear()
      this.#names.clear()
    }
    this.#lastBeginning = beginning
    return beginning
  }

  /** Epoch ms: what brokers got before is not in it; null for no such time. */
  get since(): number | null {
    const since = this.#db.prepare('SELECT since FROM built_from').get()!.since
    return since === null ? null : Number(since)
  }

  /** Of the file, without what is free in it. */
  get bytes(): number {
    const pragma = (name: string) => Number(Object.values(this.#db.prepare(`PRAGMA ${name}`).get()!)[0])
    return (pragma('page_count') - pragma('freelist_count')) * pragma('page_size')
  }

  /** Forgets everything but the topics' numbers, which other processes may have in mind. */
  clear(): void {
    inTransaction(this.#db, () =>
      this.#db.exec(`DELETE FROM keys; DELETE FROM traces; DELETE FROM tallies; DELETE FROM chains;
        DELETE FROM positions; ${clearCatalogue};
        UPDATE built_from SET beginning = beginning + 1, since = NULL`),
    )
  }

  /**
   * Takes in records of one topic as they were read: where an offset is missing there is none. What was taken in before
   * is passed over. Throws `conflict` when the view was rebuilt since it had this `beginning`: what lies before the
   * records is missing then.
   */
  take(topic: string, entries: readonly Entry[], beginning: number): void {
    const ends = new Map<number, { next: number; newest: number }>()
    for (const { place, timestamp } of entries) {
      const end = ends.get(place.partition)
      if (!end) ends.set(place.partition, { next: place.offset + 1, newest: timestamp })
      else {
        end.next = Math.max(end.next, place.offset + 1)
        end.newest = Math.max(end.newest, timestamp)
      }
    }
    inTransaction(this.#db, () => {
      this.#expect(beginning)
      const id = this.#topicId(topic)
      const taken = this.#takenOf(id)
      const isNew = ({ place }: Entry) => place.offset >= (taken.get(place.partition) ?? 0)
      const fresh = entries.filter(isNew)
      // Neighbours in the tree of keys are written together.
      const rows: { key: Buffer; row: number | bigint }[] = []
      for (const { key, more, place, trace } of fresh) {
        if (key === null) continue
        const text = trace && JSON.stringify({ ...trace, place: undefined })
        const { lastInsertRowid: row } = this.#put.run(id, place.partition, place.offset, text)
        rows.push({ key: keyOf(key), row })
        for (const another of more) rows.push({ key: keyOf(another), row })
      }
      rows.sort((a, b) => Buffer.compare(a.key, b.key))
      for (const { key, row } of rows) this.#putKey.run(key, row)
      const tallies = fresh.flatMap(({ place, tally }) => (tally ? [{ ...tally, place }] : []))
      for (const its of Map.groupBy(tallies, partitionOf).values()) this.#takeTallies(its)
      this.catalogue.take(fresh.flatMap(({ timestamp, call }) => (call ? [{ ...call, timestamp }] : [])))
      for (const [partition, { next, newest }] of ends) this.#move.run(id, partition, next, newest)
    })
  }

  /** Up to where each partition of a topic was taken in, maybe by another process meanwhile. */
  #takenOf(topicId: number): Map<number, number> {
    const rows = this.#db.prepare('SELECT partition, next FROM positions WHERE topic = ?').all(topicId)
    return new Map(rows.map(({ partition, next }) => [Number(partition), Number(next)]))
  }

  /** Of one partition. Its chain is read each time, for another process may have brought it on. */
  #takeTallies(tallies: readonly PlacedTally[]): void {
    const { topic, partition } = tallies[0]!
    const topicId = this.#topicId(topic)
    const chain = this.#chainOf(topic, partition)
    for (const { place, tally } of tallies) {
      const tallied = offsetsOf(tally)?.tallied
      if (!tallied) continue
      const { id, at, start, finished, owner, earlier, records, held } = tally
      // One without offsets covers nothing, and proves its predecessor.
      const [first, end] = [tallied[0]?.start ?? start, tallied.at(-1)?.end ?? start]
      const rest = { start, finished, owner, earlier, records, counts: tally.counts.map(onlyCounts), held }
      const text = JSON.stringify(rest)
      this.#putTally.run(topicId, partition, first, end, id, at, place.partition, place.offset, text)
      for (const { kept, counts } of addTally(chain, tally, { id, first }))
        this.#markTally.run(Number(counts), topicId, partition, kept.first, kept.id)
    }
    this.#db
      .prepare('INSERT OR REPLACE INTO chains VALUES (?, ?, ?)')
      .run(topicId, partition, JSON.stringify(chain))
  }

  #chainOf(topic: string, partition: number): TallyChain<TallyRow> {
    const found = this.#db
      .prepare('SELECT state FROM chains JOIN topics ON topics.id = topic WHERE name = ? AND partition = ?')
      .get(topic, partition)
    return found ? (JSON.parse(String(found.state)) as TallyChain<TallyRow>) : newTallyChain()
  }

  /** Says that the view holds every partition of the topic up to these offsets, be there records at them or not. */
  caughtUp(topic: string, ends: ReadonlyMap<number, number>, beginning: number): void {
    inTransaction(this.#db, () => {
      this.#expect(beginning)
      const id = this.#topicId(topic)
      for (const [partition, end] of ends) this.#move.run(id, partition, end, 0)
    })
  }

  /** Everything of a key: places of calls, and traces; a topic's in the order in which they lie. */
  find(key: string): { calls: Place[]; traces: Trace[]; runs: RunTrace[] } {
    const rows = this.#find.all(keyOf(key))
    const calls: Place[] = []
    const traces: Trace[] = []
    const runs: RunTrace[] = []
    for (const { topic, partition, offset, trace } of rows) {
      const place = {
        topic: this.#nameOf(Number(topic)),
        partition: Number(partition),
        offset: Number(offset),
      }
      if (trace === null) {
        calls.push(place)
        continue
      }
      const read = { ...(JSON.parse(String(trace)) as Trace | RunTrace), place }
      if (read.kind === 'run') runs.push(read)
      else traces.push(read)
    }
    return { calls, traces, runs }
  }

  /** Calls of a user, those that were taken in last first; `row` is where the next page begins. */
  findUser(userId: string, before: number | null, limit: number): { row: number; place: Place }[] {
    const { first, last } = this.#db.prepare('SELECT min(row) AS first, max(row) AS last FROM traces').get()!
    const found: { row: number; place: Place }[] = []
    if (last === null) return found
    const end = Math.min(before ?? Infinity, Number(last) + 1)
    const segmentOf = (row: number) => Math.floor(row / 2 ** this.#segmentBits)
    const find = this.#db.prepare(findNewest)
    for (let segment = segmentOf(end); segment >= segmentOf(Number(first)); segment--) {
      const rows = find.all(segment, keyOf(userKey(userId)), end, limit - found.length)
      for (const { row, topic, partition, offset } of rows) {
        const place = {
          topic: this.#nameOf(Number(topic)),
          partition: Number(partition),
          offset: Number(offset),
        }
        found.push({ row: Number(row), place })
      }
      if (found.length >= limit) break
    }
    return found
  }

  /**
   * The tally that covers a record and counts; null where there is none. What the metadata says is not stored: another
   * process that uses the file may have read it earlier, and a later tally may overtake it.
   *
   * @param tip the id in the committed metadata
   */
  factOf({ topic, partition, offset }: Place, tip: string | null): TallyFact | null {
    const chain = this.#chainOf(topic, partition)
    const verdicts = tip === null ? [] : confirmTally(chain, tip)
    const byTip = verdicts.filter(({ counts }) => counts).map(({ kept }) => kept.id)
    const rows = this.#db
      .prepare(
        `SELECT at, tally FROM tallies JOIN topics ON topics.id = topic
          WHERE name = ?1 AND partition = ?2 AND first <= ?3 AND end > ?3
            AND (is_counted OR tallies.id IN (SELECT value FROM json_each(?4)))
          ORDER BY first DESC, ledger_offset DESC`,
      )
      .iterate(topic, partition, offset, JSON.stringify(byTip))
    for (const { at, tally } of rows) {
      const { start, finished, owner, earlier, records, counts, held } = JSON.parse(
        String(tally),
      ) as TallyTrace
      if (!isInRuns(fromPairs(finished, start) ?? [], offset)) continue
      const before = earlier.find((each) => isInRuns(fromPairs(each.finished, start) ?? [], offset))
      const heldHere = heldAt({ start, held }, offset)
      return { at: Number(at), owner: before?.owner ?? owner, records, counts, held: heldHere }
    }
    return null
  }

  /** Removes traces whose records retention removed, once these are more than half. */
  prune(ledger: string, lows: readonly Place[]): void {
    const find = this.#db.prepare(
      `SELECT next, pruned FROM positions JOIN topics ON topics.id = topic WHERE name = ? AND partition = ?`,
    )
    let [gone, held] = [0, 0]
    for (const { topic, partition, offset } of lows) {
      const found = find.get(topic, partition)
      if (!found) continue
      gone += Math.max(0, Math.min(offset, Number(found.next)) - Number(found.pruned))
      held += Number(found.next) - Number(found.pruned)
    }
    if (gone < fewestPruned || gone * 2 < held) return
    inTransaction(this.#db, () => {
      const mark = this.#db.prepare(
        'UPDATE positions SET pruned = max(pruned, ?) WHERE topic = ? AND partition = ?',
      )
      for (const { topic, partition, offset } of lows) mark.run(offset, this.#topicId(topic), partition)
      this.#removePruned(ledger)
    })
  }

  /**
   * Lets the view begin at a time (epoch ms), at which the partitions' records begin with these: what lies before is
   * removed, and not taken in. Throws `conflict` as `take` does.
   *
   * @param calls the topic of the calls
   */
  beginAt(
    since: number,
    { calls, deliveries: ledger }: { calls: string; deliveries: string },
    starts: readonly Place[],
    beginning: number,
  ): void {
    inTransaction(this.#db, () => {
      this.#expect(beginning)
      // What was counted stays counted.
      const taken = this.#takenOf(this.#topicId(calls))
      if (
        starts.some(({ topic, partition, offset }) => topic === calls && (taken.get(partition) ?? 0) < offset)
      )
        this.catalogue.missed(since)
      this.#db.prepare('UPDATE built_from SET since = max(coalesce(since, ?1), ?1)').run(since)
      const begin = this.#db.prepare(
        `INSERT INTO positions VALUES (?1, ?2, ?3, ?4, ?3)
          ON CONFLICT DO UPDATE SET next = max(next, ?3), newest = max(newest, ?4), pruned = max(pruned, ?3)`,
      )
      for (const { topic, partition, offset } of starts)
        begin.run(this.#topicId(topic), partition, offset, since - 1)
      this.#removePruned(ledger)
    })
  }

  #removePruned(ledger: string): void {
    this.#db.exec(`DELETE FROM traces WHERE offset < (SELECT pruned FROM positions
        WHERE positions.topic = traces.topic AND positions.partition = traces.partition);
        DELETE FROM keys WHERE NOT EXISTS (SELECT 1 FROM traces WHERE traces.row = keys.row)`)
    this.#db
      .prepare(
        `DELETE FROM tallies WHERE ledger_offset < (SELECT pruned FROM positions
            WHERE positions.topic = ? AND positions.partition = tallies.ledger_partition)`,
      )
      .run(this.#topicId(ledger))
  }

  close(): void {
    this.#db.close()
  }

  #expect(beginning: number): void {
    if (this.beginning !== beginning)
      throw new PostriderError(
        'conflict',
        'another process began to rebuild the index of messages meanwhile; try again',
      )
  }

  #topicId(name: string): number {
    let id = this.#topics.get(name)
    if (id === undefined) {
      this.#db.prepare('INSERT OR IGNORE INTO topics (name) VALUES (?)').run(name)
      id = Number(this.#db.prepare('SELECT id FROM topics WHERE name = ?').get(name)!.id)
      this.#topics.set(name, id)
    }
    return id
  }

  #nameOf(id: number): string {
    let name = this.#names.get(id)
    if (name === undefined) {
      name = String(this.#db.prepare('SELECT name FROM topics WHERE id = ?').get(id)!.name)
      this.#names.set(id, name)
    }
    return name
  }
}

/** What a record says, to be found again by a messageId, or by the record that it came from. */
export interface Entry {
  place: Place
  /** The broker's time, epoch ms. */
  timestamp: number
  /** Null for a record that is about nothing. */
  key: string | null
  /** More keys of the same record: whose call it is, or where the calls of a run lie. */
  more: readonly string[]
  /** Null of a call: only where it lies is kept. */
  trace: Trace | RunTrace | null
  tally: EntryTally | null
  /** Of a call: its event and fields. */
  call: CataloguedCall | null
}

/** A tally, and the partition that it is about. */
interface EntryTally {
  topic: string
  partition: number
  tally: TallyTrace
}

/** With the place of its own record. */
type PlacedTally = EntryTally & { place: Place }

/** Which row of `tallies` it is, beside its partition. */
interface TallyRow {
  id: string
  /** The first offset that it covers. */
  first: number
}

const partitionOf = ({ topic, partition }: EntryTally): string => `${topic}/${partition}`

/** Up to where a partition was taken in. */
export interface TracePosition {
  topic: string
  partition: number
  next: number
  /** The broker's time of its newest record, epoch ms. */
  newest: number
  /** What lies before was removed, or never taken in. */
  pruned: number
}

/** Every change of the tables, or of the JSON in them, changes this number: the view is then rebuilt. */
const form = 9

/** Takes a key and its row. */
export const putKey = (segmentBits: number): string =>
  `INSERT INTO keys VALUES (?2 >> ${segmentBits}, ?1, ?2)`

/** Takes a key; gives a topic's rows in the order in which their records lie. */
export const findByKey = (segmentBits: number): string =>
  `WITH RECURSIVE segments (number) AS (
      SELECT min(row) >> ${segmentBits} FROM traces
      UNION ALL SELECT number + 1 FROM segments
        WHERE number < (SELECT max(row) >> ${segmentBits} FROM traces))
    SELECT topic, partition, offset, trace FROM segments
      CROSS JOIN keys ON keys.segment = number AND key = ?
      CROSS JOIN traces ON traces.row = keys.row
    ORDER BY topic, partition, offset`

/** Takes a segment, a key and a row that all that is given lies before; the newest first. */
export const findNewest = `SELECT keys.row AS row, topic, partition, offset FROM keys CROSS JOIN traces ON traces.row = keys.row
    WHERE segment = ? AND key = ? AND keys.row < ? ORDER BY keys.row DESC LIMIT ?`

/** Leaves what was built from this origin in this form; throws away anything else. */
export function makeTables(db: DatabaseSync, origin: string): void {
  db.exec('CREATE TABLE IF NOT EXISTS built_from (origin TEXT, form INTEGER)')
  const built = db.prepare('SELECT origin, form FROM built_from').get()
  if (built?.origin === origin && built.form === form) return
  db.exec(`DROP TABLE IF EXISTS keys; DROP TABLE IF EXISTS traces; DROP TABLE IF EXISTS tallies; DROP TABLE IF EXISTS chains;
    DROP TABLE IF EXISTS positions; DROP TABLE IF EXISTS topics; DROP TABLE built_from; ${dropCatalogue};
    CREATE TABLE built_from (origin TEXT, form INTEGER, beginning INTEGER, since INTEGER);
    CREATE TABLE topics (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE positions (topic INTEGER, partition INTEGER, next INTEGER NOT NULL, newest INTEGER NOT NULL,
      pruned INTEGER NOT NULL, PRIMARY KEY (topic, partition)) WITHOUT ROWID;
    CREATE TABLE traces (row INTEGER PRIMARY KEY, topic INTEGER, partition INTEGER, offset INTEGER, trace TEXT);
    CREATE TABLE keys (segment INTEGER, key BLOB, row INTEGER, PRIMARY KEY (segment, key, row)) WITHOUT ROWID;
    CREATE TABLE tallies (topic INTEGER, partition INTEGER, first INTEGER, end INTEGER, id TEXT, is_counted INTEGER,
      at INTEGER, ledger_partition INTEGER, ledger_offset INTEGER, tally TEXT,
      PRIMARY KEY (topic, partition, first, id)) WITHOUT ROWID;
    CREATE TABLE chains (topic INTEGER, partition INTEGER, state TEXT NOT NULL,
      PRIMARY KEY (topic, partition)) WITHOUT ROWID;
    ${createCatalogue};`)
  // Random, so that a file that was deleted and recreated is not taken for the one before.
  db.prepare('INSERT INTO built_from VALUES (?, ?, abs(random() % 1000000000), NULL)').run(origin, form)
}
