import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Brokers } from '../../../../src/adapters/kafka/link/brokers.ts'
import { readPlaces, roundsOf } from '../../../../src/adapters/kafka/read/read-range.ts'
import { someCall } from '../../../support/calls/calls.ts'
import { deploy } from '../../../support/deployment/deployment.ts'
import { silentLog } from '../../../support/silent-log.ts'

test('records of one partition are read in one pass if they are near each other, else one after another', () => {
  const rounds = roundsOf(
    new Map([
      [0, new Set([9_000, 5, 100])],
      [1, new Set([7])],
    ]),
  )
  assert.deepEqual(rounds, [
    [
      { partition: 0, low: 5, high: 101 },
      { partition: 1, low: 7, high: 8 },
    ],
    [{ partition: 0, low: 9_000, high: 9_001 }],
  ])
})

test('exactly the requested records are read, from whatever partitions', async (t) => {
  const deployment = await deploy(t)
  const { topics, kafka } = deployment
  await deployment.produce(
    Array.from({ length: 40 }, (_, n) => someCall({ messageId: `m-${n}`, userId: `u-${n}` })),
  )
  const all = await deployment.read(topics.calls)
  const places = all
    .filter((_, index) => index % 7 === 0)
    .map(({ topic, partition, offset }) => ({ topic, partition, offset }))
  const brokers = new Brokers(kafka, 10_000)
  t.after(() => brokers.close())
  const source = { kafka, brokers, log: silentLog }
  const found = await readPlaces(source, places)
  const keyOf = (place: (typeof places)[number]) => `${place.partition}/${place.offset}`
  assert.deepEqual(found.map(keyOf).toSorted(), places.map(keyOf).toSorted())
  assert.deepEqual(await readPlaces(source, []), [])
})
