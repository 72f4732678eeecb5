import { mkdirSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate } from 'node:timers/promises'
import type { Change, Given } from '../../console/computations/ports.ts'
import type { Membership } from '../../core/membership.ts'
import { PostriderError, messageOf } from '../../errors.ts'

/** Another form of the tables is another number: the view is then built anew. */
const form = 1
/** Rows that one statement works on: the event loop, and with it the lease's heartbeat, waits no longer. */
const sliceRows = 20_000

/** A record of the memberships' topic; `membership` is null where the record was taken away. */
export interface ViewRecord {
  partition: number
  offset: number
  audienceId: string
  userId: string
  membership: Membership | null
}

/**
 * The view of one memberships topic in a SQLite file, with the offsets that it has taken in; and, in temporary
 * tables of this connection, one list to compare with it. Several processes may share the file. All of it can be
 * deleted. Memory is bounded by SQLite's page cache.
 */
export class MembershipDatabase {
  readonly #db: DatabaseSync

  /** `origin` names cluster and topic: a file that was built from another is built anew. */
  constructor(file: string, origin: string) {
    try {
      mkdirSync(dirname(file), { recursive: true })
      this.#db = opened(file, origin)
    } catch (error) {
      throw new PostriderError(
        'local',
        `cannot use the store at ${file}: ${messageOf(error)}. STORE_PATH names another folder`,
        { cause: error },
      )
    }
  }

  /** Next offset by partition. */
  positions(): Map<number, number> {
    const rows = this.#db.prepare('SELECT partition, next FROM positions').all()
    return new Map(rows.map(({ partition, next }) => [Number(partition), Number(next)]))
  }

  /** Forgets everything. */
  clear(): void {
    this.#inTransaction(() => this.#db.exec('DELETE FROM memberships; DELETE FROM positions'))
  }

  /** Takes records in; those below a partition's position another process has taken in before. */
  apply(records: readonly ViewRecord[]): void {
    const put = this.#db.prepare(
      'INSERT OR REPLACE INTO memberships (audience, user, member, value, sync, at) VALUES (?, ?, ?, ?, ?, ?)',
    )
    const remove = this.#db.prepare('DELETE FROM memberships WHERE audience = ? AND user = ?')
    const move = this.#db.prepare('INSERT OR REPLACE INTO positions (partition, next) VALUES (?, ?)')
    this.#inTransaction(() => {
      const next = this.positions()
      for (const { partition, offset, audienceId, userId, membership } of records) {
        if (offset < (next.get(partition) ?? 0)) continue
        next.set(partition, offset + 1)
        if (membership === null) remove.run(audienceId, userId)
        else {
          const { member, value, syncId, at } = membership
          put.run(audienceId, userId, member ? 1 : 0, value, syncId, at)
        }
      }
      for (const [partition, offset] of next) move.run(partition, offset)
    })
  }

  count(audienceId: string): number {
    const row = this.#db
      .prepare('SELECT count(*) AS n FROM memberships WHERE audience = ? AND member = 1')
      .get(audienceId)
    return Number(row!.n)
  }

  beginList(): void {
    this.#endList()
    this.#db.exec('DELETE FROM temp.given; DELETE FROM temp.changes')
  }

  give({ userId, value, member, line }: Given): number | null {
    // One transaction for many users, until something else needs its own.
    if (!this.#db.isTransaction) this.#db.exec('BEGIN')
    const { changes } = this.#give.run(userId, value, member ? 1 : 0, line)
    if (Number(changes) === 1) return null
    const row = this.#db.prepare('SELECT line FROM temp.given WHERE user = ?').get(userId)
    return Number(row!.line)
  }

  async compare(audienceId: string, full: boolean): Promise<{ entered: number; left: number }> {
    this.#endList()
    await this.#bySlices('SELECT user FROM temp.given WHERE user > ? ORDER BY user LIMIT 1 OFFSET ?', [], {
      sql: `INSERT INTO temp.changes SELECT g.user, g.member, g.value
        FROM temp.given g LEFT JOIN memberships m ON m.audience = ? AND m.user = g.user
        WHERE g.user > ? AND g.user <= ?
          AND (g.member IS NOT coalesce(m.member, 0) OR (g.member = 1 AND g.value IS NOT m.value))`,
      audienceId,
    })
    if (full)
      await this.#bySlices(
        'SELECT user FROM memberships WHERE audience = ? AND user > ? ORDER BY user LIMIT 1 OFFSET ?',
        [audienceId],
        {
          sql: `INSERT INTO temp.changes SELECT m.user, 0, NULL FROM memberships m
            WHERE m.audience = ? AND m.user > ? AND m.user <= ? AND m.member = 1
              AND NOT EXISTS (SELECT 1 FROM temp.given g WHERE g.user = m.user)`,
          audienceId,
        },
      )
    const row = this.#db.prepare('SELECT count(*) AS n, total(member) AS entered FROM temp.changes').get()!
    return { entered: Number(row.entered), left: Number(row.n) - Number(row.entered) }
  }

  changesAfter(userId: string, most: number): Change[] {
    return this.#db
      .prepare('SELECT user, member, value FROM temp.changes WHERE user > ? ORDER BY user LIMIT ?')
      .all(userId, most)
      .map(({ user, member, value }) => ({
        userId: String(user),
        member: member === 1,
        value: value as string | null,
      }))
  }

  writtenBy(audienceId: string, syncId: string, userId: string, most: number): Membership[] {
    return this.#db
      .prepare(
        'SELECT user, member, value, at FROM memberships WHERE audience = ? AND user > ? AND sync = ? ORDER BY user LIMIT ?',
      )
      .all(audienceId, userId, syncId, most)
      .map(({ user, member, value, at }) => ({
        audienceId,
        userId: String(user),
        member: member === 1,
        value: value as string | null,
        syncId,
        at: Number(at),
      }))
  }

  usersAfter(audienceId: string, userId: string, most: number): string[] {
    return this.#db
      .prepare('SELECT user FROM memberships WHERE audience = ? AND user > ? ORDER BY user LIMIT ?')
      .all(audienceId, userId, most)
      .map(({ user }) => String(user))
  }

  close(): void {
    this.#db.close()
  }

  get #give() {
    return (this.#giving ??= this.#db.prepare(
      'INSERT OR IGNORE INTO temp.given (user, value, member, line) VALUES (?, ?, ?, ?)',
    ))
  }
  #giving: ReturnType<DatabaseSync['prepare']> | null = null

  async #bySlices(
    nthUser: string,
    parameters: string[],
    { sql, audienceId }: { sql: string; audienceId: string },
  ): Promise<void> {
    const find = this.#db.prepare(nthUser)
    const work = this.#db.prepare(sql)
    for (let from = ''; ;) {
      const last = find.get(...parameters, from, sliceRows - 1)?.user as string | undefined
      // Greater than any text: blobs sort behind all of them.
      work.run(audienceId, from, last ?? new Uint8Array())
      if (last === undefined) return
      from = last
      await setImmediate()
    }
  }

  #endList(): void {
    if (this.#db.isTransaction) this.#db.exec('COMMIT')
  }

  #inTransaction(work: () => void): void {
    this.#endList()
    this.#db.exec('BEGIN IMMEDIATE')
    try {
      work()
      this.#db.exec('COMMIT')
    } catch (error) {
      this.#db.exec('ROLLBACK')
      throw error
    }
  }
}

function opened(file: string, origin: string): DatabaseSync {
  try {
    return prepared(new DatabaseSync(file, { timeout: 10_000 }), origin)
  } catch (error) {
    // SQLITE_CORRUPT and SQLITE_NOTADB: it is a view, so away with it.
    const { errcode } = error as { errcode?: number }
    if (errcode !== 11 && errcode !== 26) throw error
    for (const suffix of ['', '-wal', '-shm']) rmSync(file + suffix, { force: true })
    return prepared(new DatabaseSync(file, { timeout: 10_000 }), origin)
  }
}

function prepared(db: DatabaseSync, origin: string): DatabaseSync {
  try {
    // A view may lose its last commits: they come again. 48 MB of pages at the most, temporary tables on disk.
    db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -24000; PRAGMA temp.cache_size = -24000;
      PRAGMA temp_store = FILE; PRAGMA journal_size_limit = 16000000;
      CREATE TABLE IF NOT EXISTS built_from (origin TEXT, form INTEGER);`)
    const built = db.prepare('SELECT origin, form FROM built_from').get()
    if (built?.origin !== origin || built.form !== form) {
      db.exec('DROP TABLE IF EXISTS memberships; DROP TABLE IF EXISTS positions; DELETE FROM built_from')
      db.prepare('INSERT INTO built_from VALUES (?, ?)').run(origin, form)
    }
    db.exec(`CREATE TABLE IF NOT EXISTS positions (partition INTEGER PRIMARY KEY, next INTEGER NOT NULL);
      CREATE TABLE IF NOT EXISTS memberships (audience TEXT, user TEXT, member INTEGER NOT NULL, value TEXT,
        sync TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (audience, user)) WITHOUT ROWID;
      CREATE TEMP TABLE given (user TEXT PRIMARY KEY, value TEXT, member INTEGER, line INTEGER) WITHOUT ROWID;
      CREATE TEMP TABLE changes (user TEXT PRIMARY KEY, member INTEGER, value TEXT) WITHOUT ROWID;`)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}
