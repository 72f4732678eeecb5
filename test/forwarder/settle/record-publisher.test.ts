import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { unclaimed, type Claim } from '../../../src/core/offsets/offset-tracker.ts'
import { RecordPublisher, type RecordSink } from '../../../src/forwarder/settle/record-publisher.ts'
import { encoded, textOf } from '../fakes.ts'

interface Batch {
  topic: string
  ids: string[]
  bytes: number
  answer: PromiseWithResolvers<Answer>
}

/** Which records the topic refuses for their size: none, all, or those with these ids. */
type Answer = 'ok' | 'too_large' | string[]

/** A broker that answers when the test says so; `auto` answers at once. */
function underTest({
  maxRecordBytes = 4 * 1024 * 1024,
  lingerMs = 0,
  auto,
}: { maxRecordBytes?: number; lingerMs?: number; auto?: (batch: Batch) => Answer } = {}) {
  const batches: Batch[] = []
  const sink: RecordSink = {
    problem: () => null,
    async append(topic, records) {
      const ids = records.map((record) => textOf(record).slice(0, 6).trimEnd())
      const bytes = records.reduce((sum, { start, end }) => sum + end - start, 0)
      const batch = { topic, ids, bytes, answer: Promise.withResolvers<Answer>() }
      batches.push(batch)
      if (auto) batch.answer.resolve(auto(batch))
      const answer = await batch.answer.promise
      const refused = answer === 'ok' ? [] : answer === 'too_large' ? ids : answer
      return records.filter((_, index) => refused.includes(ids[index]!))
    },
  }
  const ended: string[] = []
  const failures: unknown[] = []
  const subject = new RecordPublisher(sink, maxRecordBytes, (error) => failures.push(error), lingerMs)
  const append = (id: string, bytes = 10, topic = 'retry.10s', claim: Claim = unclaimed) => {
    subject.append(topic, {
      ...encoded(id.padEnd(bytes)),
      get ownership() {
        return claim.ownership
      },
      dropped: () => claim.dropped(),
      done: () => ended.push(id),
      tooLarge: () => ended.push(`${id} too large`),
    })
  }
  return { subject, batches, ended, failures, append }
}

test('records of one turn go in one batch, and count as published only once the broker has them', async () => {
  const { subject, batches, ended, append } = underTest()
  append('a')
  append('b')
  assert.equal(batches.length, 0)
  await turn()
  assert.deepEqual(
    batches.map(({ ids }) => ids),
    [['a', 'b']],
  )
  assert.deepEqual(ended, [])
  assert.equal(subject.open, 2)
  batches[0]!.answer.resolve('ok')
  await turn()
  assert.deepEqual(ended, ['a', 'b'])
  assert.equal(subject.open, 0)
})

test('one batch per topic is in flight at a time, in order, and topics do not wait for each other', async () => {
  const { batches, ended, append } = underTest()
  append('a1', 10, 'a')
  await turn()
  append('a2', 10, 'a')
  append('b1', 10, 'b')
  await turn()
  assert.deepEqual(
    batches.map(({ ids }) => ids),
    [['a1'], ['b1']],
  )
  batches[1]!.answer.resolve('ok')
  await turn()
  batches[0]!.answer.resolve('ok')
  await turn()
  batches[2]!.answer.resolve('ok')
  await turn()
  assert.deepEqual(ended, ['b1', 'a1', 'a2'])
})

test('batches are bounded by bytes and by count, and keep the order', async () => {
  const { subject, batches, ended, append } = underTest({ auto: () => 'ok' })
  const big = Array.from({ length: 20 }, (_, index) => `big${index}`)
  for (const id of big) append(id, 100 * 1024)
  const small = Array.from({ length: 2_500 }, (_, index) => `s${index}`)
  for (const id of small) append(id)
  await subject.settled()
  assert.deepEqual(ended, [...big, ...small])
  for (const { bytes, ids } of batches) {
    assert.ok(bytes <= 512 * 1024, `${bytes} bytes`)
    assert.ok(ids.length <= 500)
  }
})

test('a record larger than a batch is sent alone', async () => {
  const { subject, batches, append } = underTest({ auto: () => 'ok' })
  append('a')
  append('huge', 1024 * 1024)
  append('b')
  await subject.settled()
  assert.deepEqual(
    batches.map(({ ids }) => ids),
    [['a'], ['huge'], ['b']],
  )
})

test('of a batch with a record that is too large, only that record is refused', async () => {
  const { subject, ended, append } = underTest({ auto: () => ['bad'] })
  for (const id of ['a', 'bad', 'b']) append(id)
  await subject.settled()
  assert.deepEqual(ended, ['a', 'bad too large', 'b'])
})

test('a record larger than the topic allows is refused without a request, however close to the limit it is', async () => {
  const { subject, batches, ended, append } = underTest({ maxRecordBytes: 2_000, auto: () => 'ok' })
  append('big', 2_000)
  assert.deepEqual(ended, ['big too large'])
  append('fits', 1_850)
  await subject.settled()
  assert.deepEqual(
    batches.map(({ ids }) => ids),
    [['fits']],
  )
})

test('records of an uncertain partition wait and those of a lost one are not written, and neither delays others', async () => {
  const { subject, batches, ended, append } = underTest({ auto: () => 'ok' })
  const claim = (id: string): { ownership: Claim['ownership']; dropped(): void } => ({
    ownership: 'uncertain',
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
  assert.deepEqual(ended, ['c'], 'still uncertain')

  a.ownership = 'lost'
  b.ownership = 'owned'
  subject.lookAgain()
  await subject.settled()
  assert.deepEqual(ended, ['c', 'a dropped', 'b'])
  assert.deepEqual(
    batches.map(({ ids }) => ids),
    [['c'], ['b']],
  )
})

test('a record whose partition is lost while an earlier batch is in flight is not written', async () => {
  const { batches, ended, append } = underTest()
  const claim = { ownership: 'owned' as Claim['ownership'], dropped: () => ended.push('b dropped') }
  append('a')
  await turn()
  append('b', 10, 'retry.10s', claim)
  claim.ownership = 'lost'
  batches[0]!.answer.resolve('ok')
  await turn()
  assert.deepEqual(ended, ['a', 'b dropped'])
  assert.equal(batches.length, 1)
})

test('settled() waits for all appended records, and for those that a refusal appends instead', async () => {
  const { subject, batches, append } = underTest()
  await subject.settled()
  let settled = false
  subject.append('retry.10s', {
    ...encoded('first'),
    ...unclaimed,
    done() {},
    tooLarge: () => append('buried', 10, 'dead-letters'),
  })
  const waiting = subject.settled().then(() => (settled = true))
  await turn()
  batches[0]!.answer.resolve('too_large')
  await turn()
  await turn()
  assert.equal(settled, false)
  assert.deepEqual(batches[1]!.ids, ['buried'])
  batches[1]!.answer.resolve('ok')
  await waiting
})

test('a fatal error of the broker is a failure, and nothing counts as published', async () => {
  const { subject, batches, ended, failures, append } = underTest()
  append('a')
  await turn()
  batches[0]!.answer.reject(new Error('stopped'))
  await turn()
  assert.deepEqual(failures.map(String), ['Error: stopped'])
  assert.deepEqual(ended, [])
  assert.equal(subject.open, 1)
})

test('a batch waits for more records after another was just sent, unless it is full or a caller waits for it', async () => {
  const { subject, batches, append } = underTest({ lingerMs: 3_600_000, auto: () => 'ok' })
  const ids = () => batches.map((batch) => batch.ids.length)
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
  assert.equal(batches.length, 4)
  await subject.settled()
  assert.deepEqual(ids(), [1, 1, 2, 500, 1])
})

test('a batch that waits for more records is sent after a maximum wait', async () => {
  const { subject, batches, append } = underTest({ lingerMs: 30, auto: () => 'ok' })
  const began = performance.now()
  append('first')
  await turn()
  await turn()
  append('second')
  while (subject.open > 0) await turn()
  assert.equal(batches.length, 2)
  // Timers may fire a part of a millisecond early.
  assert.ok(performance.now() - began >= 28)
})
