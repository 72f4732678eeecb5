import assert from 'node:assert/strict'
import { test } from 'node:test'
import { GroupFetch } from '../../../../src/adapters/kafka/group/group-fetch.ts'
import type { BrokerConnection } from '../../../../src/adapters/kafka/link/broker-connection.ts'
import type { Brokers } from '../../../../src/adapters/kafka/link/brokers.ts'
import { silentLog } from '../../../support/silent-log.ts'
import { until } from '../../../support/until.ts'

const at = { topic: 'calls', partition: 0 }
const endOfLog = 1_000
const [unknownPartition, notPermitted] = [3, 29]

/** A batch of as many records as offsets, each without key and value. */
function batch(epoch: number, first: number, count: number): Buffer {
  // Length, attributes, time, offset, no key, no value, no headers: zigzag numbers of one byte.
  const records = Array.from({ length: count }, (_, delta) => Buffer.from([12, 0, 0, delta * 2, 1, 1, 0]))
  const head = Buffer.alloc(61)
  const whole = Buffer.concat([head, ...records])
  whole.writeBigInt64BE(BigInt(first), 0)
  whole.writeInt32BE(whole.length - 12, 8)
  whole.writeInt32BE(epoch, 12)
  whole[16] = 2
  whole.writeInt32BE(count - 1, 23)
  whole.writeInt32BE(count, 57)
  return whole
}

/** What a broker holds of the partition, and says of the epochs of its leaders. */
class Broker {
  readonly batches: { epoch: number; first: number; count: number }[] = []
  epochEnd: { errorCode: number; epoch: number; end: number } | null = null
  /** Epochs, in order. */
  asked: number[] = []
  speaksOfEpochs = true

  versionOf({ apiName }: { apiName: string }): number | null {
    return apiName === 'OffsetForLeaderEpoch' && !this.speaksOfEpochs ? null : 3
  }

  async ask({ apiName }: { apiName: string }, body: Buffer): Promise<unknown> {
    await new Promise(setImmediate)
    if (apiName === 'OffsetForLeaderEpoch') {
      this.asked.push(body.readInt32BE(body.length - 4))
      return { throttleMs: 0, ends: [{ ...at, ...this.epochEnd! }] }
    }
    if (apiName !== 'Fetch') throw new Error(`${apiName} was not expected`)
    // Behind the place are the length of what is read at most, no topics to forget, and no rack.
    const from = Number(body.readBigInt64BE(body.length - 6 - 4 - 8 - 8))
    const bytes = this.batches
      .filter(({ first, count }) => first + count > from)
      .map(({ epoch, first, count }) => batch(epoch, first, count))
    const part = { ...at, errorCode: 0, end: endOfLog, stableOffset: endOfLog, aborted: [] }
    return { throttleMs: 0, errorCode: 0, parts: [{ ...part, bytes: Buffer.concat(bytes) }] }
  }
}

/** A partition that is fetched, and which broker leads it. */
function fetching(t: { after(end: () => Promise<void>): void }, first: Broker) {
  const read: [from: number, to: number][] = []
  const cuts: [from: number, to: number][] = []
  let [leader, takesNote] = [first, true]
  const brokers = {
    ...{
      follow() {},
      refresh: () => Promise.resolve(),
      topicError: () => 0,
      partitions: () => 1,
      close() {},
    },
    leader: () => 1,
    connected: () => leader as unknown as BrokerConnection,
  }
  const fetch = new GroupFetch({
    ...{ brokers: brokers as unknown as Brokers, topics: [at.topic], maxWaitMs: 1, log: silentLog },
    fetched: (_topic, _partition, { from, to }) => void read.push([from, to]),
    cutOff(_topic, _partition, from, to) {
      cuts.push([from, to])
      return takesNote
    },
    onAnswered() {},
    onTrouble() {},
  })
  fetch.own([at])
  t.after(() => fetch.close())
  return {
    ...{ fetch, read, cuts },
    readTo: (end: number) => until(() => read.at(-1)?.[1] === end, 10_000, `reading to ${end}`),
    lead: (broker: Broker) => void (leader = broker),
    takeNote: (takes: boolean) => void (takesNote = takes),
  }
}

function brokerWith(...batches: [epoch: number, first: number, count: number][]): Broker {
  const broker = new Broker()
  for (const [epoch, first, count] of batches) broker.batches.push({ epoch, first, count })
  return broker
}

test('a new leader with other records where something was read is read from where they begin', async (t) => {
  const { fetch, read, cuts, readTo, lead } = fetching(t, brokerWith([4, 0, 10], [5, 10, 20]))
  fetch.seek(at, 0)
  await readTo(30)
  const next = brokerWith([4, 0, 10], [6, 10, 50])
  next.epochEnd = { errorCode: 0, epoch: 4, end: 10 }
  lead(next)
  await readTo(60)
  assert.deepEqual([read, cuts, next.asked], [[[0, 30], [10, 60]], [[10, 30]], [5]]) // prettier-ignore
})

test('a new leader that has all that was read is asked once, and nothing is read twice', async (t) => {
  const { fetch, read, cuts, readTo, lead } = fetching(t, brokerWith([5, 0, 10]))
  fetch.seek(at, 0)
  await readTo(10)
  const next = brokerWith([5, 0, 10], [6, 10, 1])
  next.epochEnd = { errorCode: 0, epoch: 5, end: 10 }
  lead(next)
  await readTo(11)
  next.batches.push({ epoch: 6, first: 11, count: 1 })
  await readTo(12)
  assert.deepEqual([read, cuts, next.asked], [[[0, 10], [10, 11], [11, 12]], [], [5]]) // prettier-ignore
})

test('where a leader has nothing of an epoch, all that was read of it is gone', async (t) => {
  const { fetch, cuts, readTo, lead } = fetching(t, brokerWith([4, 0, 10], [5, 10, 20]))
  fetch.seek(at, 10)
  await readTo(30)
  const next = brokerWith([4, 0, 25], [6, 25, 25])
  // It took others under the epoch before.
  next.epochEnd = { errorCode: 0, epoch: 4, end: 25 }
  lead(next)
  await readTo(50)
  assert.deepEqual(cuts, [[10, 30]])
})

test('what a broker does not say of an epoch yet is not read from it, and asked again', async (t) => {
  const { fetch, read, cuts, readTo, lead } = fetching(t, brokerWith([5, 0, 10]))
  fetch.seek(at, 0)
  await readTo(10)
  const next = brokerWith([6, 5, 20])
  next.epochEnd = { errorCode: unknownPartition, epoch: -1, end: -1 }
  lead(next)
  await until(() => next.asked.length > 1, 10_000, 'that it is asked again')
  assert.deepEqual(read, [[0, 10]])
  next.epochEnd = { errorCode: 0, epoch: 5, end: 5 }
  await readTo(25)
  assert.deepEqual([read, cuts], [[[0, 10], [5, 25]], [[5, 10]]]) // prettier-ignore
})

test('where a broker never says where epochs end, or knows of none, reading goes on', async (t) => {
  for (const answers of [
    { errorCode: notPermitted, epoch: -1, end: -1 },
    { errorCode: 0, epoch: -1, end: -1 },
    null,
  ]) {
    const { fetch, cuts, readTo, lead } = fetching(t, brokerWith([5, 0, 10]))
    fetch.seek(at, 0)
    await readTo(10)
    const next = brokerWith([6, 10, 10])
    next.speaksOfEpochs = answers !== null
    next.epochEnd = answers
    lead(next)
    await readTo(20)
    assert.deepEqual(cuts, [])
  }
})

test('what nobody takes note of yet comes again after the next seek', async (t) => {
  const { fetch, read, cuts, readTo, lead, takeNote } = fetching(t, brokerWith([5, 0, 10]))
  fetch.seek(at, 0)
  await readTo(10)
  takeNote(false)
  const next = brokerWith([6, 5, 20])
  next.epochEnd = { errorCode: 0, epoch: 5, end: 5 }
  lead(next)
  await until(() => cuts.length === 1, 10_000, 'that it is noticed')
  takeNote(true)
  fetch.seek(at, 8)
  await readTo(25)
  assert.deepEqual([read, cuts], [[[0, 10], [5, 25]], [[5, 10], [5, 10]]]) // prettier-ignore
})

test('what this member read long ago says nothing where another has read on since', async (t) => {
  const { fetch, read, cuts, readTo, lead } = fetching(t, brokerWith([5, 0, 10]))
  fetch.seek(at, 0)
  await readTo(10)
  fetch.own([])
  fetch.own([at])
  const next = brokerWith([6, 5, 20])
  next.epochEnd = { errorCode: 0, epoch: 5, end: 5 }
  lead(next)
  fetch.seek(at, 20)
  await readTo(25)
  assert.deepEqual([read, cuts], [[[0, 10], [20, 25]], []]) // prettier-ignore
})
