import { hash } from 'node:crypto'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate } from 'node:timers/promises'
import { BucketFile, bucketOf, buckets } from './bucket-file.ts'
import { sameJson } from '../../core/json/parse-json.ts'
import { PostriderError } from '../../errors.ts'
import type { KeySet } from '../audit/audit.ts'
import { place } from './read-list.ts'
import type { Change, MemberBatch, StagedList as Port } from './sync.ts'

// An entry is a user; for a computed trait with a tab and the value; for a user to be removed, with a tab and `out`.
// Neither ids nor JSON text hold a tab or a line feed.
const out = '-'

/** How long others, the lease's heartbeat among them, wait for their turn. */
const maxMsAtOnce = 10
/** How many changes are given at once. */
const batchSize = 1_000

/**
 * A list of users on disk, spread over buckets as the view is: list and view are compared bucket by bucket, in
 * memory. That takes no index over the list, whatever order it comes in.
 */
export class FileStagedList implements Port {
  count = 0
  readonly #given: BucketFile
  readonly #changed: BucketFile
  readonly #members: (audienceId: string, bucket: number) => string[]
  /** Where the users of each batch begin among all. */
  readonly #batches: { from: number; list: string | null; line: number }[] = []

  /** `members` gives the entries of the current members, by bucket. */
  constructor(folder: string, members: (audienceId: string, bucket: number) => string[]) {
    this.#given = new BucketFile(folder)
    this.#changed = new BucketFile(folder)
    this.#members = members
  }

  add({ users, values, member, list, line }: MemberBatch): void {
    this.#begin(list, line)
    for (let index = 0; index < users.length; index++) {
      const user = users[index]!
      const value = values && values[index]!
      const state = values ? `\t${value ?? out}` : member ? '' : `\t${out}`
      this.#given.add(bucketOf(user), user + state, this.count++)
    }
  }

  async compare(audienceId: string, full: boolean): Promise<{ entered: number; left: number }> {
    const counts = { entered: 0, left: 0 }
    let yieldedAt = performance.now()
    for (let bucket = 0; bucket < buckets; bucket++) {
      const entries = this.#given.read(bucket)
      if (entries.length === 0 && !full) continue
      const given = this.#byUser(bucket, entries)
      const change = (entry: string, to: keyof typeof counts) => {
        counts[to]++
        this.#changed.add(bucket, entry, 0)
      }
      for (const held of this.#members(audienceId, bucket)) {
        const user = userOf(held)
        const entry = given.get(user)
        given.delete(user)
        if (entry === undefined ? full : isOut(entry)) change(`${user}\t${out}`, 'left')
        else if (entry !== undefined && !sameEntry(entry, held)) change(entry, 'entered')
      }
      for (const entry of given.values()) if (!isOut(entry)) change(entry, 'entered')
      if (performance.now() - yieldedAt < maxMsAtOnce) continue
      await setImmediate()
      yieldedAt = performance.now()
    }
    return counts
  }

  *changes(): Generator<Change[], void, undefined> {
    let batch: Change[] = []
    for (let bucket = 0; bucket < buckets; bucket++)
      for (const entry of this.#changed.read(bucket)) {
        batch.push(changeOf(entry))
        if (batch.length < batchSize) continue
        yield batch
        batch = []
      }
    if (batch.length > 0) yield batch
  }

  close(): void {
    this.#given.close()
    this.#changed.close()
  }

  /** A batch that goes on where the one before ended begins nothing. */
  #begin(list: string | null, line: number): void {
    const last = this.#batches.at(-1)
    const goesOn = last && last.list === list && line !== 0 && last.line + this.count - last.from === line
    if (!goesOn) this.#batches.push({ from: this.count, list, line })
  }

  #byUser(bucket: number, entries: readonly string[]): Map<string, string> {
    const given = new Map<string, string>()
    for (const entry of entries) given.set(userOf(entry), entry)
    if (given.size < entries.length) throw this.#twice(bucket, entries)
    return given
  }

  #twice(bucket: number, entries: readonly string[]): PostriderError {
    const numbers = this.#given.numbers(bucket)
    const seen = new Map<string, number>()
    const second = entries.findIndex((entry, index) => {
      const known = seen.has(userOf(entry))
      if (!known) seen.set(userOf(entry), index)
      return known
    })
    const user = userOf(entries[second]!)
    const [earlier, later] = [seen.get(user)!, second].map((index) => this.#placeOf(numbers[index]!))
    return new PostriderError(
      'usage',
      `${later} names the user of ${earlier} again, ${JSON.stringify(user)}; nothing was changed`,
    )
  }

  #placeOf(number: number): string {
    const { from, list, line } = this.#batches.findLast((batch) => batch.from <= number)!
    return place(list, line === 0 ? 0 : line + number - from)
  }
}

function userOf(entry: string): string {
  const tab = entry.indexOf('\t')
  return tab < 0 ? entry : entry.slice(0, tab)
}

const isOut = (entry: string): boolean => entry.endsWith(`\t${out}`)

/** Of one user, in any spelling of the value. */
function sameEntry(one: string, other: string): boolean {
  if (one === other) return true
  const at = one.indexOf('\t')
  return at >= 0 && at === other.indexOf('\t') && sameJson(one.slice(at + 1), other.slice(at + 1))
}

function changeOf(entry: string): Change {
  const userId = userOf(entry)
  const state = userId.length === entry.length ? null : entry.slice(userId.length + 1)
  return { userId, member: state !== out, value: state === out ? null : state }
}

/** Keys that one transaction takes in. */
const batchKeys = 50_000

/** Keys by their hash, in a file that SQLite makes for itself and deletes; memory is its page cache. */
export class SqliteKeySet implements KeySet {
  // An empty name is a temporary database on disk.
  readonly #db = new DatabaseSync('')
  readonly #insert
  #inBatch = 0

  constructor() {
    this.#db.exec(
      // 64 MB of pages: with SQLite's own 2 MB four million keys take a fifth more time.
      'PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -65536; CREATE TABLE keys (key BLOB PRIMARY KEY) WITHOUT ROWID',
    )
    this.#insert = this.#db.prepare('INSERT OR IGNORE INTO keys (key) VALUES (?)')
  }

  add(key: string): boolean {
    if (this.#inBatch === 0) this.#db.exec('BEGIN')
    const { changes } = this.#insert.run(hash('sha1', key, 'buffer'))
    if (++this.#inBatch === batchKeys) {
      this.#db.exec('COMMIT')
      this.#inBatch = 0
    }
    return Number(changes) === 1
  }

  close(): void {
    this.#db.close()
  }
}
