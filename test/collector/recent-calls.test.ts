import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CallBatchPart } from '../../src/collector/call-batch-sink.ts'
import { RecentCalls } from '../../src/collector/recent-calls.ts'
import { RecentIds } from '../../src/core/call/recent-ids.ts'

/** A part of a batch, of one of its own unless given; `settle` ends it. */
const partOf = (batch = Promise.withResolvers<void>()) => ({
  ended: batch.promise,
  isWritten: false,
  settle(written: boolean) {
    this.isWritten = written
    batch.resolve()
  },
})
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
    begin: (source: string, id: string, part: CallBatchPart) => recent.begin(...of(source, id), part),
  }
}

test('a call in flight refers to its batch, is remembered once that is written, and is forgotten if that fails', async () => {
  const { seen, begin } = underTest()
  const [written, failed] = [partOf(), partOf()]
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
  const again = partOf()
  begin('shop', 'b', again)
  again.settle(true)
  await settled()
  assert.equal(seen('shop', 'b'), 'written')
})

test('of a batch, what one partition has is remembered, and what another one may not have is forgotten', async () => {
  const { seen, begin } = underTest()
  const batch = Promise.withResolvers<void>()
  const [written, failed] = [partOf(batch), partOf(batch)]
  const ids = ['a', 'b', 'c', 'd']
  for (const [at, id] of ids.entries()) begin('shop', id, at % 2 === 0 ? written : failed)
  written.settle(true)
  await settled()
  assert.deepEqual(
    ids.map((id) => seen('shop', id)),
    ['written', null, 'written', null],
  )
})

test('calls of different sources are independent', async () => {
  const { recent, seen, begin } = underTest()
  const batch = partOf()
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
    const batches = [partOf(), partOf(), partOf()]
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
