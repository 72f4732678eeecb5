// The tables of the index of messages.
//
// Keys are in no order: in one tree over all of them each batch would rewrite pages everywhere. So the rows of `traces`,
// which come one behind the other, are cut into segments, each of which has its own part of the tree of keys, small
// enough for the page cache: half a million rows take about 15 MB. A look-up of a key asks each segment.
import type { DatabaseSync } from 'node:sqlite'
import type { Place, TallyTrace, Trace } from '../../core/ledger/trace.ts'

/** What a record says, to be found again by a messageId, or by the record that it came from. */
export interface Entry {
  place: Place
  /** The broker's time, epoch ms. */
  timestamp: number
  /** Null for a record that is about nothing. */
  key: string | null
  /** Whose call it is: more keys of the same record. */
  users: readonly string[]
  /** Null of a call: only where it lies is kept. */
  trace: Trace | null
  /** Of a tally: the partition that it is about. */
  tally: { topic: string; partition: number; tally: TallyTrace } | null
}

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

/** Every change of the tables changes this number: the view is then rebuilt. */
const form = 5

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
  db.exec(`DROP TABLE IF EXISTS keys; DROP TABLE IF EXISTS traces; DROP TABLE IF EXISTS tallies; DROP TABLE IF EXISTS positions;
    DROP TABLE IF EXISTS topics; DROP TABLE built_from;
    CREATE TABLE built_from (origin TEXT, form INTEGER, beginning INTEGER, since INTEGER);
    CREATE TABLE topics (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE positions (topic INTEGER, partition INTEGER, next INTEGER NOT NULL, newest INTEGER NOT NULL,
      pruned INTEGER NOT NULL, PRIMARY KEY (topic, partition)) WITHOUT ROWID;
    CREATE TABLE traces (row INTEGER PRIMARY KEY, topic INTEGER, partition INTEGER, offset INTEGER, trace TEXT);
    CREATE TABLE keys (segment INTEGER, key BLOB, row INTEGER, PRIMARY KEY (segment, key, row)) WITHOUT ROWID;
    CREATE TABLE tallies (topic INTEGER, partition INTEGER, first INTEGER, end INTEGER, id TEXT, predecessor TEXT,
      at INTEGER, ledger_partition INTEGER, ledger_offset INTEGER, tally TEXT,
      PRIMARY KEY (topic, partition, first, id)) WITHOUT ROWID;
    CREATE INDEX tallies_after ON tallies (predecessor);`)
  // Random, so that a file that was deleted and recreated is not taken for the one before.
  db.prepare('INSERT INTO built_from VALUES (?, ?, abs(random() % 1000000000), NULL)').run(origin, form)
}
