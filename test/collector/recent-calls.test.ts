import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CallBatch } from '../../src/collector/call-batch-sink.ts'
import { RecentCalls } from '../../src/collector/recent-calls.ts'
import { RecentIds } from '../../src/core/call/recent-ids.ts'

const batchOf = (): CallBatch & { settle: (written: boolean) => void } => {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  return { written: promise, settle: resolve }
}
const settled = () => new Promise((resolve) => setImmediate(resolve))

function underTest(ids = new RecentIds(10_000, 1)) {
  const recent = new RecentCalls(ids)
  const of = (source: string, id: string): [number, string, number] => {
    const scope = recent.scopeOf(source)
    return [scope, id, recent.hashOf(scope, id)]
  }
  return {
    recent,
    seen: (source: string, id: string) => recent.seen(...of(source, id)),
    begin: (source: string, id: string, batch: CallBatch) => recent.begin(...of(source, id), batch),
  }
}

test('a call in flight refers to its batch, is remembered once that is written, and is forgotten if that fails', async () => {
  const { seen, begin } = underTest()
  const [written, failed] = [batchOf(), batchOf()]
  begin('shop', 'a', written)
  begin('shop', 'b', failed)
  begin('shop', 'c', written)
  assert.deepEqual([seen('shop', 'a'), seen('shop', 'b'), seen('shop', 'c')], [written, failed, written])
  failed.settle(false)
  await settled()
  assert.deepEqual([seen('shop', 'a'), seen('shop', 'b'), seen('shop', 'c')], [written, null, written])
  written.settle(true)
  await settled()
  assert.deepEqual([seen('shop', 'a'), seen('shop', 'b'), seen('shop', 'c')], ['written', null, 'written'])
  // It may come again, and be written then.
  const again = batchOf()
  begin('shop', 'b', again)
  again.settle(true)
  await settled()
  assert.equal(seen('shop', 'b'), 'written')
})

test('calls of different sources are independent', async () => {
  const { recent, seen, begin } = underTest()
  const batch = batchOf()
  begin('shop', 'a', batch)
  assert.equal(seen('blog', 'a'), null)
  batch.settle(true)
  await settled()
  assert.deepEqual([seen('shop', 'a'), seen('blog', 'a')], ['written', null])
  recent.remember('blog', 'b')
  assert.deepEqual([seen('shop', 'b'), seen('blog', 'b')], [null, 'written'])
})

/** Ids whose hashes are all one, as chance could have it. */
class OneHash extends RecentIds {
  override hashOf(): number {
    return 7
  }
}

test('ids in flight are kept apart even if their hashes are equal, in whatever order their batches end', async () => {
  for (const order of [
    [0, 1, 2],
    [0, 2, 1],
    [1, 0, 2],
    [1, 2, 0],
    [2, 0, 1],
    [2, 1, 0],
  ]) {
    const { seen, begin } = underTest(new OneHash(10_000, 1))
    const batches = [batchOf(), batchOf(), batchOf()]
    batches.forEach((batch, n) => begin('shop', `id-${n}`, batch))
    for (const n of batches.keys()) assert.equal(seen('blog', `id-${n}`), null)
    for (const [place, n] of order.entries()) {
      batches[n]!.settle(false)
      await settled()
      assert.equal(seen('blog', `id-${n}`), null)
      const ended = order.slice(0, place + 1)
      batches.forEach((batch, each) =>
        assert.equal(seen('shop', `id-${each}`), ended.includes(each) ? null : batch),
      )
    }
  }
})
