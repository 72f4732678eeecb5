// The tables of the statistics. A row of `rollups` holds all counts of one destination or source in one minute or hour,
// as JSON: a page of them is a short walk through the tree.
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import { inTransaction, openView } from '../../adapters/store/view-file.ts'
import type { ViolationCount } from '../../core/ledger/delivery-event.ts'
import type { Heartbeat } from '../../core/ledger/heartbeat.ts'
import type {
  PendingChain,
  RollupDelta,
  RollupState,
  SeenProcess,
} from '../../core/statistics/rollup-fold.ts'
import {
  addRollup,
  keptMs,
  spanMs,
  subjectKey,
  subjectOf,
  type RollupCounts,
  type RollupSpan,
  type RollupSubject,
} from '../../core/statistics/rollup.ts'
import { PostriderError } from '../../errors.ts'
import {
  anyFailure,
  type AttemptFilter,
  type AttemptPage,
  type AttemptPlace,
  type ListedAttempt,
  type ListedViolation,
  type OpenDeadLetters,
  type RollupPeriod,
  type StatisticsReach,
  type StatisticsStore,
  type ViolationFilter,
} from './series.ts'
import { DeadLetterTable, deadLetterTables } from './dead-letter-table.ts'
import { ViolationTable, violationTables } from './violation-table.ts'

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
      if (name === null || name === anyFailure) continue
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
    if (outcome !== null && !this.#hasOutcome(row, outcome)) return false
    if (status !== null && row.status !== status) return false
    return messageIds === null || messageIds.has(String(row.message))
  }

  #hasOutcome(row: Row, wanted: string): boolean {
    const outcome = this.#nameOf(Number(row.outcome))
    return wanted === anyFailure ? outcome !== 'success' : outcome === wanted
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

/** Up to where a partition of the ledger was folded. */
export interface FoldedUntil {
  next: number
  /** The broker's time of the newest record, epoch ms. */
  newest: number
}

/** What is folded at once: in the file it is all there or none of it. */
export interface FoldedBatch extends RollupDelta {
  attempts: readonly ListedAttempt[]
  violations: readonly ViolationCount[]
  /** By partition of the ledger. */
  until: ReadonlyMap<number, FoldedUntil>
  /** Epoch ms; null leaves it as it is. */
  asOf: number | null
  /** The broker's time of the oldest record, epoch ms; null without one. */
  oldest: number | null
}

export interface SavedFold {
  /** Changes with each batch. */
  revision: number
  state: RollupState
  positions: Map<number, FoldedUntil>
}

/** A follower that did not say that it is there for so long is gone, in ms. */
const followerMs = 5_000
/** Processes and summaries are forgotten after that. */
const rememberedMs = 86_400_000
/** Attempts and violations are kept as long as the ledger. */
const attemptsKeptMs = 9 * 86_400_000
/** As long as Kafka keeps dead letters, by default. */
const deadLettersKeptMs = 30 * 86_400_000

/**
 * Rollups, attempts and processes in a SQLite file. Several processes may share the file; one of them folds, the
 * `follower`, and a batch that does not go on from what the file holds is refused. All of it can be deleted.
 */
export class StatisticsDatabase implements StatisticsStore {
  readonly #db: DatabaseSync
  readonly #attempts: AttemptTable
  readonly #violations: ViolationTable
  readonly #dead: DeadLetterTable
  readonly #subjects = new Map<string, number>()
  readonly #get: StatementSync
  readonly #put: StatementSync
  readonly #series: StatementSync
  /** Heartbeats that were parsed, by instance. */
  readonly #seen = new Map<string, SeenProcess>()

  /** Throws `local`. @param origin names cluster, topic and groups: a file that was built from others is rebuilt */
  constructor(file: string, origin: string) {
    this.#db = openView(file, (db) => makeStatisticsTables(db, origin))
    this.#attempts = new AttemptTable(this.#db)
    this.#violations = new ViolationTable(this.#db)
    this.#dead = new DeadLetterTable(this.#db)
    this.#get = this.#db.prepare('SELECT counts FROM rollups WHERE span = ? AND subject = ? AND at = ?')
    this.#series = this.#db.prepare(
      `SELECT at, counts FROM rollups JOIN subjects ON subjects.id = subject
        WHERE span = ? AND name = ? AND at >= ? AND at < ? ORDER BY at`,
    )
    this.#put = this.#db.prepare('INSERT OR REPLACE INTO rollups VALUES (?, ?, ?, ?)')
  }

  /** Whether this process is, or becomes, the one that folds. @param now epoch ms */
  follow(name: string, now: number): boolean {
    const { changes } = this.#db
      .prepare(
        `UPDATE state SET follower = ?1, followed_at = ?2
          WHERE follower IS NULL OR follower = ?1 OR followed_at NOT BETWEEN ?2 - ${followerMs} AND ?2 + ${followerMs}`,
      )
      .run(name, now)
    return Number(changes) === 1
  }

  unfollow(name: string): void {
    this.#db.prepare('UPDATE state SET follower = NULL WHERE follower = ?').run(name)
  }

  /** What a fold goes on from. */
  saved(): SavedFold {
    let saved: SavedFold | undefined
    inTransaction(this.#db, () => {
      const chains = this.#db.prepare('SELECT key, state FROM chains').all()
      const summaries = this.#db.prepare('SELECT * FROM summaries').all()
      saved = {
        revision: this.#revision(),
        state: {
          chains: new Map(
            chains.map(({ key, state }) => [String(key), JSON.parse(String(state)) as PendingChain]),
          ),
          summaries: new Map(
            summaries.map(({ instance, sequence, seen_at }) => [
              String(instance),
              { sequence: Number(sequence), seenAt: Number(seen_at) },
            ]),
          ),
        },
        positions: this.positions(),
      }
    })
    return saved!
  }

  /** By partition of the ledger, from where on it is not folded yet. */
  positions(): SavedFold['positions'] {
    const positions = this.#db.prepare('SELECT * FROM positions').all()
    return new Map(
      positions.map(({ partition, next, newest }) => [
        Number(partition),
        { next: Number(next), newest: Number(newest) },
      ]),
    )
  }

  /**
   * Retention took what lies before the lows and was not folded: all is counted from there on. A dead letter of that time
   * is not in the file, and would be taken for one that was sent again. Returns what was taken.
   */
  passOver(
    lows: readonly { partition: number; low: number }[],
  ): { partition: number; from: number; to: number }[] {
    const positions = this.positions()
    const taken = lows.flatMap(({ partition, low }) => {
      const from = positions.get(partition)?.next ?? 0
      return from > 0 && low > from ? [{ partition, from, to: low }] : []
    })
    if (taken.length > 0)
      inTransaction(this.#db, () => {
        const move = this.#db.prepare('UPDATE positions SET next = max(next, ?) WHERE partition = ?')
        for (const { partition, to } of taken) move.run(to, partition)
        this.#db.exec('UPDATE state SET since = NULL, revision = revision + 1')
      })
    return taken
  }

  /**
   * Takes in what was folded from the state of that revision on; gives the next revision. Throws `conflict` when the
   * file is at another one: the fold has to begin again from there.
   */
  add(batch: FoldedBatch, revision: number): number {
    const { counts, chains, summaries, processes, dead, attempts, violations, until, asOf, oldest } = batch
    try {
      inTransaction(this.#db, () => {
        if (this.#revision() !== revision)
          throw new PostriderError('conflict', 'another process went on with the statistics meanwhile')
        for (const [subject, minutes] of counts) this.#addCounts(this.#subjectId(subject), minutes)
        const putChain = this.#db.prepare('INSERT OR REPLACE INTO chains VALUES (?, ?)')
        for (const [key, state] of chains) putChain.run(key, JSON.stringify(state))
        const putSummary = this.#db.prepare('INSERT OR REPLACE INTO summaries VALUES (?, ?, ?)')
        for (const [instance, { sequence, seenAt }] of summaries) putSummary.run(instance, sequence, seenAt)
        const putProcess = this.#db.prepare('INSERT OR REPLACE INTO processes VALUES (?, ?, ?)')
        for (const [instance, { seenAt, heartbeat }] of processes)
          putProcess.run(instance, seenAt, JSON.stringify(heartbeat))
        this.#attempts.put(attempts)
        this.#violations.put(violations)
        this.#dead.put(dead)
        const move = this.#db.prepare(
          `INSERT INTO positions VALUES (?1, ?2, ?3)
            ON CONFLICT DO UPDATE SET next = ?2, newest = max(newest, ?3)`,
        )
        for (const [partition, { next, newest }] of until) move.run(partition, next, newest)
        this.#db
          .prepare(
            `UPDATE state SET revision = revision + 1, as_of = coalesce(?1, as_of),
              since = min(coalesce(since, ?2), coalesce(?2, since))`,
          )
          .run(asOf, oldest)
      })
      return revision + 1
    } catch (error) {
      this.#subjects.clear()
      this.#attempts.forget()
      throw error
    }
  }

  /** Forgets everything but the last audit. */
  clear(): void {
    inTransaction(this.#db, () => this.#db.exec(forget))
  }

  /** Removes what is too old. @param now epoch ms */
  prune(now: number): void {
    const subjects = this.#db.prepare('SELECT id FROM subjects').all()
    const remove = this.#db.prepare('DELETE FROM rollups WHERE span = ? AND subject = ? AND at < ?')
    inTransaction(this.#db, () => {
      for (const { id } of subjects)
        for (const span of ['minute', 'hour'] as const) remove.run(spanCodes[span], id!, now - keptMs[span])
      for (const table of ['processes', 'summaries'])
        this.#db.prepare(`DELETE FROM ${table} WHERE seen_at < ?`).run(now - rememberedMs)
      this.#attempts.prune(now - attemptsKeptMs)
      this.#violations.prune(now - attemptsKeptMs)
      this.#dead.prune(now - deadLettersKeptMs)
    })
  }

  reach(): StatisticsReach {
    const { as_of, since } = this.#db.prepare('SELECT as_of, since FROM state').get()!
    return { asOf: as_of as number | null, since: since as number | null }
  }

  series(subject: RollupSubject, { span, from, to }: RollupPeriod): { at: number; counts: RollupCounts }[] {
    return this.#series
      .all(spanCodes[span], subjectKey(subject), from, to)
      .map(({ at, counts }) => ({ at: Number(at), counts: parsed(counts) }))
  }

  sums(kind: RollupSubject['kind'], { span, from, to }: RollupPeriod): Map<string, RollupCounts> {
    return this.#summed(kind, { span, from, to }, ({ name }) => subjectOf(String(name)).id)
  }

  totals(kind: RollupSubject['kind'], period: RollupPeriod): { at: number; counts: RollupCounts }[] {
    const sums = this.#summed(kind, period, ({ at }) => Number(at))
    return [...sums].map(([at, counts]) => ({ at, counts })).sort((a, b) => a.at - b.at)
  }

  #summed<K>(
    kind: RollupSubject['kind'],
    { span, from, to }: RollupPeriod,
    keyOf: (row: Record<string, unknown>) => K,
  ): Map<K, RollupCounts> {
    const sums = new Map<K, RollupCounts>()
    const rows = this.#db
      .prepare(
        `SELECT name, at, counts FROM subjects CROSS JOIN rollups ON span = ? AND subject = id AND at >= ? AND at < ?
          WHERE name GLOB ?`,
      )
      .iterate(spanCodes[span], from, to, `${subjectKey({ kind, id: '' })}*`)
    for (const row of rows) {
      const key = keyOf(row)
      let sum = sums.get(key)
      if (!sum) sums.set(key, (sum = {}))
      addRollup(sum, parsed(row.counts))
    }
    return sums
  }

  has(subject: RollupSubject): boolean {
    return this.#db.prepare('SELECT 1 FROM subjects WHERE name = ?').get(subjectKey(subject)) !== undefined
  }

  attempts(filter: AttemptFilter, after: AttemptPlace | null, limit: number): AttemptPage {
    return this.#attempts.page(filter, after, limit)
  }

  violations(filter: ViolationFilter, limit: number, skip: number): ListedViolation[] {
    return this.#violations.list(filter, limit, skip)
  }

  deadLetters(where: { since: number } | { onlyDeletes: true }): OpenDeadLetters[] {
    return this.#dead.open(where)
  }

  isDeadLetter(deliveryId: string): boolean {
    return this.#dead.has(deliveryId)
  }

  deadLettersSince(): number | null {
    const { since } = this.reach()
    return since && Math.max(since, this.#dead.wholeSince() ?? since)
  }

  processes(): SeenProcess[] {
    const rows = this.#db.prepare('SELECT instance, seen_at FROM processes ORDER BY instance').all()
    const find = this.#db.prepare('SELECT heartbeat FROM processes WHERE instance = ?')
    const found = rows.map(({ instance, seen_at }): [string, SeenProcess] => {
      const known = this.#seen.get(String(instance))
      if (known?.seenAt === Number(seen_at)) return [String(instance), known]
      const heartbeat = JSON.parse(String(find.get(instance!)!.heartbeat)) as Heartbeat
      return [String(instance), { heartbeat, seenAt: Number(seen_at) }]
    })
    this.#seen.clear()
    for (const [instance, seen] of found) this.#seen.set(instance, seen)
    return found.map(([, seen]) => seen)
  }

  lastAudit(): { at: number; report: string } | null {
    const found = this.#db.prepare('SELECT at, report FROM audits').get()
    return found ? { at: Number(found.at), report: String(found.report) } : null
  }

  keepAudit(at: number, report: string): void {
    inTransaction(this.#db, () => {
      this.#db.exec('DELETE FROM audits')
      this.#db.prepare('INSERT INTO audits VALUES (?, ?)').run(at, report)
    })
  }

  close(): void {
    this.#db.close()
  }

  #revision(): number {
    return Number(this.#db.prepare('SELECT revision FROM state').get()!.revision)
  }

  #addCounts(subject: number, minutes: ReadonlyMap<number, RollupCounts>): void {
    const hours = new Map<number, RollupCounts>()
    for (const [minute, counts] of minutes) {
      this.#addRow('minute', subject, minute, counts)
      const hour = Math.floor(minute / spanMs.hour) * spanMs.hour
      const sum = hours.get(hour) ?? {}
      addRollup(sum, counts)
      hours.set(hour, sum)
    }
    for (const [hour, counts] of hours) this.#addRow('hour', subject, hour, counts)
  }

  #addRow(span: RollupSpan, subject: number, at: number, counts: RollupCounts): void {
    const before = this.#get.get(spanCodes[span], subject, at)
    const sum = before ? parsed(before.counts) : {}
    addRollup(sum, counts)
    this.#put.run(spanCodes[span], subject, at, JSON.stringify(sum))
  }

  #subjectId(name: string): number {
    let id = this.#subjects.get(name)
    if (id === undefined) {
      this.#db.prepare('INSERT OR IGNORE INTO subjects (name) VALUES (?)').run(name)
      id = Number(this.#db.prepare('SELECT id FROM subjects WHERE name = ?').get(name)!.id)
      this.#subjects.set(name, id)
    }
    return id
  }
}

const parsed = (counts: unknown): RollupCounts => JSON.parse(String(counts)) as RollupCounts

/** Every change of the tables or of the JSON in them changes this number: the view is then rebuilt. */
const form = 5

export const spanCodes = { minute: 0, hour: 1 } as const

/** Everything that is folded from the topic; the last audit's report is not. */
export const forget = `DELETE FROM positions; DELETE FROM rollups; DELETE FROM chains; DELETE FROM summaries;
  DELETE FROM processes; DELETE FROM attempts; DELETE FROM violations; DELETE FROM dead_letters;
  UPDATE state SET revision = revision + 1, as_of = NULL, since = NULL, attempts = 0`

/** Leaves what was built from this origin in this form; throws away anything else. */
export function makeStatisticsTables(db: DatabaseSync, origin: string): void {
  db.exec('CREATE TABLE IF NOT EXISTS built_from (origin TEXT, form INTEGER)')
  const built = db.prepare('SELECT origin, form FROM built_from').get()
  if (built?.origin === origin && built.form === form) return
  for (const table of [
    ...['built_from', 'state', 'positions', 'subjects', 'rollups', 'chains', 'summaries', 'processes'],
    ...['names', 'attempts', 'violations', 'dead_letters', 'audits'],
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
    CREATE TABLE audits (at INTEGER, report TEXT);${violationTables}${deadLetterTables}`)
  db.prepare('INSERT INTO built_from VALUES (?, ?)').run(origin, form)
}
