import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Brokers } from '../../../../src/adapters/kafka/link/brokers.ts'
import { encodeRecord } from '../../../../src/adapters/kafka/producer/plain-record.ts'
import { fetchFrom } from '../../../../src/adapters/kafka/read/read-requests.ts'
import { KafkaSink } from '../../../../src/adapters/kafka/write/record-sink.ts'
import { deploy } from '../../../support/deployment/deployment.ts'
import { silentLog } from '../../../support/silent-log.ts'

const call = (n: number): string =>
  JSON.stringify({
    type: 'track',
    event: 'Order Completed',
    messageId: `m-${n}`,
    context: { ip: '10.0.0.1' },
  })
const values = Array.from({ length: 50 }, (_, n) => call(n))

test('what waits in a tier or is a dead letter is compressed, and read as it was; the ledger is not', async (t) => {
  const { kafka, topics, config, read } = await deploy(t)
  const sink = new KafkaSink(kafka, topics, silentLog, () => {})
  const brokers = new Brokers(kafka)
  t.after(() => {
    sink.close()
    brokers.close()
  })

  /** The bytes of the only batch that is written. */
  const written = async (topic: string): Promise<Buffer> => {
    const records = values.map((value) => encodeRecord({ key: 'u-1', value: Buffer.from(value) }))
    let partition = -1
    await sink.append(topic, records, (_, its) => (partition = its))
    brokers.follow(topic)
    await brokers.refresh()
    const leader = await brokers.connection(brokers.leader(topic, partition)!)
    const places = [{ topic, partition, offset: 0, maxBytes: 100_000 }]
    return (await fetchFrom(leader, places, { maxWaitMs: 1_000 })).parts[0]!.bytes
  }
  const codecOf = (batch: Buffer): number => batch.readInt16BE(21) & 7
  const gzip = 1

  const plain = await written(topics.deliveries)
  assert.equal(codecOf(plain), 0)
  const tier = topics.retry(config.retryTiers[0]!.name)
  for (const topic of [tier, topics.deadLetters]) {
    const packed = await written(topic)
    assert.equal(codecOf(packed), gzip)
    assert.ok(packed.length < plain.length / 3, `${packed.length} of ${plain.length} bytes`)
    const back = await read(topic)
    assert.deepEqual(
      back.map(({ key, value }) => [String(key), String(value)]),
      values.map((value) => ['u-1', value]),
    )
  }
})
