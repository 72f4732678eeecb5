import pino from 'pino'
import { readRange } from '../../src/adapters/kafka/read-range.ts'
import type { Rig } from './rig.ts'

const mostCounted = 255

/** How often the ledger records of each delivery that a retry was scheduled, and that it is dead. */
export class LedgerEvidence {
  #retries = new Uint8Array(65_536)
  #deadLetters = new Uint8Array(65_536)
  events = 0

  retriesOf(delivery: number): number {
    return this.#retries[delivery] ?? 0
  }

  deadLettersOf(delivery: number): number {
    return this.#deadLetters[delivery] ?? 0
  }

  async read({ kafka, topics, codecs }: Rig, numberOf: (deliveryId: string) => number | null): Promise<void> {
    const log = pino({ level: 'silent' })
    const codec = codecs.deliveries
    for await (const { value } of readRange({
      kafka,
      topic: topics.deliveries,
      groupPrefix: 'evidence',
      log,
    })) {
      const { type, deliveryId, disposition } = codec.tryDecode(value) ?? (await codec.decode(value))
      if (type === 'tally') continue
      this.events++
      const delivery = type === 'disposition' && deliveryId !== null ? numberOf(deliveryId) : null
      if (delivery === null) continue
      if (disposition === 'retried' || disposition === 'deferred')
        this.#retries = counted(this.#retries, delivery)
      if (disposition === 'dead_lettered') this.#deadLetters = counted(this.#deadLetters, delivery)
    }
  }
}

function counted(counts: Uint8Array<ArrayBuffer>, index: number): Uint8Array<ArrayBuffer> {
  let array = counts
  if (index >= array.length) {
    array = new Uint8Array(Math.max(index + 1, array.length * 2))
    array.set(counts)
  }
  if (array[index]! < mostCounted) array[index]!++
  return array
}
