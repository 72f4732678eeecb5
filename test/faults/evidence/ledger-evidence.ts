import { readRange } from '../../../src/adapters/kafka/read/read-range.ts'
import { isReport } from '../../../src/adapters/schema-registry/ledger-records.ts'
import { strictTier } from '../../../src/core/topics.ts'
import type { SideEvidence } from './side-evidence.ts'
import type { Rig } from '../rig.ts'
import { silentLog } from '../../support/silent-log.ts'

export const maxCounted = 255

/**
 * How often the ledger records what became of each delivery when it came from a tier, that it was delivered then, and that it
 * is dead.
 */
export class LedgerEvidence {
  #fromTiers = new Uint8Array(65_536)
  #delivered = new Uint8Array(65_536)
  #deadLetters = new Uint8Array(65_536)
  /** Records of tiers of which what was left ended as a whole: one event for all calls of a run. */
  readonly #ended = new Set<string>()
  /** When attempts failed of what keeps its order, which has no record of each round; epoch ms, by its sender's clock. */
  readonly #failedAt = new Map<number, number[]>()
  events = 0

  fromTiersOf(delivery: number): number {
    return this.#fromTiers[delivery] ?? 0
  }

  deliveredOf(delivery: number): number {
    return this.#delivered[delivery] ?? 0
  }

  deadLettersOf(delivery: number): number {
    return this.#deadLetters[delivery] ?? 0
  }

  /** An attempt of a parked delivery failed at `at` or later. */
  failedSince(delivery: number, at: number): boolean {
    return this.#failedAt.get(delivery)?.some((each) => each >= at) ?? false
  }

  /** How many attempts failed of a parked delivery. */
  failuresOf(delivery: number): number {
    return this.#failedAt.get(delivery)?.length ?? 0
  }

  hasEnded(topic: string, partition: number, offset: number): boolean {
    return this.#ended.has(`${topic}/${partition}/${offset}`)
  }

  async read(
    { kafka, topics, codecs }: Rig,
    numberOf: (deliveryId: string) => number | null,
    side: SideEvidence,
  ): Promise<void> {
    const log = silentLog
    const codec = codecs.deliveries
    for await (const { value } of readRange({
      kafka,
      topic: topics.deliveries,
      log,
    })) {
      if (isReport(value)) continue
      const event = codec.tryDecode(value) ?? (await codec.decode(value))
      const { type, deliveryId, disposition, topic, partition, firstOffset, tally } = event
      if (tally) side.addTally(tally, topic!, event.partition!)
      if (type === 'tally') continue
      this.events++
      if (type === 'disposition' && deliveryId === null)
        this.#ended.add(`${topic}/${partition}/${firstOffset}`)
      if (type === 'attempt_failed' && topic === topics.retry(strictTier.name)) {
        const failed = numberOf(deliveryId!)
        if (failed !== null) this.#failedAt.set(failed, [...(this.#failedAt.get(failed) ?? []), event.at])
      }
      const delivery = type === 'disposition' && deliveryId !== null ? numberOf(deliveryId) : null
      if (delivery === null) {
        if (type === 'disposition' && disposition === 'delivered') side.delivered.add(deliveryId!)
        continue
      }
      if (disposition === 'delivered') this.#delivered = counted(this.#delivered, delivery)
      if (topic !== topics.calls) this.#fromTiers = counted(this.#fromTiers, delivery)
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
  if (array[index]! < maxCounted) array[index]!++
  return array
}
