// What lies in Kafka for a replay, without a Kafka: it outlives every process, and moves on as forwarders work.
import assert from 'node:assert/strict'
import { timeNow } from '../quick-time.ts'
import { someCall } from '../calls/calls.ts'
import { deadLetter, delivery } from './dead-letters.ts'
import type { ReplayProgress } from '../../../src/operators/replay/rig.ts'
import type { StoredRecord } from '../../../src/operators/dead-letters/dead-letters.ts'
import type { TimedSettings } from '../../../src/operators/why/facts.ts'
import type { AnalyticsCall } from '../../../src/core/call/analytics-call.ts'
import type { DeadLetter, RetryDelivery } from '../../../src/core/delivery/delivery.ts'
import { deliveryEvent } from '../../../src/core/ledger/delivery-event.ts'
import { noTally } from '../../../src/core/ledger/result-codes.ts'
import type { HeldOffsets } from '../../../src/core/ledger/tally.ts'
import type { ReplayKind, SentKind } from '../../../src/core/replay/replay-job.ts'
import type { SettingsCommand } from '../../../src/core/settings/commands.ts'
import { decide } from '../../../src/core/settings/decide.ts'
import { evolve, type SettingsEvent } from '../../../src/core/settings/events.ts'
import { initialSettings } from '../../../src/core/settings/settings.ts'
import { topicNames } from '../../../src/core/topics.ts'

const hour = 3_600_000
const destinationId = 'crm'
export const pauseId = 'p1'
export const erasedUser = 'gone'
export const kafkaGroup = 'g'
/** Two of them are a batch, which has no rate for what a pause held. */
const largeBody = Buffer.alloc(300 * 1_024, 'x')

/** What a call was for the destination. `other`: nothing; its source is another one. `poison`: nobody can read it. */
type WasKind = ReplayKind | 'erased' | 'other' | 'poison'
/** Offsets of one partition of calls that one tally covers. */
interface Section {
  /** Hours after the beginning. */
  at: number
  calls: readonly WasKind[]
}

/** The destination is disabled in the second hour and paused from the fourth on. */
const sections: readonly Section[] = [
  { at: 1, calls: ['skipped', 'skipped', 'other', 'skipped', 'skipped'] },
  { at: 3, calls: ['delivered', 'failed', 'poison', 'delivered', 'failed', 'delivered'] },
  { at: 5, calls: ['held', 'held', 'other', 'held', 'erased', 'held'] },
]
/** Forwarders have not finished these when the pause ends, and hold them since they do not know. */
const late: readonly WasKind[] = ['held', 'other', 'held']
const retriesHeld = [true, false, true, true]
/** As often as anybody has asked for commits when the forwarders have finished all, and know the newest settings. */
const asksUntilFinished = 3

/** What each partition of the dead letters holds. `again`: the first delivery, once more. `poison`: nobody can read it. */
export const deadLetterKinds = [
  ...['failed', 'failed', 'again', 'raw', 'erased', 'failed', 'poison', 'again', 'other', 'failed'],
] as const
/** Those that are chosen; `other` has another. */
export const chosenReasons = ['rejected', 'undecodable', 'unreadable']

export interface WorldOptions {
  /** Whether the destination was there when the calls came in. */
  isNew?: boolean
  deliverTo?: 'any' | 'every'
  isLarge?: boolean
  /** Whether the topic of dead letters is filled. */
  hasDeadLetters?: boolean
}

/** A delivery that a replay may have to send. */
export interface Replayable {
  kind: SentKind
  /** Without what a replay adds. */
  id: string
  user: string
  place: { topic: string; partition: number; offset: number }
}

export class ReplayWorld {
  readonly topics = topicNames('')
  readonly retryTopic = this.topics.retry('10s')
  settings = initialSettings
  readonly history: TimedSettings[] = []
  readonly events: SettingsEvent[] = []
  readonly progress = new Map<string, ReplayProgress>()
  /** Who runs the replay; a process that was killed does so until its session ends. */
  lease: { process: number; endsAt: number } | null = null
  /** The replay's topic, by partition. */
  readonly sent: { process: number; delivery: RetryDelivery }[][] = [[], []]
  readonly replayable: Replayable[] = []
  readonly committed = new Map<string, number>()
  readonly #records = new Map<string, StoredRecord[][]>()
  readonly #values: unknown[] = []
  readonly #begin: number
  readonly #isNew: boolean
  readonly #deliverTo: 'any' | 'every'
  readonly #body: Buffer
  readonly #properties: string
  #knownVersion = 0
  #asks = 0

  constructor({
    isNew = false,
    deliverTo = 'any',
    isLarge = false,
    hasDeadLetters = false,
  }: WorldOptions = {}) {
    this.#begin = timeNow() - 10 * hour
    this.#isNew = isNew
    this.#deliverTo = deliverTo
    this.#body = isLarge ? largeBody : Buffer.from('x')
    this.#properties = JSON.stringify({ text: this.#body.toString() })
    const { calls, deliveries, deadLetters } = this.topics
    for (const topic of [calls, this.retryTopic, deadLetters]) this.#records.set(topic, [[], []])
    this.#records.set(deliveries, [[]])
    this.execute({ type: 'create_source', id: 'shop', name: 'S', writeKey: 'k', enabled: true }, -hour)
    if (!isNew) this.#createDestination(-hour, false)
    for (const { at, calls } of sections) {
      if (at === 3 && !isNew) this.execute({ type: 'enable_destination', id: destinationId }, 2 * hour)
      this.#finish(this.#addCalls(calls, at * hour), at * hour)
    }
    if (isNew) {
      this.#finish(this.#addCalls(late, 5 * hour), 5 * hour)
      this.#createDestination(6 * hour, true)
    } else {
      const at = this.#begin + 4 * hour
      this.execute({ type: 'pause_destination', id: destinationId, pauseId, at, until: null }, 4 * hour)
      this.#addRetries(retriesHeld, 5 * hour)
      this.#addCalls(late, 5 * hour)
      this.#addRetries([true], 5 * hour)
    }
    if (hasDeadLetters) this.#addDeadLetters()
    this.#knownVersion = this.settings.version
    this.beat()
  }

  /** Forwarders work on with each look. */
  look(): ReadonlyMap<string, number> {
    if (++this.#asks === asksUntilFinished) {
      this.#knownVersion = this.settings.version
      for (const topic of [this.topics.calls, this.retryTopic]) this.#finishRest(topic)
    }
    this.beat()
    return new Map(this.committed)
  }

  #createDestination(at: number, enabled: boolean): void {
    const urls = ['https://example.com/1', 'https://example.com/2'].slice(this.#deliverTo === 'any' ? 1 : 0)
    const rest = { headers: [], sharedSecret: null, options: { deliverTo: this.#deliverTo }, enabled }
    const sourceIds = ['shop']
    this.execute({ type: 'create_destination', id: destinationId, name: 'C', sourceIds, urls, ...rest }, at)
  }

  /** @param at ms after the beginning; now, unless given */
  execute(command: SettingsCommand, at: number | null = null): SettingsEvent | null {
    const decision = decide(command, this.settings)
    assert(decision.accepted, JSON.stringify(decision))
    if (!decision.event) return null
    this.settings = evolve(this.settings, decision.event)
    this.events.push(decision.event)
    this.history.push({ since: at === null ? timeNow() : this.#begin + at, state: this.settings })
    return decision.event
  }

  partitions(topic: string): readonly (readonly StoredRecord[])[] {
    return this.#records.get(topic) ?? [[]]
  }

  valueOf(value: Uint8Array | null): unknown {
    return value === null ? null : this.#values[Number(Buffer.from(value).toString())]
  }

  #append(topic: string, partition: number, key: string | null, value: unknown, at: number): number {
    const records = this.#records.get(topic)![partition]!
    const offset = records.length
    const bytes = value === null ? null : Buffer.from(String(this.#values.push(value) - 1))
    const timestamp = this.#begin + at
    records.push({ partition, offset, key: Buffer.from(key ?? ''), value: bytes, headers: {}, timestamp })
    return offset
  }

  /** To each partition; resolves to the offset of the first in each. */
  #addCalls(kinds: readonly WasKind[], at: number): number {
    const first = this.partitions(this.topics.calls)[0]!.length
    for (const partition of [0, 1])
      for (const [index, kind] of kinds.entries()) {
        const user = kind === 'erased' ? erasedUser : `u${partition}${index % 2}`
        const messageId = `m${partition}-${first + index}`
        const sourceId = kind === 'other' ? 'elsewhere' : 'shop'
        const call = someCall({ messageId, userId: user, sourceId, properties: this.#properties })
        const value = kind === 'poison' ? null : call
        const offset = this.#append(this.topics.calls, partition, user, value, at)
        const place = { topic: this.topics.calls, partition, offset }
        if (kind === 'other' || kind === 'poison' || kind === 'erased') continue
        this.#note(call, this.#isNew ? 'skipped' : kind, place, at)
      }
    return first
  }

  #note({ messageId, userId }: AnalyticsCall, was: ReplayKind, place: Replayable['place'], at: number): void {
    const suffixes = this.#deliverTo === 'any' ? [''] : [':u1', ':u2']
    for (const suffix of suffixes) {
      const id = `${messageId}:${destinationId}${suffix}`
      // Of a destination that delivers to every URL, those of one URL may be held alone.
      const isHalf = was === 'held' && suffix === ':u2' && place.offset % 2 === 1
      const kind = isHalf ? 'delivered' : was
      this.replayable.push({ kind, id, user: userId!, place })
      const deadLetter = { delivery: { id, destinationId }, failedAt: this.#begin + at }
      if (kind === 'failed') this.#append(this.topics.deadLetters, 0, null, deadLetter, at)
    }
  }

  /** In place of those of the calls. */
  #addDeadLetters(): void {
    this.#records.set(this.topics.deadLetters, [[], []])
    for (const partition of [0, 1])
      for (const [index, kind] of deadLetterKinds.entries()) this.addDeadLetter(partition, kind, index)
  }

  /** @param index of the delivery that it is of */
  addDeadLetter(partition: number, kind: (typeof deadLetterKinds)[number], index: number): void {
    const user = kind === 'erased' ? erasedUser : `u${partition}${index % 2}`
    const messageId = `d${partition}-${kind === 'again' ? 0 : index}`
    const letters: Record<typeof kind, DeadLetter | null> = {
      ...{ failed: null, again: null, erased: null, poison: null },
      raw: deadLetter({ reason: 'undecodable', raw: Buffer.from(messageId), rawKey: Buffer.from(user) }),
      other: deadLetter({ reason: 'expired', delivery: delivery(messageId) }),
    }
    const value = letters[kind] ?? (kind === 'poison' ? null : deadLetter({ delivery: delivery(messageId) }))
    const topic = this.topics.deadLetters
    const offset = this.#append(topic, partition, user, value, 5 * hour)
    const id = kind === 'raw' ? messageId : `${messageId}:${destinationId}`
    if (kind === 'failed' || kind === 'raw')
      this.replayable.push({ kind, id, user, place: { topic, partition, offset } })
  }

  #addRetries(held: readonly boolean[], at: number): void {
    const topic = this.retryTopic
    for (const partition of [0, 1])
      for (const isHeld of held) {
        const offset = this.partitions(topic)[partition]!.length
        const user = `u${partition}${offset % 2}`
        const appendedAt = this.#begin + at
        const messageId = `r${partition}-${offset}`
        const urlId = this.#deliverTo === 'any' ? '' : ':u1'
        const id = `${messageId}:${isHeld ? destinationId : 'other'}${urlId}`
        const retry: RetryDelivery = {
          ...{
            id,
            messageId,
            sourceId: 'shop',
            userIds: [user],
            type: 'track',
            body: this.#body,
            filled: null,
          },
          ...{ destinationId: isHeld ? destinationId : 'other', endpointIds: ['u1'], attempts: 1 },
          ...{ timesScheduled: 1, firstAttemptAt: appendedAt, firstScheduledAt: appendedAt, notBefore: null },
          ...{
            outcomes: [],
            lastResponse: null,
            lastExchange: null,
            owner: 'o',
            from: null,
            scheduledAt: appendedAt,
          },
          origin: { topic: this.topics.calls, partition, offset, appendedAt },
        }
        this.#append(topic, partition, user, retry, at)
        const place = { topic, partition, offset }
        if (isHeld) this.replayable.push({ kind: 'held', id, user, place })
      }
    if (held.length > 1) this.#finishRest(topic, at)
  }

  /** A tally of all from there on, in both partitions, and its commit. */
  #finish(first: number, at: number): void {
    for (const partition of [0, 1]) this.#tally(this.topics.calls, partition, first, at)
  }

  #finishRest(topic: string, at = timeNow() - this.#begin): void {
    for (const partition of [0, 1])
      this.#tally(topic, partition, this.committed.get(`${topic}/${partition}`) ?? 0, at)
  }

  #tally(topic: string, partition: number, start: number, at: number): void {
    const position = this.partitions(topic)[partition]!.length
    const records = position - start
    if (records === 0) return
    const of = this.replayable.filter(({ kind, place }) => {
      return (
        kind === 'held' && place.topic === topic && place.partition === partition && place.offset >= start
      )
    })
    const erased = sections[2]!.calls.indexOf('erased')
    const alsoHeld = topic === this.topics.calls && at === 5 * hour && !this.#isNew ? [start + erased] : []
    const held: HeldOffsets[] = []
    if (of.length > 0) {
      const offsets = pairs([...of.map(({ place }) => place.offset), ...alsoHeld], start)
      const offsetsOf = (suffix: string) =>
        pairs(
          [...of.flatMap(({ id, place }) => (id.endsWith(suffix) ? [place.offset] : [])), ...alsoHeld],
          start,
        )
      const urls = ['u1', 'u2'].map((urlId) => ({ urlId, offsets: offsetsOf(`:${urlId}`) }))
      held.push({ destinationId, pauseId, offsets, urls: this.#deliverTo === 'any' ? [] : urls })
    }
    const counts = this.#isNew ? [] : [{ ...noTally(destinationId), held: of.length }]
    const tally = {
      ...{
        id: 't',
        predecessor: null,
        group: kafkaGroup,
        start,
        position,
        before: [],
        finished: [0, records],
      },
      ...{ lost: [], records, owner: 'o', earlier: [], counts, held },
    }
    const appended = at + 5 * 60_000
    this.#append(
      this.topics.deliveries,
      0,
      null,
      deliveryEvent('tally', appended, { topic, partition, tally }),
      appended,
    )
    this.committed.set(`${topic}/${partition}`, position)
  }

  /** Forwarders live, whatever becomes of consoles. */
  beat(): void {
    const at = timeNow() - this.#begin
    const heartbeat = {
      ...{ instance: 'f', roles: ['forwarder'], version: '1', host: 'h', pid: 1, startedAt: 0, sequence: 1 },
      ...{ isLast: false, intervalMs: 10_000, requestsInFlight: null, partitions: [], endpoints: [] },
      ...{ endpointsOmitted: 0, settingsVersion: this.#knownVersion },
    }
    this.#append(this.topics.deliveries, 0, null, deliveryEvent('heartbeat', at, { heartbeat }), at)
  }
}

/** Offsets as pairs of a gap and a length. */
function pairs(offsets: readonly number[], start: number): number[] {
  let next = start
  return [...new Set(offsets)]
    .sort((a, b) => a - b)
    .flatMap((offset) => {
      const gap = offset - next
      next = offset + 1
      return [gap, 1]
    })
}
