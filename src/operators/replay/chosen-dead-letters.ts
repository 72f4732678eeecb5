import { deadLetterPlace, type StoredDeadLetter, type StoredRecord } from '../dead-letters/dead-letters.ts'
import { deadLetterFilter, destinationsMeant } from '../../core/delivery/dead-letter-filter.ts'
import { planReplay } from '../../core/delivery/replay.ts'
import type { ErasableCall } from '../../core/erasure/erasures.ts'
import { DeliveryIdSet } from '../../core/replay/offset-set.ts'
import type { DeadLetterReplay, SentKind } from '../../core/replay/replay-job.ts'
import { replayOwner } from '../../core/replay/replayed-delivery.ts'
import { replayTier } from '../../core/topics.ts'
import { RecordTaker } from './call-run.ts'
import { headersOf, traceOf, type ReplayOutbox } from './outbox.ts'
import type { PartitionSpan, ReplayedRecord, ReplayRig, ReplaySource } from './rig.ts'

/** Brokers' clocks, which stamp records, and forwarders', which say when a delivery failed, may differ by this. */
const clockSkewMs = 600_000
/** Of deliveries that are sent; further failures of those beyond are sent as well. 160 MB. */
const maxDeliveries = 10_000_000

interface SentDeadLetter {
  is: 'sent'
  deliveryId: string | null
  kind: SentKind
  record: ReplayedRecord
  to: string
  /** Whether a deletion request covers it by now. Forwarders ask of deliveries; a record that goes back as it was is new to them. */
  isErased(): boolean
}

/** What is to become of a dead letter that is chosen. */
export type DeadLetterVerdict =
  SentDeadLetter | { is: 'refused'; deliveryId: string | null; why: string } | { is: 'erased' | 'repeated' }

/** The dead letters that a replay takes, and what is to become of each. They are met in order within a partition. */
export class ChosenDeadLetters {
  readonly #job: DeadLetterReplay
  readonly #rig: ReplayRig
  readonly #passes: ReturnType<typeof deadLetterFilter>
  readonly #ids: ReadonlySet<string> | null
  /** There may be millions of other destinations, and each that is read takes ten times as long. */
  readonly #mayBeChosen: (value: Uint8Array | null) => boolean
  /** Ids of deliveries: of one that failed several times the first is sent that can be. */
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
    const meant = destinationsMeant(deadLetters)
    this.#mayBeChosen = meant === null ? () => true : rig.source.mayName(meant)
    this.#met = new DeliveryIdSet(rig.random(), maxDeliveries)
    this.#erasures = erasures
    this.#topics = topics
  }

  static async open(job: DeadLetterReplay, rig: ReplayRig, signal: AbortSignal): Promise<ChosenDeadLetters> {
    return new ChosenDeadLetters(job, rig, await rig.erasures(signal), await rig.source.topics())
  }

  /** Notes what an earlier process decided on. */
  async recall(record: StoredRecord): Promise<void> {
    await this.verdict(record)
  }

  /** Null: it is not chosen. */
  async verdict(record: StoredRecord): Promise<DeadLetterVerdict | null> {
    const stored = await this.#chosen(record)
    if (stored === null) return null
    if (this.#erasures.covers(stored.owner)) return { is: 'erased' }
    const id = deliveryIdOf(stored)
    if (id !== null && this.#met.has(id)) return { is: 'repeated' }
    const planned = this.#plan(stored)
    // Where this one cannot be sent, a later failure of the delivery may be.
    if (id !== null && planned.is === 'sent') this.#met.add(id)
    return planned
  }

  async #chosen(record: StoredRecord): Promise<StoredDeadLetter | null> {
    if (this.#ids?.has(`${record.partition}-${record.offset}`) === false) return null
    if (!this.#mayBeChosen(record.value)) return null
    const stored = await this.#rig.source.storedDeadLetter(record)
    return this.#passes(stored) ? stored : null
  }

  /** On the settings as they are now. */
  #plan(stored: StoredDeadLetter): DeadLetterVerdict {
    const { deadLetter, problem, record, owner } = stored
    const deliveryId = deliveryIdOf(stored)
    const isErased = () => this.#erasures.covers(owner)
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
    if (planned.kind !== 'raw') {
      const { key } = record
      const headers = headersOf(record, deadLetter.origin)
      const sent: ReplayedRecord =
        planned.kind === 'run'
          ? { key, headers, run: planned.record }
          : { key, headers, delivery: planned.record }
      return {
        is: 'sent',
        deliveryId,
        kind: 'failed',
        record: sent,
        to: topics.retry(replayTier.name),
        isErased,
      }
    }
    const { topic, key, value } = planned
    // A tier's topic can be deleted once it is in no settings any more.
    if (!this.#topics.has(topic)) return refused(`its topic, ${topic}, does not exist any more`)
    const sent = { key, topic, value, headers: traceOf(record) }
    return { is: 'sent', deliveryId, kind: 'raw', record: sent, to: topic, isErased }
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

/** Reasons that are logged, of those for which dead letters cannot be replayed. */
const maxReasons = 20

/** Sends dead letters: those that were there when the replay was made, and none that come of it. */
export class DeadLetterRun {
  readonly #job: DeadLetterReplay
  readonly #rig: ReplayRig
  readonly #outbox: ReplayOutbox
  readonly #signal: AbortSignal
  readonly #refused = new Map<string, number>()

  constructor(job: DeadLetterReplay, rig: ReplayRig, outbox: ReplayOutbox, signal: AbortSignal) {
    this.#job = job
    this.#rig = rig
    this.#outbox = outbox
    this.#signal = signal
  }

  async run(): Promise<void> {
    try {
      await this.#send()
    } finally {
      this.#logRefused()
    }
  }

  async #send(): Promise<void> {
    const { source, topics } = this.#rig
    await this.#outbox.turn()
    const chosen = await ChosenDeadLetters.open(this.#job, this.#rig, this.#signal)
    const spans = await deadLetterSpans(this.#job, source, topics.deadLetters)
    await this.#recall(chosen, spans)
    const taker = new RecordTaker(source, this.#outbox, this.#signal)
    await taker.take(topics.deadLetters, spans, null, (record) => this.#take(chosen, record))
    await this.#outbox.flush()
    await this.#outbox.commit()
  }

  /** What an earlier process has noted is not sent again by a later failure of the same delivery. */
  async #recall(chosen: ChosenDeadLetters, spans: readonly PartitionSpan[]): Promise<void> {
    const topic = this.#rig.topics.deadLetters
    const done = spans.map((span) => {
      const position = this.#outbox.positionOf({ topic, partition: span.partition }) ?? 0
      return { ...span, high: Math.min(span.high, position) }
    })
    for await (const record of this.#rig.source.read(topic, done, this.#signal)) await chosen.recall(record)
    this.#signal.throwIfAborted()
  }

  async #take(chosen: ChosenDeadLetters, record: StoredRecord): Promise<void> {
    const verdict = await chosen.verdict(record)
    if (verdict === null) return
    const { partition, offset } = record
    const place = { topic: this.#rig.topics.deadLetters, partition, offset }
    if (verdict.is === 'sent')
      return this.#outbox.add(place, verdict.kind, verdict.record, () => verdict.isErased())
    if (verdict.is === 'refused') this.#refused.set(verdict.why, (this.#refused.get(verdict.why) ?? 0) + 1)
    this.#outbox.note(place, verdict.is)
  }

  #logRefused(): void {
    if (this.#refused.size === 0) return
    const reasons = [...this.#refused].sort(([, a], [, b]) => b - a).slice(0, maxReasons)
    this.#rig.log.info(
      { replay: this.#job.id, refused: Object.fromEntries(reasons) },
      'dead letters cannot be replayed; a dry run names them',
    )
  }
}
