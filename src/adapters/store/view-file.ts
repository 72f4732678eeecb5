// What views of topics in SQLite files have in common: they can be lost, and are then built anew.
import { rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'

/** Opens the file; one that is no database, or a damaged one, is thrown away and made anew. */
export function openView(file: string, makeTables: (db: DatabaseSync) => void): DatabaseSync {
  try {
    return prepared(new DatabaseSync(file, { timeout: 10_000 }), makeTables)
  } catch (error) {
    // SQLITE_CORRUPT and SQLITE_NOTADB: it is a view, so away with it.
    const { errcode } = error as { errcode?: number }
    if (errcode !== 11 && errcode !== 26) throw error
    for (const suffix of ['', '-wal', '-shm']) rmSync(file + suffix, { force: true })
    return prepared(new DatabaseSync(file, { timeout: 10_000 }), makeTables)
  }
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
    db.exec('ROLLBACK')
    throw error
  }
}
