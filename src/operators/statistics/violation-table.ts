// Violations of tracking plans by minute, in the statistics' file.
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import type { ViolationCount } from '../../core/ledger/delivery-event.ts'
import { spanMs } from '../../core/statistics/rollup.ts'
import type { ListedViolation, ViolationFilter } from './series.ts'

/** As many calls are named for violations that are alike: the newest. */
const maxSamples = 10
/** Rows that are kept: the newest. */
const maxViolationRows = 500_000
/** Rows that one transaction removes. */
const maxRemoved = 20_000

export const violationTables = `
  CREATE TABLE violations (source TEXT, at INTEGER, plan TEXT, mode TEXT, event TEXT, path TEXT, rule TEXT,
    count INTEGER, last INTEGER, samples TEXT, PRIMARY KEY (source, at, plan, mode, event, path, rule)) WITHOUT ROWID;
  CREATE INDEX violations_by_time ON violations (at);`

const alike = 'source, plan, mode, event, path, rule'

export class ViolationTable {
  readonly #db: DatabaseSync
  readonly #get: StatementSync
  readonly #put: StatementSync
  readonly #newest: StatementSync

  constructor(db: DatabaseSync) {
    this.#db = db
    const where = 'source = ? AND plan = ? AND mode = ? AND event = ? AND path = ? AND rule = ?'
    this.#get = db.prepare(`SELECT count, last, samples FROM violations WHERE ${where} AND at = ?`)
    this.#put = db.prepare('INSERT OR REPLACE INTO violations VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)')
    this.#newest = db.prepare(
      `SELECT samples FROM violations WHERE ${where} AND at >= ? AND at < ? ORDER BY at DESC LIMIT ${maxSamples}`,
    )
  }

  /** Within a transaction. */
  put(violations: readonly ViolationCount[]): void {
    for (const { sourceId, planId, mode, event, path, rule, count, lastAt, messageIds } of violations) {
      const at = Math.floor(lastAt / spanMs.minute) * spanMs.minute
      const before = this.#get.get(sourceId, planId, mode, event, path, rule, at)
      const samples = newest([messageIds, before ? samplesOf(before) : []])
      this.#put.run(
        ...[sourceId, at, planId, mode, event, path, rule],
        count + Number(before?.count ?? 0),
        Math.max(lastAt, Number(before?.last ?? 0)),
        JSON.stringify(samples),
      )
    }
  }

  /** The most frequent first. */
  list({ sourceId, planId, since, until }: ViolationFilter, limit: number, skip: number): ListedViolation[] {
    const [from, to] = [since ?? 0, until ?? Number.MAX_SAFE_INTEGER]
    const where = ['at >= ?', 'at < ?']
    const values: SQLInputValue[] = [from, to]
    for (const [column, value] of [
      ['source', sourceId],
      ['plan', planId],
    ] as const) {
      if (value === null) continue
      where.push(`${column} = ?`)
      values.push(value)
    }
    const rows = this.#db
      .prepare(
        `SELECT ${alike}, SUM(count) AS count, MAX(last) AS last FROM violations
          WHERE ${where.join(' AND ')} GROUP BY ${alike} ORDER BY SUM(count) DESC, ${alike} LIMIT ? OFFSET ?`,
      )
      .all(...values, limit, skip)
    return rows.map(({ source, plan, mode, event, path, rule, count, last }) => {
      const samples = this.#newest.all(source!, plan!, mode!, event!, path!, rule!, from, to).map(samplesOf)
      return {
        sourceId: String(source),
        planId: String(plan),
        mode: String(mode) as ListedViolation['mode'],
        ...{ event: String(event), path: String(path), rule: String(rule) },
        count: Number(count),
        lastAt: Number(last),
        messageIds: newest(samples),
      }
    })
  }

  /** Within a transaction: what is older, a part of it, and of more than are kept the oldest. */
  prune(before: number): void {
    const old = 'SELECT source, at, plan, mode, event, path, rule FROM violations'
    const remove = (rows: string, value: number) =>
      this.#db
        .prepare(`DELETE FROM violations WHERE (source, at, plan, mode, event, path, rule) IN (${rows})`)
        .run(value)
    remove(`${old} WHERE at < ? ORDER BY at LIMIT ${maxRemoved}`, before)
    const rows = Number(this.#db.prepare('SELECT COUNT(*) AS count FROM violations').get()!.count)
    const excess = Math.min(maxRemoved, rows - maxViolationRows)
    if (excess > 0) remove(`${old} ORDER BY at LIMIT ?`, excess)
  }
}

const samplesOf = ({ samples }: Record<string, unknown>): string[] => JSON.parse(String(samples)) as string[]

/** Of lists of which the newest comes first. */
const newest = (lists: readonly (readonly string[])[]): string[] =>
  [...new Set(lists.flat())].slice(0, maxSamples)
