import { readRange } from '../../../src/adapters/kafka/read/read-range.ts'
import { readEntry } from '../../../src/adapters/folded-log/settings-record.ts'
import type { AnalyticsCall } from '../../../src/core/call/analytics-call.ts'
import type { DeadLetterReason } from '../../../src/core/delivery/delivery.ts'
import type { Tally } from '../../../src/core/ledger/tally.ts'
import { fromPairs } from '../../../src/core/offsets/offset-runs.ts'
import type { SettingsEvent } from '../../../src/core/settings/events.ts'
import { SettingsReplay } from '../../../src/core/settings/replay.ts'
import type { AnswerKind } from '../load/answers.ts'
import type { Rig } from '../rig.ts'
import { silentLog } from '../../support/silent-log.ts'

export interface SideCall extends Pick<AnalyticsCall, 'messageId' | 'type' | 'userId' | 'traits'> {
  /** `<topic>/<partition>/<offset>` */
  place: string
  /** When the broker took it, epoch ms. */
  at: number
}

/** What lies in Kafka, and came to receivers, of all that is no numbered call. */
export class SideEvidence {
  readonly calls: SideCall[] = []
  /** Of each delivery: what its requests were answered. */
  readonly arrivals = new Map<string, AnswerKind[]>()
  readonly deadLetters = new Map<string, { reason: DeadLetterReason; at: number }[]>()
  /** Ids that the ledger records as delivered. */
  readonly delivered = new Set<string>()
  retries = 0
  /** Of retries, the replays' topic included: ids by place. */
  readonly retryPlaces = new Map<string, Set<string>>()
  /** What lies in the replays' topic: by id, who wrote it. */
  readonly replayed = new Map<string, Set<string>>()
  /** By place of a call or a retry: the pauses that held it. */
  readonly held = new Map<string, Set<string>>()
  /** Of the audience, as the newest record of each user says. */
  readonly members = new Set<string>()
  /** `<request id> <user id>` */
  readonly erasures = new Set<string>()
  /** Those that were accepted, in their order. */
  readonly settings: SettingsEvent[] = []

  addArrival(id: string, answer: AnswerKind): void {
    const found = this.arrivals.get(id)
    if (found) found.push(answer)
    else this.arrivals.set(id, [answer])
  }

  addDeadLetter(id: string, reason: DeadLetterReason, at: number): void {
    const found = this.deadLetters.get(id)
    if (found) found.push({ reason, at })
    else this.deadLetters.set(id, [{ reason, at }])
  }

  addRetry(id: string, owner: string, place: string, isReplayed: boolean): void {
    this.retries++
    addTo(this.retryPlaces, place, id)
    if (isReplayed) addTo(this.replayed, id, owner)
  }

  addTally({ start, held }: Tally, topic: string, partition: number): void {
    for (const { pauseId, offsets } of held)
      for (const run of fromPairs(offsets, start)!)
        for (let offset = run.start; offset < run.end; offset++)
          addTo(this.held, `${topic}/${partition}/${offset}`, pauseId)
  }

  /** What is not read with the numbered calls. */
  async read({ kafka, topics, codecs }: Rig): Promise<void> {
    const log = silentLog
    const recordsOf = (topic: string) => readRange({ kafka, topic, log })
    for await (const { value } of recordsOf(topics.memberships)) {
      if (value === null) continue
      const { userId, member } = await codecs.memberships.decode(value)
      if (member) this.members.add(userId)
      else this.members.delete(userId)
    }
    for await (const { value } of recordsOf(topics.erasures)) {
      if (value === null) continue
      const { requestId, userId } = await codecs.erasures.decode(value)
      this.erasures.add(`${requestId} ${userId}`)
    }
    const replay = new SettingsReplay()
    for await (const { value, offset, timestamp } of recordsOf(topics.settings)) {
      const entry = readEntry(value, codecs.settings)
      for (const { placed, verdict } of replay.take({ offset, appendedAt: timestamp, entry }))
        if (verdict === 'accepted' && placed.entry.kind === 'event')
          this.settings.push(placed.entry.record.event)
    }
  }
}

function addTo(sets: Map<string, Set<string>>, key: string, value: string): void {
  const found = sets.get(key)
  if (found) found.add(value)
  else sets.set(key, new Set([value]))
}
