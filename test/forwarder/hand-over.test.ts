import assert from 'node:assert/strict'
import { setImmediate as turn } from 'node:timers/promises'
import { test } from 'node:test'
import { unclaimed, type Claim } from '../../src/forwarder/claim.ts'
import { HandOver } from '../../src/forwarder/hand-over.ts'
import type { RecordSink } from '../../src/forwarder/ports.ts'
import { encoded, textOf } from './fakes.ts'

interface Lot {
  topic: string
  ids: string[]
  bytes: number
  answer: PromiseWithResolvers<'ok' | 'too_large'>
}

/** A broker that answers when the test says so; `auto` answers at once. */
function handOver({
  maxRecordBytes = 4 * 1024 * 1024,
  lingerMs = 0,
  auto,
}: { maxRecordBytes?: number; lingerMs?: number; auto?: (lot: Lot) => 'ok' | 'too_large' } = {}) {
  const lots: Lot[] = []
  const sink: RecordSink = {
    append(all) {
      const { topic, records } = all[0]!
      const ids = records.map((record) => textOf(record).slice(0, 6).trimEnd())
      const bytes = records.reduce((sum, { start, end }) => sum + end - start, 0)
      const lot = { topic, ids, bytes, answer: Promise.withResolvers<'ok' | 'too_large'>() }
      lots.push(lot)
      if (auto) lot.answer.resolve(auto(lot))
      return lot.answer.promise
    },
  }
  const ended: string[] = []
  const failures: unknown[] = []
  const subject = new HandOver(sink, maxRecordBytes, (error) => failures.push(error), lingerMs)
  const append = (id: string, bytes = 10, topic = 'retry.10s', claim: Claim = unclaimed) => {
    subject.append(topic, {
      ...encoded(id.padEnd(bytes)),
      get standing() {
        return claim.standing
      },
      dropped: () => claim.dropped(),
      done: () => ended.push(id),
      tooLarge: () => ended.push(`${id} too large`),
    })
  }
  return { subject, lots, ended, failures, append }
}

test('what comes in one turn goes in one lot, and counts as handed over only once the broker has it', async () => {
  const { subject, lots, ended, append } = handOver()
  append('a')
  append('b')
  assert.equal(lots.length, 0)
  await turn()
  assert.deepEqual(
    lots.map(({ ids }) => ids),
    [['a', 'b']],
  )
  assert.deepEqual(ended, [])
  assert.equal(subject.open, 2)
  lots[0]!.answer.resolve('ok')
  await turn()
  assert.deepEqual(ended, ['a', 'b'])
  assert.equal(subject.open, 0)
})

test('one lot a topic is under way at a time, in order; topics do not wait for each other', async () => {
  const { lots, ended, append } = handOver()
  append('a1', 10, 'a')
  await turn()
  append('a2', 10, 'a')
  append('b1', 10, 'b')
  await turn()
  assert.deepEqual(
    lots.map(({ ids }) => ids),
    [['a1'], ['b1']],
  )
  lots[1]!.answer.resolve('ok')
  await turn()
  lots[0]!.answer.resolve('ok')
  await turn()
  lots[2]!.answer.resolve('ok')
  await turn()
  assert.deepEqual(ended, ['b1', 'a1', 'a2'])
})

test('lots are bounded by bytes and by count, and keep the order', async () => {
  const { subject, lots, ended, append } = handOver({ auto: () => 'ok' })
  const big = Array.from({ length: 20 }, (_, index) => `big${index}`)
  for (const id of big) append(id, 100 * 1024)
  const small = Array.from({ length: 2_500 }, (_, index) => `s${index}`)
  for (const id of small) append(id)
  await subject.settled()
  assert.deepEqual(ended, [...big, ...small])
  for (const { bytes, ids } of lots) {
    assert.ok(bytes <= 512 * 1024, `${bytes} bytes`)
    assert.ok(ids.length <= 500)
  }
})

test('one record larger than a lot goes alone', async () => {
  const { subject, lots, append } = handOver({ auto: () => 'ok' })
  append('a')
  append('huge', 1024 * 1024)
  append('b')
  await subject.settled()
  assert.deepEqual(
    lots.map(({ ids }) => ids),
    [['a'], ['huge'], ['b']],
  )
})

test('a lot that the broker finds too large is split: only the record at fault is refused', async () => {
  const { subject, ended, append } = handOver({
    auto: ({ ids }) => (ids.includes('bad') ? 'too_large' : 'ok'),
  })
  for (const id of ['a', 'bad', 'b']) append(id)
  await subject.settled()
  assert.deepEqual(ended, ['a', 'bad too large', 'b'])
})

test('what is larger than the topic takes is refused without asking, however close', async () => {
  const { subject, lots, ended, append } = handOver({ maxRecordBytes: 2_000, auto: () => 'ok' })
  append('big', 2_000)
  assert.deepEqual(ended, ['big too large'])
  append('fits', 1_850)
  await subject.settled()
  assert.deepEqual(
    lots.map(({ ids }) => ids),
    [['fits']],
  )
})

test('what is of an unsure partition waits, what is of a lost one is not written; nobody waits for them', async () => {
  const { subject, lots, ended, append } = handOver({ auto: () => 'ok' })
  const claim = (id: string): { standing: Claim['standing']; dropped(): void } => ({
    standing: 'unsure',
    dropped: () => ended.push(`${id} dropped`),
  })
  const [a, b] = [claim('a'), claim('b')]
  append('a', 10, 'retry.10s', a)
  append('b', 10, 'retry.10s', b)
  append('c')
  await turn()
  await turn()
  assert.deepEqual(ended, ['c'])
  assert.equal(subject.open, 2)
  subject.lookAgain()
  await turn()
  assert.deepEqual(ended, ['c'], 'still unsure')

  a.standing = 'lost'
  b.standing = 'ours'
  subject.lookAgain()
  await subject.settled()
  assert.deepEqual(ended, ['c', 'a dropped', 'b'])
  assert.deepEqual(
    lots.map(({ ids }) => ids),
    [['c'], ['b']],
  )
})

test('a record whose partition is lost while an earlier lot is under way is not written', async () => {
  const { lots, ended, append } = handOver()
  const claim = { standing: 'ours' as Claim['standing'], dropped: () => ended.push('b dropped') }
  append('a')
  await turn()
  append('b', 10, 'retry.10s', claim)
  claim.standing = 'lost'
  lots[0]!.answer.resolve('ok')
  await turn()
  assert.deepEqual(ended, ['a', 'b dropped'])
  assert.equal(lots.length, 1)
})

test('settled() waits for all that was appended, and for what a refusal appends in its place', async () => {
  const { subject, lots, append } = handOver()
  await subject.settled()
  let settled = false
  subject.append('retry.10s', {
    ...encoded('first'),
    ...unclaimed,
    done() {},
    tooLarge: () => append('letter', 10, 'dead-letters'),
  })
  const waiting = subject.settled().then(() => (settled = true))
  await turn()
  lots[0]!.answer.resolve('too_large')
  await turn()
  await turn()
  assert.equal(settled, false)
  assert.deepEqual(lots[1]!.ids, ['letter'])
  lots[1]!.answer.resolve('ok')
  await waiting
})

test('a broker that cannot go on is a failure, and nothing counts as handed over', async () => {
  const { subject, lots, ended, failures, append } = handOver()
  append('a')
  await turn()
  lots[0]!.answer.reject(new Error('stopped'))
  await turn()
  assert.deepEqual(failures.map(String), ['Error: stopped'])
  assert.deepEqual(ended, [])
  assert.equal(subject.open, 1)
})

test('a lot waits for more after another has just gone out, unless it is full or somebody waits for it', async () => {
  const { subject, lots, append } = handOver({ lingerMs: 3_600_000, auto: () => 'ok' })
  const ids = () => lots.map((lot) => lot.ids.length)
  append('first')
  await turn()
  assert.deepEqual(ids(), [1])
  await turn()
  append('second')
  await turn()
  append('third')
  await turn()
  assert.deepEqual(ids(), [1])
  append('of another topic', 20, 'retry.30s')
  await turn()
  assert.deepEqual(ids(), [1, 1])
  subject.flush('retry.10s')
  await turn()
  assert.deepEqual(ids(), [1, 1, 2])
  for (let count = 0; count < 500; count++) append('many')
  await turn()
  // The flush let one go out of its time; this one does too, for it is full.
  assert.deepEqual(ids(), [1, 1, 2, 500])
  append('last')
  await turn()
  assert.equal(lots.length, 4)
  await subject.settled()
  assert.deepEqual(ids(), [1, 1, 2, 500, 1])
})

test('a lot that waits for more goes out when it has waited for long enough', async () => {
  const { subject, lots, append } = handOver({ lingerMs: 30, auto: () => 'ok' })
  const began = performance.now()
  append('first')
  await turn()
  await turn()
  append('second')
  while (subject.open > 0) await turn()
  assert.equal(lots.length, 2)
  // Timers may fire a part of a millisecond early.
  assert.ok(performance.now() - began >= 28)
})
