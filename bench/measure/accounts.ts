import { isRun, offsetsOf } from '../../src/core/delivery/deferred-run.ts'
import { placeKey } from '../../src/core/ledger/trace.ts'
import { setTimeout as delay } from 'node:timers/promises'
import { readRange } from '../../src/adapters/kafka/read/read-range.ts'
import type { Deployment } from '../rig.ts'
import { silentLog as log } from '../../test/support/silent-log.ts'

/** Resolves once the forwarder has committed all of the calls topic: each call has arrived or its retry is in Kafka. */
export async function untilFinished(deployment: Deployment, withinMs = 60_000): Promise<void> {
  const { kafka, topics, config } = deployment
  const admin = kafka.admin()
  await admin.connect()
  try {
    for (const deadline = performance.now() + withinMs; ; await delay(500)) {
      const ends = await admin.fetchTopicOffsets(topics.calls)
      const [committed] = await admin.fetchOffsets({ groupId: config.groupId, topics: [topics.calls] })
      const lag = ends.reduce((sum, { partition, high, low }) => {
        const at = Number(committed?.partitions.find((each) => each.partition === partition)?.offset ?? -1)
        return sum + Number(high) - Math.max(at, Number(low))
      }, 0)
      if (lag === 0) return
      if (performance.now() > deadline) throw new Error(`${lag} calls are not finished in ${withinMs} ms`)
    }
  } finally {
    await admin.disconnect()
  }
}

export interface RetryAccount {
  /** Different calls of the destination that lie in a retry tier or among the dead letters. */
  calls: number
  /** Records of it in the tiers: one for each time that a call was tried and scheduled, and one for each run. */
  retryRecords: number
  deadLetters: number
}

/** Reads every tier and the dead letters for the retries and dead letters of one destination. */
export async function retriesOf(deployment: Deployment, destinationId: string): Promise<RetryAccount> {
  const { kafka, topics, codecs, config } = deployment
  const calls = new Set<string>()
  const records = (topic: string) => readRange({ kafka, topic, log })
  let retryRecords = 0
  for (const { name } of config.retryTiers) {
    for await (const { value } of records(topics.retry(name))) {
      const retry = await codecs.retries(name).decode(value)
      if (retry.destinationId !== destinationId) continue
      retryRecords++
      if (!isRun(retry)) calls.add(placeKey(retry.origin))
      else {
        const { topic, partition } = retry.calls
        for (const offset of offsetsOf(retry.calls)) calls.add(placeKey({ topic, partition, offset }))
      }
    }
  }
  let deadLetters = 0
  for await (const { value } of records(topics.deadLetters)) {
    const { delivery } = await codecs.deadLetters.decode(value)
    if (delivery?.destinationId !== destinationId) continue
    deadLetters++
    calls.add(placeKey(delivery.origin))
  }
  return { calls: calls.size, retryRecords, deadLetters }
}
