import type { StoredRecord } from '../dead-letters/dead-letters.ts'
import { usersOf } from '../../core/call/analytics-call.ts'
import { deliveryIdIn, isRun, type DeferredRun } from '../../core/delivery/deferred-run.ts'
import { urlIdOf } from '../../core/delivery/delivery.ts'
import { erasableDelivery } from '../../core/erasure/erasable.ts'
import type { ErasableCall } from '../../core/erasure/erasures.ts'
import type { CallReplay, ReplayKind } from '../../core/replay/replay-job.ts'
import { heldRetryAgain, replayedCall } from '../../core/replay/replayed-delivery.ts'
import type { Destination } from '../../core/settings/settings.ts'
import { shapeOf, type Shape } from '../../core/shape/shape.ts'
import { Unrenderable } from '../../core/shape/text-template.ts'
import { tierOfTopic } from '../../core/topics.ts'
import { pause } from '../../retry-forever.ts'
import { sha256 } from '../../sha256.ts'
import { chosenOf, isRetryWanted, spansBetween, wantedOfRun, type LocatedCall } from './chosen-calls.ts'
import type { FactsReader } from './ledger.ts'
import { headersOf, type ReplayOutbox } from './outbox.ts'
import { type PartitionSpan, type ReplayRig, keyOfPlace, type ReplaySource } from './rig.ts'

const lookAgainMs = 1_000

type RunPlace = LocatedCall['place']

/**
 * Sends calls. In each round it takes what the forwarders have finished by then, which the ledger says everything about;
 * so what it makes of a record does not depend on when it looks.
 */
export class CallRun {
  readonly #job: CallReplay
  readonly #rig: ReplayRig
  readonly #signal: AbortSignal
  readonly #reader: FactsReader
  readonly #outbox: ReplayOutbox
  readonly #taker: RecordTaker
  #erasures: { covers(call: ErasableCall): boolean } = { covers: () => false }
  #shapes: { of: Destination | null; byUrl: Map<string | null, Shape> } = { of: null, byUrl: new Map() }

  constructor(
    job: CallReplay,
    rig: ReplayRig,
    outbox: ReplayOutbox,
    reader: FactsReader,
    signal: AbortSignal,
  ) {
    this.#job = job
    this.#rig = rig
    this.#signal = signal
    this.#reader = reader
    this.#outbox = outbox
    this.#taker = new RecordTaker(rig.source, outbox, signal)
  }

  async run(): Promise<void> {
    const { settings, source, topics } = this.#rig
    const { version } = settings.state
    const job = this.#job
    const wanted =
      job.pauseId === null ? await spansBetween(source, topics.calls, job.since, job.until) : null
    // So that its forwarders are known: before the first look none is, and none would be waited for.
    await this.#reader.readOn(this.#signal)
    for (;;) {
      await this.#outbox.turn()
      const knew = job.pauseId === null || this.#reader.forwarders.allKnow(version, this.#rig.now())
      // In this order: the ledger holds everything about what was committed before it is read.
      const committed = await source.committed()
      await this.#reader.readOn(this.#signal)
      this.#erasures = await this.#rig.erasures(this.#signal)
      const isThrough = [
        await this.#takeHeldRetries(committed),
        await this.#takeCalls(wanted ?? (await this.#heldCalls()), committed),
      ]
      await this.#outbox.flush()
      await this.#outbox.commit()
      if (isThrough.every(Boolean) && knew) break
      await pause(lookAgainMs, this.#signal)
    }
  }

  /** Of a pause's replay: whatever it held, whenever that was appended. */
  async #heldCalls(): Promise<PartitionSpan[]> {
    const { source, topics } = this.#rig
    const spans = await source.spans(topics.calls)
    return spans.map(({ partition }) => {
      const held = this.#reader.facts.heldIn(topics.calls, partition)
      return held ? { partition, low: held.first, high: held.end } : { partition, low: 0, high: 0 }
    })
  }

  /** Retries that came due while their destination was paused. They are older than the calls that were held. */
  async #takeHeldRetries(committed: ReadonlyMap<string, number>): Promise<boolean> {
    const { topics, source } = this.#rig
    if (!this.#job.only.includes('held')) return true
    let isThrough = true
    for (const topic of this.#reader.facts.heldTopics()) {
      if (topic === topics.calls) continue
      const spans = (await source.spans(topic)).flatMap(({ partition }) => {
        const held = this.#reader.facts.heldIn(topic, partition)
        return held ? [{ partition, low: held.first, high: held.end }] : []
      })
      const take = (record: StoredRecord) => this.#takeHeldRetry(topic, record)
      isThrough = (await this.#taker.take(topic, spans, committed, take)) && isThrough
    }
    return isThrough
  }

  async #takeHeldRetry(topic: string, record: StoredRecord): Promise<void> {
    const place = { topic, partition: record.partition, offset: record.offset }
    if (!this.#reader.facts.heldIn(topic, record.partition)?.has(record.offset)) return
    const retry = await this.#rig.source.retry(record.value)
    const job = this.#job
    if (retry !== null && isRun(retry)) return this.#takeHeldRun(place, retry)
    if (retry === null || !isRetryWanted(retry, job)) return
    const key = record.key && Buffer.from(record.key).toString('utf8')
    if (this.#erasures.covers(erasableDelivery(retry, key, retry.scheduledAt)))
      return this.#outbox.note(place, 'erased')
    const dueAt = retry.scheduledAt + tierOfTopic(this.#rig.topics, topic)!.delayMs
    const delivery = heldRetryAgain(retry, { job, now: this.#rig.now(), dueAt })
    this.#outbox.add(place, 'held', {
      key: record.key,
      delivery,
      headers: headersOf(record, retry.origin),
    })
  }

  async #takeHeldRun(place: RunPlace, run: DeferredRun): Promise<void> {
    const destination = this.#destination()
    if (destination === null) return
    for await (const { record, ...located } of wantedOfRun(run, this.#job, this.#rig.source, this.#signal)) {
      const deliveryId = deliveryIdIn(run, located.call.messageId)
      this.#send(place, record, located, destination, [{ deliveryId, kind: 'held' }])
    }
  }

  /** False: the forwarders have not finished all of it yet. */
  #takeCalls(spans: readonly PartitionSpan[], committed: ReadonlyMap<string, number>): Promise<boolean> {
    const { calls } = this.#rig.topics
    return this.#taker.take(calls, spans, committed, (record) => this.#takeCall(record))
  }

  async #takeCall(record: StoredRecord): Promise<void> {
    const { topics, source } = this.#rig
    const { partition, offset, timestamp } = record
    const place = { topic: topics.calls, partition, offset }
    if (this.#job.pauseId !== null && !this.#reader.facts.heldIn(topics.calls, partition)?.has(offset)) return
    const call = await source.call(record.value)
    const destination = this.#destination()
    if (call === null || destination === null) return
    const { state } = this.#rig.settings
    const chosen = chosenOf(
      { call, place, appendedAt: timestamp },
      this.#job,
      destination,
      state,
      this.#reader.facts,
    )
    if (chosen.length === 0) return
    const deliveries = chosen.map(({ line, kind }) => ({ deliveryId: line.deliveryId!, kind }))
    this.#send(place, record, { call, place, appendedAt: timestamp }, destination, deliveries)
  }

  /** @param place of the record that was looked at */
  #send(
    place: RunPlace,
    record: StoredRecord,
    { call, place: at, appendedAt }: LocatedCall,
    destination: Destination,
    deliveries: readonly { deliveryId: string; kind: ReplayKind }[],
  ): void {
    const { sourceId, type } = call
    if (this.#erasures.covers({ sourceId, type, userIds: usersOf(call), appendedAt }))
      return this.#outbox.note(place, 'erased', deliveries.length)
    const origin = { ...at, appendedAt }
    const headers = headersOf(record, origin)
    const terms = { job: this.#job, destination, now: this.#rig.now() }
    for (const { deliveryId, kind } of deliveries) {
      const urlId = urlIdOf({ id: deliveryId, messageId: call.messageId, destinationId: destination.id })
      try {
        const { body, filled } = this.#shapeOf(destination, urlId).render(call, deliveryId)
        const made = { body: Buffer.from(body), filled }
        const delivery = replayedCall(call, made, origin, deliveryId, kind, terms)
        this.#outbox.add(place, kind, { key: record.key, delivery, headers })
      } catch (error) {
        if (!(error instanceof Unrenderable)) throw error
        this.#outbox.note(place, 'refused')
      }
    }
  }

  /** Made once for each state of the destination. */
  #shapeOf(destination: Destination, urlId: string | null): Shape {
    if (this.#shapes.of !== destination) this.#shapes = { of: destination, byUrl: new Map() }
    const { byUrl } = this.#shapes
    let shape = byUrl.get(urlId)
    if (!shape) byUrl.set(urlId, (shape = shapeOf(destination, sha256, urlId)))
    return shape
  }

  #destination(): Destination | null {
    return this.#rig.settings.state.destinations.get(this.#job.destinationId) ?? null
  }
}

/** Records between two looks at whether it is to go on, where none of them is sent. */
const lookEvery = 2_000

/** Reads what a replay has to look at, from where it was, and notes each record once it was looked at. */
export class RecordTaker {
  readonly #source: ReplaySource
  readonly #outbox: ReplayOutbox
  readonly #signal: AbortSignal
  #sinceLook = 0

  constructor(source: ReplaySource, outbox: ReplayOutbox, signal: AbortSignal) {
    this.#source = source
    this.#outbox = outbox
    this.#signal = signal
  }

  /**
   * What is sent of a record is added to the outbox by `look`.
   *
   * @param committed by `topic/partition`: what lies behind is left for later. Null: nothing is.
   * @returns false where something was left
   */
  async take(
    topic: string,
    spans: readonly PartitionSpan[],
    committed: ReadonlyMap<string, number> | null,
    look: (record: StoredRecord) => Promise<void>,
  ): Promise<boolean> {
    const endOf = ({ partition, high }: PartitionSpan) =>
      committed === null ? high : Math.min(high, committed.get(keyOfPlace({ topic, partition })) ?? 0)
    const now = await this.#left(topic, spans, endOf)
    const gone: PartitionSpan[] = []
    for await (const record of this.#source.read(topic, now, this.#signal, (each) => gone.push(each))) {
      this.#noteGone(topic, gone, ({ partition, high }) =>
        partition === record.partition ? Math.min(high, record.offset) : 0,
      )
      await look(record)
      this.#outbox.note({ topic, partition: record.partition, offset: record.offset }, 'looked')
      if (!this.#outbox.isFull && ++this.#sinceLook < lookEvery) continue
      this.#sinceLook = 0
      await this.#outbox.flush()
    }
    this.#signal.throwIfAborted()
    this.#noteGone(topic, gone, ({ partition, high }) =>
      Math.min(high, now.find((each) => each.partition === partition)!.high),
    )
    for (const { partition, low, high } of now)
      if (low < high) this.#outbox.reached({ topic, partition }, high)
    return spans.every((span) => span.low >= span.high || endOf(span) >= span.high)
  }

  /**
   * What lies behind the records that are still to be looked at waits for its turn.
   *
   * @param endOf up to where it is to be noted now
   */
  #noteGone(topic: string, gone: PartitionSpan[], endOf: (span: PartitionSpan) => number): void {
    for (const span of gone.splice(0)) {
      const { partition, low } = span
      const end = endOf(span)
      if (end > low) this.#outbox.note({ topic, partition, offset: end - 1 }, 'lost', end - low)
      else gone.push(span)
    }
  }

  async #left(
    topic: string,
    spans: readonly PartitionSpan[],
    endOf: (span: PartitionSpan) => number,
  ): Promise<PartitionSpan[]> {
    const held = new Map((await this.#source.spans(topic)).map((span) => [span.partition, span]))
    return spans.map((span) => {
      const { partition, low, high } = span
      const place = { topic, partition }
      // A process that goes on finds a range that begins later, where retention took what was not looked at.
      const position = this.#outbox.positionOf(place) ?? 0
      const next = position > 0 ? position : low
      const kept = Math.max(next, held.get(partition)?.low ?? 0)
      // Retention was faster than the replay.
      if (kept > next && next < high && low < high)
        this.#outbox.note({ ...place, offset: Math.min(kept, high) - 1 }, 'lost', Math.min(kept, high) - next)
      return { partition, low: Math.max(kept, low), high: endOf(span) }
    })
  }
}
