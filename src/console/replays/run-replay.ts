import { renderBody } from '../../core/call/body.ts'
import { redacted, redactionOf } from '../../core/call/redaction.ts'
import { usersOf } from '../../core/call/analytics-call.ts'
import { erasableDelivery } from '../../core/erasure/erasable.ts'
import type { ErasableCall } from '../../core/erasure/erasures.ts'
import { heldRetryAgain, replayedCall } from '../../core/replay/replayed-delivery.ts'
import type { ReplayJob } from '../../core/replay/replay-job.ts'
import type { Destination } from '../../core/settings/settings.ts'
import { tierOfTopic } from '../../core/topics.ts'
import { pause } from '../../retry-forever.ts'
import type { StoredRecord } from '../dead-letters/dead-letter-store.ts'
import { chosenOf, isRetryWanted, spansBetween, waitsFor } from './chosen-calls.ts'
import { FactsReader } from './facts-reader.ts'
import { ReplayOutbox } from './replay-outbox.ts'
import { keyOfPlace, type PartitionSpan, type ReplayLease, type ReplayRig } from './replay-source.ts'

const lookAgainMs = 1_000
/** Records between two looks at whether it is to go on, where none of them is sent. */
const lookEvery = 2_000

/** It was paused, cancelled or finished elsewhere: nothing is wrong. */
export class ReplayEnded extends Error {}

/**
 * Runs a replay to its end, from where the last process stopped. In each round it takes what the forwarders have
 * finished by then, which the ledger says everything about; so what it makes of a record does not depend on when it
 * looks. Throws ReplayEnded, `conflict` when the lease was lost, and what the rig rejects with.
 */
export async function runReplay(
  job: ReplayJob,
  rig: ReplayRig,
  lease: ReplayLease,
  signal: AbortSignal,
): Promise<void> {
  const topic = await rig.openTopic()
  // A write that waits for brokers ends with it.
  const close = () => topic.close()
  signal.addEventListener('abort', close, { once: true })
  try {
    await new ReplayRun(job, rig, lease, topic, await rig.progress(job.id), signal).run()
  } finally {
    signal.removeEventListener('abort', close)
    close()
  }
}

class ReplayRun {
  readonly #job: ReplayJob
  readonly #rig: ReplayRig
  readonly #lease: ReplayLease
  readonly #signal: AbortSignal
  readonly #reader: FactsReader
  readonly #outbox: ReplayOutbox
  #erasures: { covers(call: ErasableCall): boolean } = { covers: () => false }
  #sinceLook = 0

  constructor(
    job: ReplayJob,
    rig: ReplayRig,
    lease: ReplayLease,
    topic: Awaited<ReturnType<ReplayRig['openTopic']>>,
    before: Awaited<ReturnType<ReplayRig['progress']>>,
    signal: AbortSignal,
  ) {
    this.#job = job
    this.#rig = rig
    this.#lease = lease
    this.#signal = signal
    this.#reader = new FactsReader(job, rig)
    this.#outbox = new ReplayOutbox({ job, topic, lease, before, signal, turn: () => this.#turn() })
  }

  async run(): Promise<void> {
    try {
      await this.#run()
    } catch (error) {
      // Left in good order, it repeats nothing of what was acknowledged when it goes on.
      if (error instanceof ReplayEnded || this.#signal.aborted) await this.#outbox.commit().catch(() => {})
      throw error
    }
  }

  async #run(): Promise<void> {
    const { settings, source, topics } = this.#rig
    await settings.catchUp(this.#signal)
    const { version } = settings.state
    const job = this.#job
    const wanted =
      job.pauseId === null ? await spansBetween(source, topics.calls, job.since, job.until) : null
    // So that its forwarders are known: before the first look none is, and none would be waited for.
    await this.#reader.readOn(this.#signal)
    for (;;) {
      await this.#turn()
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
    await settings.perform({
      type: 'finish_replay',
      id: job.id,
      at: this.#rig.now(),
      totals: this.#outbox.totals,
    })
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
      isThrough = (await this.#take(topic, spans, committed, take)) && isThrough
    }
    return isThrough
  }

  async #takeHeldRetry(topic: string, record: StoredRecord): Promise<void> {
    const place = { topic, partition: record.partition, offset: record.offset }
    if (!this.#reader.facts.heldIn(topic, record.partition)?.has(record.offset)) return
    const retry = await this.#rig.source.retry(record.value)
    const job = this.#job
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

  #takeCalls(spans: readonly PartitionSpan[], committed: ReadonlyMap<string, number>): Promise<boolean> {
    const { calls } = this.#rig.topics
    return this.#take(calls, spans, committed, (record) => this.#takeCall(record))
  }

  /** False: the forwarders have not finished all of it yet. */
  async #take(
    topic: string,
    spans: readonly PartitionSpan[],
    committed: ReadonlyMap<string, number>,
    take: (record: StoredRecord) => Promise<void>,
  ): Promise<boolean> {
    const held = new Map((await this.#rig.source.spans(topic)).map((span) => [span.partition, span]))
    const now = spans.map(({ partition, low, high }) => {
      const place = { topic, partition }
      const next = Math.max(this.#outbox.positionOf(place) ?? 0, low)
      const kept = Math.max(next, held.get(partition)?.low ?? 0)
      // Retention was faster than the replay.
      if (kept > next && next < high)
        this.#outbox.note({ ...place, offset: Math.min(kept, high) - 1 }, 'lost', Math.min(kept, high) - next)
      return { partition, low: kept, high: Math.min(high, committed.get(keyOfPlace(place)) ?? 0) }
    })
    for await (const record of this.#rig.source.read(topic, now, this.#signal)) {
      await take(record)
      this.#outbox.note({ topic, partition: record.partition, offset: record.offset }, 'looked')
      if (!this.#outbox.isFull && ++this.#sinceLook < lookEvery) continue
      this.#sinceLook = 0
      await this.#outbox.flush()
    }
    this.#signal.throwIfAborted()
    for (const { partition, low, high } of now)
      if (low < high) this.#outbox.reached({ topic, partition }, high)
    return spans.every(({ partition, low, high }) => {
      if (low >= high) return true
      return (committed.get(keyOfPlace({ topic, partition })) ?? 0) >= high
    })
  }

  async #takeCall(record: StoredRecord): Promise<void> {
    const { topics, source, now } = this.#rig
    const { partition, offset, timestamp, key } = record
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
    const { sourceId, type } = call
    if (this.#erasures.covers({ sourceId, type, userIds: usersOf(call), appendedAt: timestamp }))
      return this.#outbox.note(place, 'erased')
    const origin = { ...place, appendedAt: timestamp }
    const redaction = redactionOf(destination.options.drop)
    const body = Buffer.from(renderBody(redaction ? redacted(call, redaction) : call))
    const headers = headersOf(record, origin)
    for (const { line, kind } of chosen) {
      const delivery = replayedCall(call, body, origin, line, kind, {
        job: this.#job,
        destination,
        now: now(),
      })
      this.#outbox.add(place, kind, { key, delivery, headers })
    }
  }

  #destination(): Destination | null {
    return this.#rig.settings.state.destinations.get(this.#job.destinationId) ?? null
  }

  /** While its destination is disabled or paused it waits: forwarders would skip or hold what it sends. */
  async #turn(): Promise<void> {
    for (;;) {
      this.#signal.throwIfAborted()
      this.#lease.check()
      if (this.#rig.settings.state.replays.get(this.#job.id)?.state !== 'running') {
        throw new ReplayEnded()
      }
      if (waitsFor(this.#destination()) === null) return
      await pause(lookAgainMs, this.#signal)
    }
  }
}

/** As forwarders write them: where the call came from, and the trace it belongs to. */
function headersOf(
  { headers: { traceparent } }: StoredRecord,
  { topic, partition, offset }: { topic: string; partition: number; offset: number },
): Record<string, string> {
  const own = { 'postrider-origin': `${topic}/${partition}/${offset}` }
  if (traceparent === undefined || Array.isArray(traceparent)) return own
  return {
    ...own,
    traceparent: typeof traceparent === 'string' ? traceparent : Buffer.from(traceparent).toString(),
  }
}
