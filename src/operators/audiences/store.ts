import { join } from 'node:path'
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { Kafka } from 'kafkajs'
import { IgnoredRecords, type IgnoredCounts } from '../../adapters/folded-log/ignored-records.ts'
import { clusterIdOf } from '../../adapters/kafka/admin/cluster-id.ts'
import { deletionsKeptMs } from '../../adapters/kafka/admin/topic-specs.ts'
import { readBetween } from '../../adapters/kafka/read/read-range.ts'
import { fetchRanges, type TopicRange } from '../../adapters/kafka/read/topic-offsets.ts'
import type { TopicRecord } from '../../adapters/kafka/read/topic-record.ts'
import type { Logger } from '../../adapters/log.ts'
import type { RecordCodec } from '../../adapters/schema-registry/record-codec.ts'
import { bucketOf, buckets } from './bucket-file.ts'
import { TopicView } from '../../adapters/store/topic-view.ts'
import { inTransaction, openView } from '../../adapters/store/view-file.ts'
import type { Membership, PlacedMembership } from '../../core/audience/membership.ts'
import { PostriderError } from '../../errors.ts'
import { whenKnown } from '../../when-known.ts'
import { FileStagedList } from './staged-list.ts'
import type { MembershipStore, StagedList as StagedListPort } from './sync.ts'

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

/** Records that are taken in at once. */
const batchSize = 5_000
/** Of each partition: a record takes several times its bytes while it is read. */
const fetchBytes = 128 * 1_024
/** A deletion that was not read within the time that the topic keeps it is never known of; with some room. */
const maxAgeMs = deletionsKeptMs - 6 * 3_600_000

export interface MembershipViewOptions {
  kafka: Kafka
  topic: string
  groupId: string
  /** STORE_PATH. */
  folder: string
  codec: Pick<RecordCodec<Membership>, 'read'>
  log: Logger
  counts?: IgnoredCounts
  /** Epoch milliseconds. */
  now?: () => number
}

/** The memberships' topic, read into its database when it is asked for. Close it. */
export class MembershipView implements MembershipStore {
  readonly #options: MembershipViewOptions
  readonly #database: MembershipDatabase
  readonly #ignored: IgnoredRecords
  readonly #view: TopicView

  private constructor(options: MembershipViewOptions, cluster: string) {
    this.#options = options
    this.#ignored = new IgnoredRecords(options.log, options.counts)
    const file = join(options.folder, `${options.topic}.sqlite`)
    this.#database = new MembershipDatabase(file, `${cluster} ${options.topic}`)
    const { kafka, topic, log } = options
    this.#view = new TopicView({
      name: 'its view',
      file,
      kafka,
      log,
      positions: () =>
        [...this.#database.positions()].map(([partition, each]) => ({ topic, partition, ...each })),
      clear: () => this.#database.clear(),
    })
  }

  /** Reads nothing yet. Throws `kafka_unavailable`, and `local` for the file. */
  static async open(options: MembershipViewOptions): Promise<MembershipView> {
    return new MembershipView(options, await clusterIdOf(options.kafka))
  }

  /** Throws `setup`, `kafka_unavailable` and `registry_unavailable`. */
  catchUp(signal?: AbortSignal): Promise<void> {
    return this.#view.inTurn(() => this.#catchUp(signal))
  }

  count(audienceId: string): number {
    return this.#database.count(audienceId)
  }

  openList(): StagedListPort {
    return new FileStagedList(this.#options.folder, (audienceId, bucket) =>
      this.#database.members(audienceId, bucket),
    )
  }

  writtenBy(audienceId: string, syncId: string): Iterable<Membership[]> {
    return this.#database.writtenBy(audienceId, syncId)
  }

  users(audienceId: string): Iterable<string[]> {
    return this.#database.users(audienceId)
  }

  /** Of this process, acknowledged: what is known need not be read back. */
  takeWritten(records: readonly PlacedMembership[]): void {
    this.#database.takeWritten(records)
  }

  close(): void {
    this.#database.close()
  }

  async #catchUp(signal?: AbortSignal): Promise<void> {
    const { kafka, topic, log, now = Date.now } = this.#options
    const found = await this.#view.ranges(
      [topic],
      (...asked) => fetchRanges(kafka, ...asked),
      signal,
      (ranges) => this.#missed(ranges, now()),
    )
    const ranges = this.#view.unread(found)
    const { beginning } = this.#database.state
    const batch = new MembershipBatch((records) => this.#database.takeRead(records, beginning))
    await readBetween(ranges, {
      kafka,
      topic,
      log,
      fetchBytes,
      signal,
      onRecord: (record) => this.#read(record, batch),
    })
    batch.flush()
    this.#database.caughtUp(new Map(ranges.map(({ partition, high }) => [partition, high])), now(), beginning)
  }

  /** Why what the view holds may lack something, if so. */
  #missed(ranges: readonly TopicRange[], now: number): string | null {
    const { caughtUpAt } = this.#database.state
    const positions = this.#database.positions()
    if (positions.size === 0 || now - caughtUpAt <= maxAgeMs) return null
    // Also where nothing of it is left.
    const isBehind = ranges.some(({ partition, high }) => (positions.get(partition)?.next ?? 0) < high)
    return isBehind ? 'records may have been deleted unseen' : null
  }

  #read(record: TopicRecord, batch: MembershipBatch): void | Promise<void> {
    if (record.problem !== null) return this.#ignored.add(record, record.problem)
    if (record.value === null) return batch.add(record, null)
    // What cannot be read must not fail every sync of every audience, for ever.
    const found = this.#options.codec.read(record.value, (why) => this.#ignored.add(record, why))
    const add = (membership: Membership | null) => {
      if (membership) batch.add(record, membership)
    }
    return whenKnown(found, add)
  }
}

/** Records on their way into the database. */
class MembershipBatch {
  readonly #take: (records: PlacedMembership[]) => void
  #records: PlacedMembership[] = []

  constructor(take: (records: PlacedMembership[]) => void) {
    this.#take = take
  }

  add({ partition, offset, timestamp, key }: TopicRecord, membership: Membership | null): void {
    const at = key?.toString('utf8') ?? ''
    const slash = at.indexOf('/')
    if (membership === null && slash < 0) return
    const { audienceId, userId } = membership ?? {
      audienceId: at.slice(0, slash),
      userId: at.slice(slash + 1),
    }
    this.#records.push({ partition, offset, timestamp, audienceId, userId, membership })
    if (this.#records.length >= batchSize) this.flush()
  }

  flush(): void {
    const records = this.#records
    this.#records = []
    if (records.length > 0) this.#take(records)
  }
}
