import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import type {
  AttemptFilter,
  AttemptPage,
  AttemptPlace,
  ListedAttempt,
} from '../../../console/statistics/statistics-store.ts'

/** Rows that a page looks through. */
const maxScanned = 10_000
/** Rows that are kept: the newest. */
export const maxAttempts = 5_000_000
/** Rows that one transaction removes. */
const maxRemoved = 20_000

const oldest = 'SELECT at, partition, offset FROM attempts'

type Row = Record<string, unknown>

/** Attempts by time, in the statistics' file. Names that come again and again are numbers there. */
export class AttemptTable {
  readonly #db: DatabaseSync
  readonly #put: StatementSync
  readonly #numbers = new Map<string, number>()
  readonly #names = new Map<number, string>()
  readonly #max: number

  constructor(db: DatabaseSync, max = maxAttempts) {
    this.#db = db
    this.#max = max
    this.#put = db.prepare('INSERT OR IGNORE INTO attempts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)')
  }

  /** Within a transaction. Of more than are kept the oldest are removed. */
  put(attempts: readonly ListedAttempt[]): void {
    let added = 0
    for (const each of attempts) {
      const { at, partition, offset, status, durationMs, attempt, messageId, deliveryId, detail } = each
      const [destination, url, outcome] = [each.destinationId, each.urlId, each.outcome].map((name) =>
        this.#numberOf(name),
      )
      const usual = `${messageId}:${each.destinationId}`
      const { changes } = this.#put.run(
        ...([
          at,
          partition,
          offset,
          destination,
          url,
          outcome,
          status,
          durationMs,
          attempt,
        ] as SQLInputValue[]),
        ...[messageId, deliveryId === usual ? null : deliveryId, detail],
      )
      added += Number(changes)
    }
    if (added === 0) return
    const excess = this.#count(added) - this.#max
    if (excess > 0) this.#remove(`${oldest} ORDER BY at, partition, offset LIMIT ?`, excess)
  }

  page(filter: AttemptFilter, after: AttemptPlace | null, limit: number): AttemptPage {
    const where: string[] = []
    const values: SQLInputValue[] = []
    const only = (condition: string, ...given: SQLInputValue[]) => {
      where.push(condition)
      values.push(...given)
    }
    for (const [column, name] of [
      ['destination', filter.destinationId],
      ['url', filter.urlId],
      ['outcome', filter.outcome],
    ] as const) {
      if (name === null) continue
      const number = this.#known(name)
      if (number === null) return { attempts: [], next: null }
      // Only the destination has an index: the others are looked through.
      if (column === 'destination') only('destination = ?', number)
    }
    if (filter.since !== null) only('at >= ?', filter.since)
    if (filter.until !== null) only('at < ?', filter.until)
    if (after) only('(at, partition, offset) < (?, ?, ?)', after.at, after.partition, after.offset)
    const rows = this.#db
      .prepare(
        `SELECT * FROM attempts ${where.length > 0 ? `WHERE ${where.join(' AND ')}` : ''}
          ORDER BY at DESC, partition DESC, offset DESC`,
      )
      .iterate(...values)
    const attempts: ListedAttempt[] = []
    let scanned = 0
    let last: AttemptPlace | null = null
    for (const row of rows as Iterable<Row>) {
      if (attempts.length === limit || scanned === maxScanned) return { attempts, next: last }
      scanned++
      last = { at: Number(row.at), partition: Number(row.partition), offset: Number(row.offset) }
      if (this.#passes(filter, row)) attempts.push(this.#attemptOf(row))
    }
    return { attempts, next: null }
  }

  /** Within a transaction: what is older, a part of it. */
  prune(before: number): void {
    this.#remove(`${oldest} WHERE at < ? ORDER BY at LIMIT ${maxRemoved}`, before)
  }

  #remove(rows: string, value: number): void {
    const { changes } = this.#db
      .prepare(`DELETE FROM attempts WHERE (at, partition, offset) IN (${rows})`)
      .run(value)
    this.#count(-Number(changes))
  }

  /** Counting the rows would read all of them. */
  #count(change: number): number {
    const row = this.#db.prepare('UPDATE state SET attempts = attempts + ? RETURNING attempts').get(change)
    return Number(row!.attempts)
  }

  #passes({ urlId, outcome, status, messageIds }: AttemptFilter, row: Row): boolean {
    if (urlId !== null && this.#nameOf(Number(row.url)) !== urlId) return false
    if (outcome !== null && this.#nameOf(Number(row.outcome)) !== outcome) return false
    if (status !== null && row.status !== status) return false
    return messageIds === null || messageIds.has(String(row.message))
  }

  #attemptOf(row: Row): ListedAttempt {
    const destinationId = this.#nameOf(Number(row.destination))
    const messageId = String(row.message)
    return {
      at: Number(row.at),
      partition: Number(row.partition),
      offset: Number(row.offset),
      destinationId,
      urlId: this.#nameOf(Number(row.url)),
      outcome: this.#nameOf(Number(row.outcome)),
      status: row.status as number | null,
      durationMs: row.duration as number | null,
      attempt: row.attempt as number | null,
      messageId,
      deliveryId: (row.delivery as string | null) ?? `${messageId}:${destinationId}`,
      detail: row.detail as string | null,
    }
  }

  #numberOf(name: string): number {
    let number = this.#known(name)
    if (number === null) {
      number = Number(this.#db.prepare('INSERT INTO names (name) VALUES (?)').run(name).lastInsertRowid)
      this.#numbers.set(name, number)
    }
    return number
  }

  /** Names are never removed. One that was inserted in a transaction that failed must not be remembered: see `forget`. */
  #known(name: string): number | null {
    let number = this.#numbers.get(name)
    if (number === undefined) {
      const row = this.#db.prepare('SELECT id FROM names WHERE name = ?').get(name)
      if (!row) return null
      this.#numbers.set(name, (number = Number(row.id)))
    }
    return number
  }

  #nameOf(number: number): string {
    let name = this.#names.get(number)
    if (name === undefined) {
      name = String(this.#db.prepare('SELECT name FROM names WHERE id = ?').get(number)!.name)
      this.#names.set(number, name)
    }
    return name
  }

  /** After a transaction that was rolled back. */
  forget(): void {
    this.#numbers.clear()
    this.#names.clear()
  }
}
