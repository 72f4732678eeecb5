import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LedgerPasses } from '../../../src/operators/replay/ledger.ts'
import type { LedgerFollower, ValueRecord, PartitionSpan } from '../../../src/operators/replay/rig.ts'
import { deliveryEvent, type DeliveryEvent } from '../../../src/core/ledger/delivery-event.ts'

/** A ledger of two partitions in memory, whose records are appended at 0, 1, 2 … ms in turn. */
class Ledger {
  readonly #partitions: ValueRecord[][] = [[], []]
  /** How often records were read. */
  reads = 0
  decoded = 0
  passes = 0
  /** Awaited before each record. */
  gate: () => Promise<void> | void = () => {}
  readonly reader = new LedgerPasses(
    {
      spans: async (_topic, since = -Infinity) =>
        this.#partitions.map((records, partition) => {
          const low = records.findIndex(({ timestamp }) => timestamp >= since)
          return { partition, low: low < 0 ? records.length : low, high: records.length }
        }),
      each: (_topic, spans, take, signal) => this.#each(spans, take, signal),
      eventsOf: (ids) => (value) => {
        this.decoded++
        const id = Buffer.from(value!).toString()
        return ids.includes(id) ? eventOf(id) : null
      },
    },
    'ledger',
  )
  #appended = 0

  append(...destinationIds: string[]): void {
    for (const id of destinationIds) {
      const partition = this.#appended % 2
      const records = this.#partitions[partition]!
      records.push({ partition, offset: records.length, value: Buffer.from(id), timestamp: this.#appended++ })
    }
  }

  async #each(
    spans: readonly PartitionSpan[],
    take: (record: ValueRecord) => void | Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    this.passes++
    for (const { partition, low, high } of spans)
      for (const record of this.#partitions[partition]!.slice(low, high)) {
        await this.gate()
        signal.throwIfAborted()
        this.reads++
        await take(record)
      }
  }
}

const eventOf = (destinationId: string): DeliveryEvent => ({
  ...deliveryEvent('disposition', 0, {}),
  destinationId,
})

interface Watched extends LedgerFollower {
  times: number[]
}

function follower(destinationId: string, from = 0): Watched {
  const times: number[] = []
  return {
    times,
    destinationId,
    from,
    next: null,
    add: (event, at) => void (event.destinationId === destinationId && times.push(at)),
  }
}

const never = new AbortController().signal
const sorted = (times: readonly number[]) => times.toSorted((a, b) => a - b)

test('replays that ask at the same time read the ledger once, and each takes what is its own from its own beginning', async () => {
  const ledger = new Ledger()
  ledger.append('a', 'a', 'b', 'b', 'a', 'c', 'a', 'b')
  const [first, second, third] = [follower('a'), follower('a', 4), follower('b')]
  await Promise.all([first, second, third].map((each) => ledger.reader.read(each, never)))
  assert.deepEqual([ledger.passes, ledger.reads, ledger.decoded], [1, 8, 8])
  assert.deepEqual(
    [first, second, third].map(({ times }) => sorted(times)),
    [
      [0, 1, 4, 6],
      [4, 6],
      [2, 3, 7],
    ],
  )
})

test('a replay that asks again takes only what is new, and one that joins takes all that it has missed', async () => {
  const ledger = new Ledger()
  ledger.append('a', 'b', 'a')
  const [first, second] = [follower('a'), follower('b')]
  await ledger.reader.read(first, never)
  ledger.append('a', 'b')
  await Promise.all([first, second].map((each) => ledger.reader.read(each, never)))
  assert.deepEqual(
    [sorted(first.times), sorted(second.times)],
    [
      [0, 2, 3],
      [1, 4],
    ],
  )
})

test('what asks while a pass runs is read in the next one, up to its end as of the question', async () => {
  const ledger = new Ledger()
  ledger.append('a', 'a')
  const [first, second] = [follower('a'), follower('a')]
  let later: Promise<void> | null = null
  ledger.gate = () => {
    if (later) return
    ledger.append('a')
    later = ledger.reader.read(second, never)
  }
  await ledger.reader.read(first, never)
  await later
  assert.deepEqual([first.times.length, second.times.length, ledger.passes], [2, 3, 2])
})

test('a replay that ends keeps no other waiting, and takes nothing from it', async () => {
  const ledger = new Ledger()
  ledger.append('a', 'a', 'a', 'a')
  const [first, second] = [follower('a'), follower('a')]
  const ending = new AbortController()
  ledger.gate = () => ending.abort(new Error('cancelled'))
  const ended = assert.rejects(ledger.reader.read(first, ending.signal), /cancelled/)
  await ledger.reader.read(second, never)
  await ended
  assert.equal(second.times.length, 4)
})

test('when all have ended the reading ends', async () => {
  const ledger = new Ledger()
  ledger.append('a', 'a', 'a', 'a')
  const ending = new AbortController()
  ledger.gate = () => ending.abort(new Error('the console stops'))
  const all = [follower('a'), follower('a')].map((each) => ledger.reader.read(each, ending.signal))
  for (const each of all) await assert.rejects(each, /the console stops/)
  assert.equal(ledger.reads, 0)
})

test('an error reaches all that the pass was for, and the next one begins where it did', async () => {
  const ledger = new Ledger()
  ledger.append('a', 'a')
  const [first, second] = [follower('a'), follower('b')]
  ledger.gate = () => {
    throw new Error('no broker')
  }
  const all = [first, second].map((each) => ledger.reader.read(each, never))
  for (const each of all) await assert.rejects(each, /no broker/)
  ledger.gate = () => {}
  await ledger.reader.read(first, never)
  assert.deepEqual(sorted(first.times), [0, 1])
})
