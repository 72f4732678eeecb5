import { deadLetterFilter } from '../../core/delivery/dead-letter-filter.ts'
import { planReplay } from '../../core/delivery/replay.ts'
import type { ErasableCall } from '../../core/erasure/erasures.ts'
import { DeliveryIdSet } from '../../core/replay/delivery-id-set.ts'
import type { DeadLetterReplay, SentKind } from '../../core/replay/replay-job.ts'
import { replayOwner } from '../../core/replay/replayed-delivery.ts'
import { replayTier } from '../../core/topics.ts'
import {
  deadLetterPlace,
  type StoredDeadLetter,
  type StoredRecord,
} from '../dead-letters/dead-letter-store.ts'
import { headersOf, traceOf } from './record-headers.ts'
import type { PartitionSpan, ReplayedRecord, ReplayRig, ReplaySource } from './replay-source.ts'

/** Brokers' clocks, which stamp records, and forwarders', which say when a delivery failed, may differ by this. */
const clockSkewMs = 600_000
/** Of deliveries that were met; further failures of those beyond are sent as well. 160 MB. */
const maxDeliveries = 10_000_000

/** What is to become of a dead letter that is chosen. */
export type DeadLetterVerdict =
  | { is: 'sent'; deliveryId: string | null; kind: SentKind; record: ReplayedRecord; to: string }
  | { is: 'refused'; deliveryId: string | null; why: string }
  | { is: 'erased' | 'repeated' }

/** The dead letters that a replay takes, and what is to become of each. They are met in order within a partition. */
export class ChosenDeadLetters {
  readonly #job: DeadLetterReplay
  readonly #rig: ReplayRig
  readonly #passes: ReturnType<typeof deadLetterFilter>
  readonly #ids: ReadonlySet<string> | null
  /** Ids of deliveries: of one that failed several times the first is sent. */
  readonly #met: DeliveryIdSet
  readonly #erasures: { covers(call: ErasableCall): boolean }
  readonly #topics: ReadonlySet<string>

  private constructor(
    job: DeadLetterReplay,
    rig: ReplayRig,
    erasures: { covers(call: ErasableCall): boolean },
    topics: ReadonlySet<string>,
  ) {
    const { deadLetters, since, until } = job
    this.#job = job
    this.#rig = rig
    this.#passes = deadLetterFilter({ ...deadLetters, since, until })
    this.#ids = deadLetters.ids && new Set(deadLetters.ids)
    this.#met = new DeliveryIdSet(rig.random(), maxDeliveries)
    this.#erasures = erasures
    this.#topics = topics
  }

  static async open(job: DeadLetterReplay, rig: ReplayRig, signal: AbortSignal): Promise<ChosenDeadLetters> {
    return new ChosenDeadLetters(job, rig, await rig.erasures(signal), await rig.source.topics())
  }

  /** Notes what an earlier process decided on. */
  async recall(record: StoredRecord): Promise<void> {
    const stored = await this.#chosen(record)
    const id = stored && deliveryIdOf(stored)
    if (id !== null) this.#met.add(id)
  }

  /** Null: it is not chosen. */
  async verdict(record: StoredRecord): Promise<DeadLetterVerdict | null> {
    const stored = await this.#chosen(record)
    if (stored === null) return null
    if (this.#erasures.covers(stored.owner)) return { is: 'erased' }
    const id = deliveryIdOf(stored)
    if (id !== null) {
      if (this.#met.has(id)) return { is: 'repeated' }
      this.#met.add(id)
    }
    return this.#plan(stored)
  }

  async #chosen(record: StoredRecord): Promise<StoredDeadLetter | null> {
    if (this.#ids?.has(`${record.partition}-${record.offset}`) === false) return null
    const stored = await this.#rig.source.storedDeadLetter(record)
    return this.#passes(stored) ? stored : null
  }

  /** On the settings as they are now. */
  #plan(stored: StoredDeadLetter): DeadLetterVerdict {
    const { deadLetter, problem, record } = stored
    const deliveryId = deliveryIdOf(stored)
    const refused = (why: string): DeadLetterVerdict => ({ is: 'refused', deliveryId, why })
    if (!deadLetter) return refused(`it cannot be read: ${problem}`)
    const { settings, topics, now } = this.#rig
    const planned = planReplay(deadLetter, {
      now: now(),
      owner: replayOwner(this.#job.id),
      topics,
      destination: settings.state.destinations.get(deadLetter.delivery?.destinationId ?? '') ?? null,
    })
    if (planned.kind === 'refused') return refused(planned.why)
    if (planned.kind === 'delivery') {
      const { record: delivery } = planned
      const sent = { key: record.key, delivery, headers: headersOf(record, delivery.origin) }
      return { is: 'sent', deliveryId, kind: 'failed', record: sent, to: topics.retry(replayTier.name) }
    }
    const { topic, key, value } = planned
    // A tier's topic can be deleted once it is in no settings any more.
    if (!this.#topics.has(topic)) return refused(`its topic, ${topic}, does not exist any more`)
    const sent = { key, topic, value, headers: traceOf(record) }
    return { is: 'sent', deliveryId, kind: 'raw', record: sent, to: topic }
  }
}

const deliveryIdOf = ({ deadLetter }: StoredDeadLetter): string | null => deadLetter?.delivery?.id ?? null

/** Where the chosen ones lie, with others between them. */
export async function deadLetterSpans(
  { deadLetters, since, ends }: Pick<DeadLetterReplay, 'deadLetters' | 'since' | 'ends'>,
  source: ReplaySource,
  topic: string,
): Promise<PartitionSpan[]> {
  const held = await source.spans(topic, since === null ? undefined : Math.max(0, since - clockSkewMs))
  return held.map(({ partition, low, high }) => {
    const end = Math.min(high, ends.find((each) => each.partition === partition)?.offset ?? low)
    const named = deadLetters.ids?.flatMap((id) => {
      const place = deadLetterPlace(id)!
      return place.partition === partition ? [place.offset] : []
    })
    if (!named) return { partition, low, high: Math.max(low, end) }
    return {
      partition,
      low: Math.max(low, Math.min(end, ...named)),
      high: Math.min(end, Math.max(-1, ...named) + 1),
    }
  })
}
