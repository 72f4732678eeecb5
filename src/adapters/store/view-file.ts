// What views of topics in SQLite files have in common: they can be lost, and are then rebuilt.
import { closeSync, fchmodSync, mkdirSync, openSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { PostriderError, messageOf } from '../../errors.ts'

/**
 * Opens the file, in a folder that is made if need be; one that is no database, or a damaged one, is deleted and
 * recreated. It holds ids of users: no other user of the machine may read it, or the folder if it was made here. Throws
 * `local`.
 */
export function openView(file: string, makeTables: (db: DatabaseSync) => void): DatabaseSync {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    return openOrRebuild(file, makeTables)
  } catch (error) {
    throw new PostriderError(
      'local',
      `cannot use the store at ${file}: ${messageOf(error)}. STORE_PATH names another folder`,
      { cause: error },
    )
  }
}

function openOrRebuild(file: string, makeTables: (db: DatabaseSync) => void): DatabaseSync {
  try {
    return prepared(openFile(file), makeTables)
  } catch (error) {
    // SQLITE_CORRUPT and SQLITE_NOTADB: it is a view, so away with it.
    const { errcode } = error as { errcode?: number }
    if (errcode !== 11 && errcode !== 26) throw error
    for (const suffix of ['', '-wal', '-shm']) rmSync(file + suffix, { force: true })
    return prepared(openFile(file), makeTables)
  }
}

/** SQLite gives the files beside it the same mode. A view in memory has none. */
function openFile(file: string): DatabaseSync {
  if (file === ':memory:') return new DatabaseSync(file)
  const descriptor = openSync(file, 'a', 0o600)
  fchmodSync(descriptor, 0o600)
  closeSync(descriptor)
  return new DatabaseSync(file, { timeout: 10_000 })
}

function prepared(db: DatabaseSync, makeTables: (db: DatabaseSync) => void): DatabaseSync {
  try {
    // A view may lose its last commits: they come again. 24 MB of pages at the most.
    db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -24000;
      PRAGMA journal_size_limit = 16000000;`)
    inTransaction(db, () => makeTables(db))
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

export function inTransaction(db: DatabaseSync, work: () => void): void {
  db.exec('BEGIN IMMEDIATE')
  try {
    work()
    db.exec('COMMIT')
  } catch (error) {
    // SQLite may have done so itself, where the disk is full for one.
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}
