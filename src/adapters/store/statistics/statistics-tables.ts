// The tables of the statistics. A row of `rollups` holds all counts of one destination or source in one minute or hour,
// as JSON: a page of them is a short walk through the tree.
import type { DatabaseSync } from 'node:sqlite'

/** Every change of the tables or of the JSON in them changes this number: the view is then rebuilt. */
const form = 2

export const spanCodes = { minute: 0, hour: 1 } as const

/** Everything that is folded from the topic; the last audit's report is not. */
export const forget = `DELETE FROM positions; DELETE FROM rollups; DELETE FROM chains; DELETE FROM summaries;
  DELETE FROM processes; DELETE FROM attempts; UPDATE state SET revision = revision + 1, as_of = NULL, since = NULL, attempts = 0`

/** Leaves what was built from this origin in this form; throws away anything else. */
export function makeStatisticsTables(db: DatabaseSync, origin: string): void {
  db.exec('CREATE TABLE IF NOT EXISTS built_from (origin TEXT, form INTEGER)')
  const built = db.prepare('SELECT origin, form FROM built_from').get()
  if (built?.origin === origin && built.form === form) return
  for (const table of [
    ...['built_from', 'state', 'positions', 'subjects', 'rollups', 'chains', 'summaries', 'processes'],
    ...['names', 'attempts', 'audits'],
  ])
    db.exec(`DROP TABLE IF EXISTS ${table}`)
  db.exec(`CREATE TABLE built_from (origin TEXT, form INTEGER);
    CREATE TABLE state (revision INTEGER, follower TEXT, followed_at INTEGER, as_of INTEGER, since INTEGER,
      attempts INTEGER);
    INSERT INTO state VALUES (0, NULL, 0, NULL, NULL, 0);
    CREATE TABLE positions (partition INTEGER PRIMARY KEY, next INTEGER NOT NULL, newest INTEGER NOT NULL);
    CREATE TABLE subjects (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE rollups (span INTEGER, subject INTEGER, at INTEGER, counts TEXT NOT NULL,
      PRIMARY KEY (span, subject, at)) WITHOUT ROWID;
    CREATE TABLE chains (key TEXT PRIMARY KEY, state TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE summaries (instance TEXT PRIMARY KEY, sequence INTEGER, seen_at INTEGER) WITHOUT ROWID;
    CREATE TABLE processes (instance TEXT PRIMARY KEY, seen_at INTEGER, heartbeat TEXT) WITHOUT ROWID;
    CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE attempts (at INTEGER, partition INTEGER, offset INTEGER, destination INTEGER, url INTEGER,
      outcome INTEGER, status INTEGER, duration REAL, attempt INTEGER, message TEXT, delivery TEXT, detail TEXT,
      PRIMARY KEY (at, partition, offset)) WITHOUT ROWID;
    CREATE INDEX attempts_of ON attempts (destination, at, partition, offset);
    CREATE TABLE audits (at INTEGER, report TEXT);`)
  db.prepare('INSERT INTO built_from VALUES (?, ?)').run(origin, form)
}
