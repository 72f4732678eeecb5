import type { DeadLetterReplay } from '../../core/replay/replay-job.ts'
import type { StoredRecord } from '../dead-letters/dead-letter-store.ts'
import { ChosenDeadLetters, deadLetterSpans } from './chosen-dead-letters.ts'
import type { ReplayOutbox } from './replay-outbox.ts'
import type { PartitionSpan, ReplayRig } from './replay-source.ts'
import { RecordTaker } from './take-records.ts'

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
    if (verdict.is === 'sent') return this.#outbox.add(place, verdict.kind, verdict.record)
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
