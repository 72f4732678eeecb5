import assert from 'node:assert/strict'
import { chmod, mkdir, readdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { BucketFile } from '../../../src/operators/audiences/bucket-file.ts'
import { inTransaction, openView } from '../../../src/adapters/store/view-file.ts'
import { temporaryFolder } from '../../support/deployment/rig.ts'

const modeOf = async (path: string) => ((await stat(path)).mode & 0o777).toString(8)

test('views of topics are readable only by their user, whatever their modes were before', async (t) => {
  const folder = await temporaryFolder(t)
  const store = join(folder, 'below', 'store')
  const file = join(store, 'view.sqlite')
  const open = () => {
    const db = openView(file, (made) => made.exec('CREATE TABLE IF NOT EXISTS users (id TEXT)'))
    db.exec("INSERT INTO users VALUES ('u-1')")
    return db
  }
  open().close()
  assert.deepEqual([await modeOf(join(folder, 'below')), await modeOf(store)], ['700', '700'])
  await chmod(file, 0o644)
  const db = open()
  const names = await readdir(store)
  assert.ok(names.includes('view.sqlite-wal'), names.join())
  for (const name of names) assert.equal(await modeOf(join(store, name)), '600', name)
  db.close()
})

test('a view that is not a database is created again for this user alone, and a folder of the user’s own keeps its mode', async (t) => {
  const folder = await temporaryFolder(t)
  const store = join(folder, 'shared')
  await mkdir(store)
  await chmod(store, 0o755)
  const file = join(store, 'view.sqlite')
  await writeFile(file, 'no database at all, and longer than the header of one'.repeat(9), { mode: 0o644 })
  openView(file, (made) => made.exec('CREATE TABLE IF NOT EXISTS users (id TEXT)')).close()
  assert.deepEqual([await modeOf(file), await modeOf(store)], ['600', '755'])
})

test('a list that spills to a file creates its folder for this user alone', async (t) => {
  const store = join(await temporaryFolder(t), 'store')
  const list = new BucketFile(store)
  t.after(() => list.close())
  for (let index = 0; index < 20_000; index++) list.add(0, `user-${index}`, index)
  assert.equal(await modeOf(store), '700')
})

test('what could not be written is told as it is, also where the database has rolled back by itself', async (t) => {
  const file = join(await temporaryFolder(t), 'view.sqlite')
  const db = openView(file, (made) => made.exec('CREATE TABLE IF NOT EXISTS users (id TEXT)'))
  t.after(() => db.close())
  db.exec('PRAGMA max_page_count = 20')
  const insert = db.prepare('INSERT INTO users VALUES (?)')
  const fill = () => {
    for (let row = 0; row < 100; row++) insert.run('x'.repeat(4_000))
  }
  assert.throws(() => inTransaction(db, fill), /database or disk is full/)
  inTransaction(db, () => insert.run('u-1'))
  assert.equal(db.prepare('SELECT count(*) AS rows FROM users').get()!.rows, 1)
})
