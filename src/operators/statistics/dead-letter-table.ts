// Deliveries that are dead letters now, in the statistics' file: one that a replay got delivered is none any more.
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { DeadDelivery } from '../../core/statistics/rollup-fold.ts'
import type { OpenDeadLetters } from './series.ts'

/** Rows that are kept: the newest. */
const maxRows = 1_000_000
/** Rows that one transaction removes. */
const maxRemoved = 20_000

export const deadLetterTables = `
  CREATE TABLE dead_letters (delivery TEXT PRIMARY KEY, destination TEXT, reason TEXT, at INTEGER, deletes INTEGER)
    WITHOUT ROWID;
  CREATE INDEX dead_letters_by_time ON dead_letters (at);
  CREATE INDEX dead_deletes ON dead_letters (deletes) WHERE deletes = 1;`

export class DeadLetterTable {
  readonly #db: DatabaseSync
  readonly #put: StatementSync
  readonly #remove: StatementSync
  readonly #find: StatementSync

  constructor(db: DatabaseSync) {
    this.#db = db
    this.#put = db.prepare('INSERT OR REPLACE INTO dead_letters VALUES (?, ?, ?, ?, ?)')
    this.#remove = db.prepare('DELETE FROM dead_letters WHERE delivery = ?')
    this.#find = db.prepare('SELECT 1 FROM dead_letters WHERE delivery = ?')
  }

  /** Within a transaction. Null: it is none any more. */
  put(deliveries: ReadonlyMap<string, DeadDelivery | null>): void {
    for (const [delivery, dead] of deliveries) {
      if (dead === null) this.#remove.run(delivery)
      else this.#put.run(delivery, dead.destinationId, dead.reason, dead.at, dead.isDelete ? 1 : 0)
    }
  }

  open(where: { since: number } | { onlyDeletes: true }): OpenDeadLetters[] {
    const rows = this.#db
      .prepare(
        `SELECT destination, reason, COUNT(*) AS count, MAX(at) AS last FROM dead_letters
          WHERE ${'since' in where ? 'at >= ?' : 'deletes = 1 AND at >= ?'} GROUP BY destination, reason`,
      )
      .all('since' in where ? where.since : 0)
    return rows.map(({ destination, reason, count, last }) => ({
      destinationId: String(destination),
      reason: String(reason),
      count: Number(count),
      lastAt: Number(last),
    }))
  }

  has(deliveryId: string): boolean {
    return this.#find.get(deliveryId) !== undefined
  }

  /** Where the oldest had to be removed, since when all are in it, epoch ms; null where none had to be. */
  wholeSince(): number | null {
    const { count, first } = this.#db
      .prepare('SELECT COUNT(*) AS count, MIN(at) AS first FROM dead_letters')
      .get()!
    return Number(count) < maxRows ? null : Number(first)
  }

  /** Within a transaction: what is older, a part of it, and of more than are kept the oldest. */
  prune(before: number): void {
    const remove = (rows: string, value: number) =>
      this.#db.prepare(`DELETE FROM dead_letters WHERE delivery IN (${rows})`).run(value)
    const old = 'SELECT delivery FROM dead_letters'
    remove(`${old} WHERE at < ? ORDER BY at LIMIT ${maxRemoved}`, before)
    const rows = Number(this.#db.prepare('SELECT COUNT(*) AS count FROM dead_letters').get()!.count)
    const excess = Math.min(maxRemoved, rows - maxRows)
    if (excess > 0) remove(`${old} ORDER BY at LIMIT ?`, excess)
  }
}
