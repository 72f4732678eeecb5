import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { Membership, PlacedMembership } from '../../core/audience/membership.ts'
import { PostriderError } from '../../errors.ts'
import { bucketOf, buckets } from './bucket-file.ts'
import { inTransaction, openView } from './view-file.ts'

/** Every change of the tables changes this number: the view is then rebuilt. */
const form = 2

/** Up to where a partition was taken in. */
export interface Position {
  next: number
  /** The broker's time of its newest record, epoch milliseconds. */
  newest: number
}

/**
 * The view of one memberships topic in a SQLite file, with the offsets that it has taken in. Several processes may
 * share the file. All of it can be deleted. Memory is bounded by SQLite's page cache.
 */
export class MembershipDatabase {
  readonly #db: DatabaseSync
  readonly #put: StatementSync
  readonly #remove: StatementSync
  readonly #move: StatementSync
  readonly #members: StatementSync

  /** `origin` names cluster and topic: a file that was built from another is rebuilt. */
  constructor(file: string, origin: string) {
    this.#db = openView(file, (db) => makeTables(db, origin))
    this.#put = this.#db.prepare('INSERT OR REPLACE INTO memberships VALUES (?, ?, ?, ?, ?, ?, ?)')
    this.#remove = this.#db.prepare('DELETE FROM memberships WHERE audience = ? AND bucket = ? AND user = ?')
    this.#move = this.#db.prepare('INSERT OR REPLACE INTO positions VALUES (?, ?, ?)')
    this.#members = this.#db.prepare(
      `SELECT json_group_array(user || ifnull(char(9) || value, '')) AS entries FROM memberships
        WHERE audience = ? AND bucket = ? AND member = 1`,
    )
  }

  positions(): Map<number, Position> {
    const rows = this.#db.prepare('SELECT partition, next, newest FROM positions').all()
    return new Map(
      rows.map(({ partition, next, newest }) => [
        Number(partition),
        { next: Number(next), newest: Number(newest) },
      ]),
    )
  }

  /** `caughtUpAt`: when the view last held all that the topic held, epoch milliseconds; 0: never. */
  get state(): { beginning: number; caughtUpAt: number } {
    const { beginning, caught_up_at: at } = this.#db
      .prepare('SELECT beginning, caught_up_at FROM built_from')
      .get()!
    return { beginning: Number(beginning), caughtUpAt: Number(at) }
  }

  /** Says that the view holds every partition up to these offsets, be there records at them or not. */
  caughtUp(ends: ReadonlyMap<number, number>, at: number, beginning: number): void {
    this.#inTransaction(() => {
      this.#expect(beginning)
      const positions = this.positions()
      for (const [partition, end] of ends) {
        const { next, newest } = positions.get(partition) ?? { next: 0, newest: 0 }
        if (next < end) this.#move.run(partition, end, newest)
      }
      this.#db.prepare('UPDATE built_from SET caught_up_at = ?').run(at)
    })
  }

  /** Forgets everything. */
  clear(): void {
    this.#inTransaction(() =>
      this.#db.exec(`DELETE FROM memberships; DELETE FROM positions;
        UPDATE built_from SET caught_up_at = 0, beginning = beginning + 1`),
    )
  }

  /**
   * Takes in records as they were read: where an offset is missing there is none. Throws `conflict` when the view
   * has been rebuilt since it had this `beginning`: what lies before the records is missing then.
   */
  takeRead(records: readonly PlacedMembership[], beginning: number): void {
    this.#inTransaction(() => {
      this.#expect(beginning)
      this.#take(records, true)
    })
  }

  /** Takes in records that this process wrote. Where others lie before them they are left to be read. */
  takeWritten(records: readonly PlacedMembership[]): void {
    this.#inTransaction(() => this.#take(records, false))
  }

  /** Those below a partition's position another process has taken in before. */
  #take(records: readonly PlacedMembership[], overGaps: boolean): void {
    const positions = this.positions()
    for (const { partition, offset, timestamp, audienceId, userId, membership } of records) {
      let position = positions.get(partition)
      if (position === undefined) positions.set(partition, (position = { next: 0, newest: 0 }))
      if (offset < position.next || (offset > position.next && !overGaps)) continue
      position.next = offset + 1
      position.newest = Math.max(position.newest, timestamp)
      const bucket = bucketOf(userId)
      if (membership === null) this.#remove.run(audienceId, bucket, userId)
      else {
        const { member, value, syncId, at } = membership
        this.#put.run(audienceId, bucket, userId, member ? 1 : 0, value, syncId, at)
      }
    }
    for (const [partition, { next, newest }] of positions) this.#move.run(partition, next, newest)
  }

  #expect(beginning: number): void {
    if (this.state.beginning !== beginning)
      throw new PostriderError(
        'conflict',
        'another process began to rebuild the view of memberships meanwhile; nothing was changed: try again',
      )
  }

  count(audienceId: string): number {
    const row = this.#db
      .prepare('SELECT count(*) AS n FROM memberships WHERE audience = ? AND member = 1')
      .get(audienceId)
    return Number(row!.n)
  }

  /** The members, as entries of a staged list. */
  members(audienceId: string, bucket: number): string[] {
    return JSON.parse(String(this.#members.get(audienceId, bucket)!.entries)) as string[]
  }

  *writtenBy(audienceId: string, syncId: string): Generator<Membership[], void, undefined> {
    const find = this.#db.prepare(
      'SELECT user, member, value, at FROM memberships WHERE audience = ? AND bucket = ? AND sync = ?',
    )
    for (let bucket = 0; bucket < buckets; bucket++)
      yield find.all(audienceId, bucket, syncId).map(({ user, member, value, at }) => ({
        audienceId,
        userId: String(user),
        member: member === 1,
        value: value as string | null,
        syncId,
        at: Number(at),
      }))
  }

  *users(audienceId: string): Generator<string[], void, undefined> {
    const find = this.#db.prepare('SELECT user FROM memberships WHERE audience = ? AND bucket = ?')
    for (let bucket = 0; bucket < buckets; bucket++)
      yield find.all(audienceId, bucket).map(({ user }) => String(user))
  }

  close(): void {
    this.#db.close()
  }

  #inTransaction(work: () => void): void {
    inTransaction(this.#db, work)
  }
}

function makeTables(db: DatabaseSync, origin: string): void {
  db.exec(
    'CREATE TABLE IF NOT EXISTS built_from (origin TEXT, form INTEGER, beginning INTEGER, caught_up_at INTEGER)',
  )
  const built = db.prepare('SELECT origin, form FROM built_from').get()
  if (built?.origin === origin && built.form === form) return
  db.exec(`DROP TABLE IF EXISTS memberships; DROP TABLE IF EXISTS positions; DROP TABLE built_from;
    CREATE TABLE built_from (origin TEXT, form INTEGER, beginning INTEGER, caught_up_at INTEGER);
    CREATE TABLE positions (partition INTEGER PRIMARY KEY, next INTEGER NOT NULL, newest INTEGER NOT NULL);
    CREATE TABLE memberships (audience TEXT, bucket INTEGER, user TEXT, member INTEGER NOT NULL, value TEXT,
      sync TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (audience, bucket, user)) WITHOUT ROWID;`)
  db.prepare('INSERT INTO built_from VALUES (?, ?, 0, 0)').run(origin, form)
}
