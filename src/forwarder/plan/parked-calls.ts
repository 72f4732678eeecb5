import type { DeadLetterReason, Delivery, Origin, RetryDelivery } from '../../core/delivery/delivery.ts'
import { lineOf } from '../../core/ordering/blocked-lines.ts'
import { ParkedLines, type Parked } from '../../core/ordering/parked-lines.ts'
import { releasedAt, type ReleaseReason, type StrictTerms } from '../../core/ordering/strict-terms.ts'
import { maxParked, maxParkedBytes, maxParkedSpan } from '../../core/pacing/limits.ts'
import { IntrusiveQueue } from '../../core/intrusive-queue.ts'
import type {
  AssignedPartition,
  Block,
  ParkedWork,
  RecordProgress,
  Work,
} from '../consume/assigned-partition.ts'

export interface ParkedCallsParts {
  /** Begins a round of the call, or ends it; otherwise what it waits for. Throws what makes it a dead letter. */
  begin(call: ParkedCall): Block | null
  refusalOf(error: unknown): { reason: DeadLetterReason; detail: string }
  giveUp(work: Work, key: string | null, delivery: Delivery, reason: DeadLetterReason, detail: string): void
  release(work: Work, key: string | null, delivery: RetryDelivery, at: number, reason: ReleaseReason): void
  termsOf(destinationId: string): StrictTerms
  /** How long the destination's retries wait at least, in ms. */
  firstDelayMs(destinationId: string): number
}

/** How soon a call is begun again that found no room, in ms. */
const againMs = 50
/** Calls begun in one turn of the event loop for a destination. */
const begunAtOnce = 64
/** Let go at once where there are too many. */
const letGoAtOnce = 128
/** Timers take no more, in ms. */
const longestTimerMs = 2 ** 31 - 1

/** `waiting`: behind another, or until it is due; `ready`: to be begun; `busy`: in a round, or being published. */
type CallState = 'waiting' | 'ready' | 'busy'

/** A parked call, from the reading of its record until it has ended. */
export class ParkedCall implements Work, ParkedWork, Parked<ParkedCall> {
  readonly line: string
  readonly key: string | null
  readonly isOfRun = false
  /** As it is after its last round. */
  delivery: RetryDelivery
  /** Epoch ms. */
  dueAt: number
  state: CallState = 'waiting'
  timer: NodeJS.Timeout | null = null
  isQueued = false
  next: ParkedCall | null = null
  /** It is let go when its round is over. */
  #released: ReleaseReason | null = null
  readonly #record: RecordProgress
  readonly #calls: ParkedCalls

  constructor(record: RecordProgress, delivery: RetryDelivery, key: string | null, calls: ParkedCalls) {
    this.#record = record
    this.#calls = calls
    this.delivery = delivery
    this.key = key
    // Without a key it has nobody to wait for.
    this.line = lineOf(delivery.destinationId, key ?? `at ${record.offset}`)
    // It may have been tried since its record was written: it is not late before it was read.
    this.dueAt = Math.max(Date.now(), delivery.notBefore ?? 0)
  }

  get destinationId(): string {
    return this.delivery.destinationId
  }

  get parked(): ParkedWork {
    return this
  }

  get partition(): AssignedPartition {
    return this.#record.partition
  }

  get offset(): number {
    return this.#record.offset
  }

  get traceparent(): string | null {
    return this.#record.traceparent
  }

  get appendedAt(): number | null {
    return this.#record.appendedAt
  }

  get place(): Origin {
    return this.#record.place
  }

  get owner(): string {
    return this.#record.owner
  }

  attemptEnded(result: number): void {
    this.#record.attemptEnded(result)
  }

  finishOne(result: number): void {
    this.#record.finishOne(result)
    this.#calls.ended(this)
  }

  again(delivery: Delivery, at: number): ReleaseReason | null {
    const released = this.#released ?? this.#calls.releaseOf(this, at)
    if (released !== null) return released
    this.delivery = { ...this.delivery, ...delivery }
    this.#calls.waits(this, at)
    return null
  }

  /** Lets it go when its round is over. */
  releaseLater(reason: ReleaseReason): void {
    this.#released ??= reason
  }
}

/**
 * Where parked calls are sent: the records of the strict topic. Of each user only the first one is tried, in memory from
 * round to round, and its record is finished when it has ended; the others wait behind it. It is not published again in
 * between: behind the others it would lose its place, and whoever waits for what lies parked would not know of it.
 */
export class ParkedCalls {
  readonly #parts: ParkedCallsParts
  readonly #partitions = new Map<AssignedPartition, { lines: ParkedLines<ParkedCall>; bytes: number }>()
  /** By destination, what is to be begun. */
  readonly #ready = new Map<string, IntrusiveQueue<ParkedCall>>()
  /** Destinations at which calls are begun now, or will be in a moment. */
  readonly #beginning = new Set<string>()
  /** Of bodies. */
  #bytes = 0

  constructor(parts: ParkedCallsParts) {
    this.#parts = parts
  }

  /** Whether there is no room for another call of the partition; then some are let go. */
  isFull(partition: AssignedPartition): boolean {
    if (this.#bytes >= maxParkedBytes) {
      const all = [...this.#partitions.values()].sort((one, other) => other.bytes - one.bytes)
      this.#letGo(all[0]!.lines, -Infinity)
      return true
    }
    const lines = this.#linesOf(partition)
    if (!lines) return false
    const newest = partition.tracker.lastAdded
    const oldest = partition.tracker.position ?? newest
    const isTooLong = newest - oldest > maxParkedSpan
    if (lines.count < maxParked && !isTooLong) return false
    this.#letGo(lines, isTooLong ? newest - maxParkedSpan * 0.9 : -Infinity)
    return true
  }

  #letGo(lines: ParkedLines<ParkedCall>, before: number): void {
    for (const call of lines.crowding(letGoAtOnce, before)) this.#release(call, 'order_room')
  }

  /** Takes a record of the topic. */
  take(record: RecordProgress, delivery: RetryDelivery, key: string | null): void {
    const { partition } = record
    let state = this.#partitions.get(partition)
    if (!state) this.#partitions.set(partition, (state = { lines: new ParkedLines(), bytes: 0 }))
    const call = new ParkedCall(record, delivery, key, this)
    state.bytes += delivery.body.length
    this.#bytes += delivery.body.length
    const { lines } = state
    const head = lines.add(call)
    if (head === call) this.#waitAfterOthers(call)
    if (lines.waiting(head) > this.#parts.termsOf(call.destinationId).limit)
      this.#release(head, 'order_limit')
    // With the first one behind it, it is not waited for without end any more.
    else if (head === call || lines.waiting(head) === 1) this.#schedule(head)
  }

  /** The first one of its line. Another owner may have tried it a moment ago, and what that came to is in no record. */
  #waitAfterOthers(call: ParkedCall): void {
    const { assignedAt } = call.partition
    const { scheduledAt, notBefore } = call.delivery
    if (Math.max(scheduledAt, notBefore ?? 0) >= assignedAt) return
    call.dueAt = Math.max(call.dueAt, assignedAt + this.#parts.firstDelayMs(call.destinationId))
  }

  /** Why the call is let go rather than begin its next round at `at`. */
  releaseOf(call: ParkedCall, at: number): ReleaseReason | null {
    if (this.#waiting(call) === 0) return null
    const now = Date.now()
    return at >= releasedAt(call.delivery, this.#parts.termsOf(call.destinationId), now) ? 'order_wait' : null
  }

  waits(call: ParkedCall, at: number): void {
    call.dueAt = at
    call.state = 'waiting'
    this.#schedule(call)
  }

  ended(call: ParkedCall): void {
    const state = this.#partitions.get(call.partition)
    if (!state) return
    state.bytes -= call.delivery.body.length
    this.#bytes -= call.delivery.body.length
    const next = state.lines.ended(call)
    if (!next) return
    // Since then it is late.
    next.dueAt = Math.max(next.dueAt, Date.now())
    this.#schedule(next)
  }

  dropLost(): void {
    for (const [partition, { lines, bytes }] of this.#partitions) {
      if (partition.alive) continue
      this.#partitions.delete(partition)
      for (const head of lines.heads()) {
        if (head.timer) clearTimeout(head.timer)
        head.timer = null
      }
      this.#bytes -= bytes
    }
  }

  #linesOf(partition: AssignedPartition): ParkedLines<ParkedCall> | undefined {
    return this.#partitions.get(partition)?.lines
  }

  /** How many wait behind it. */
  #waiting(call: ParkedCall): number {
    return this.#linesOf(call.partition)?.waiting(call) ?? 0
  }

  /** The first of its line, which is in no round. */
  #schedule(call: ParkedCall): void {
    if (call.state !== 'waiting') return
    if (call.timer) clearTimeout(call.timer)
    call.timer = null
    const now = Date.now()
    const end =
      this.#waiting(call) > 0
        ? releasedAt(call.delivery, this.#parts.termsOf(call.destinationId), now)
        : Infinity
    const ms = Math.min(call.dueAt, end) - now
    if (ms > 0) call.timer = setTimeout(() => this.#due(call), Math.min(ms, longestTimerMs))
    else this.#due(call)
  }

  /** Its time has come, or nobody waits for it any longer. */
  #due(call: ParkedCall): void {
    call.timer = null
    if (!call.partition.alive || call.state !== 'waiting') return
    const now = Date.now()
    if (now < call.dueAt) {
      // The clock may have been set back.
      if (this.releaseOf(call, now) === null) this.#schedule(call)
      else this.#release(call, 'order_wait')
      return
    }
    call.state = 'ready'
    let queue = this.#ready.get(call.destinationId)
    if (!queue) this.#ready.set(call.destinationId, (queue = new IntrusiveQueue()))
    queue.push(call)
    this.#beginSoon(call.destinationId, 0)
  }

  #beginSoon(destinationId: string, ms: number): void {
    if (this.#beginning.has(destinationId)) return
    this.#beginning.add(destinationId)
    const begin = () => {
      this.#beginning.delete(destinationId)
      this.#begin(destinationId)
    }
    if (ms > 0) setTimeout(begin, ms).unref()
    else setImmediate(begin)
  }

  #begin(destinationId: string): void {
    const queue = this.#ready.get(destinationId)
    // Those that one ended made ready were begun with it.
    if (!queue) return
    for (let left = begunAtOnce; left > 0; left--) {
      const call = queue.shift()
      if (!call) break
      if (!call.partition.alive || call.state !== 'ready') continue
      const block = this.#tryTo(call)
      if (!block) continue
      queue.unshift(call)
      if (block.kind === 'pending') {
        this.#beginning.add(destinationId)
        const again = () => {
          this.#beginning.delete(destinationId)
          this.#beginSoon(destinationId, 0)
        }
        block.settled.then(again, again)
      } else this.#beginSoon(destinationId, againMs)
      return
    }
    if (queue.length > 0) this.#beginSoon(destinationId, 0)
    else this.#ready.delete(destinationId)
  }

  #tryTo(call: ParkedCall): Block | null {
    const now = Date.now()
    const released = this.releaseOf(call, now)
    if (released !== null) {
      this.#release(call, released)
      return null
    }
    if (now < call.dueAt) {
      // The clock was set back since it was due. Begun now it would go to a tier until then, and be overtaken.
      call.state = 'waiting'
      this.#schedule(call)
      return null
    }
    call.state = 'busy'
    try {
      const block = this.#parts.begin(call)
      if (block) call.state = 'ready'
      return block
    } catch (error) {
      const { reason, detail } = this.#parts.refusalOf(error)
      this.#parts.giveUp(call, call.key, call.delivery, reason, detail)
      return null
    }
  }

  #release(call: ParkedCall, reason: ReleaseReason): void {
    if (call.state === 'busy') {
      call.releaseLater(reason)
      return
    }
    if (call.timer) clearTimeout(call.timer)
    call.timer = null
    call.state = 'busy'
    this.#parts.release(call, call.key, call.delivery, call.dueAt, reason)
  }
}
