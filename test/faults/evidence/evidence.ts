import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { readRange } from '../../../src/adapters/kafka/read/read-range.ts'
import { retryTopics } from '../../../src/adapters/kafka/admin/topics.ts'
import {
  deadLetterReasons,
  type DeadLetterReason,
  type Delivery,
} from '../../../src/core/delivery/delivery.ts'
import { deliveryIdIn, isRun, offsetsOf } from '../../../src/core/delivery/deferred-run.ts'
import { replayTier, strictTier } from '../../../src/core/topics.ts'
import { answerKinds, type AnswerKind } from '../load/answers.ts'
import { Columns } from '../columns.ts'
import { expectation, sideDestinations, sideSource, slots } from '../load/destinations.ts'
import { LedgerEvidence } from './ledger-evidence.ts'
import { urlPathIndex } from '../load/receivers.ts'
import type { Rig } from '../rig.ts'
import { SideEvidence } from './side-evidence.ts'
import { silentLog as silent } from '../../support/silent-log.ts'

/** Where a record lies, and when the broker took it (epoch ms). */
export interface Written {
  partition: number
  offset: number
  at: number
}

/** All that there is to know of a run, after it: what lies in Kafka, and what receivers saw. */
export interface Evidence {
  /** By number: the records of each call. */
  calls: Written[][]
  /** Requests that receivers read. `at`: when its sender wrote it. */
  arrivals: Columns<'delivery' | 'url' | 'at' | 'readAt' | 'sender' | 'answer' | 'body'>
  /** Retry records. Times that are not set: -1. `topic` counts `tierNames`. */
  retryRecords: Columns<
    | 'delivery'
    | 'topic'
    | 'partition'
    | 'offset'
    | 'at'
    | 'scheduledAt'
    | 'attempts'
    | 'timesScheduled'
    | 'firstAttemptAt'
    | 'firstScheduledAt'
    | 'notBefore'
    /** Bit n: URL n is still to be tried. */
    | 'urls'
    /** 1: a run that came from another one. That the delivery was put off stands nowhere else. */
    | 'again'
  >
  deadLetters: Columns<
    | 'delivery'
    | 'reason'
    | 'partition'
    | 'at'
    | 'failedAt'
    | 'attempts'
    | 'timesScheduled'
    | 'firstAttemptAt'
    | 'firstScheduledAt'
  >
  /** What was tried, in words, of dead letters that a delivery should not have: by row. */
  unexpectedDeadLetters: Map<number, string>
  tierTopics: { topic: string; delayMs: number; isStrict: boolean }[]
  /** Records that became no delivery, by where they came from (`partition/offset`): how often, by reason. */
  deadRecords: Map<string, DeadLetterReason[]>
  /** Requests that were not as they have to be, by what was wrong. */
  wrongRequests: Map<string, number>
  /** What belongs to no call of the run. */
  strangers: string[]
  side: SideEvidence
  ledger: LedgerEvidence
}

const isSide = new Set(sideDestinations.map(({ id }) => id))
const slotBySuffix = new Map(slots.map(({ suffix }, index) => [suffix, index]))
const answerIndex = new Map(answerKinds.map((kind, index) => [kind as string, index]))
const urlBits = (ids: readonly string[]): number =>
  ids.reduce((bits, id) => bits | (1 << (Number(id.slice(1)) - 1)), 0)

/** The number of a delivery, by its id; null when it is none of ours. */
export function deliveryNumber(id: string): number | null {
  const colon = id.indexOf(':')
  const slot = slotBySuffix.get(id.slice(colon))
  const seq = Number(id.slice(1, colon))
  const isNumbered = id.startsWith('m') && colon > 1 && Number.isInteger(seq)
  return slot === undefined || !isNumbered ? null : seq * slots.length + slot
}

export const answerOf = (index: number): AnswerKind => answerKinds[index]!
export const reasonOf = (index: number): DeadLetterReason => deadLetterReasons[index]!
export const isUrl = (bits: number, url: number): boolean => (bits & (1 << url)) !== 0

/** What receivers and topics say, by delivery; nothing yet. */
export const emptyColumns = (): Pick<Evidence, 'arrivals' | 'retryRecords' | 'deadLetters'> => ({
  arrivals: new Columns(['delivery', 'url', 'at', 'readAt', 'sender', 'answer', 'body']),
  retryRecords: new Columns([
    ...([
      'delivery',
      'topic',
      'partition',
      'offset',
      'at',
      'scheduledAt',
      'attempts',
      'timesScheduled',
    ] as const),
    ...(['firstAttemptAt', 'firstScheduledAt', 'notBefore', 'urls', 'again'] as const),
  ]),
  deadLetters: new Columns([
    ...(['delivery', 'reason', 'partition', 'at', 'failedAt', 'attempts', 'timesScheduled'] as const),
    ...(['firstAttemptAt', 'firstScheduledAt'] as const),
  ]),
})

export async function gatherEvidence(rig: Rig, arrivalsFile: string): Promise<Evidence> {
  const names = await retryTopics(rig.admin, rig.config.topicPrefix)
  const evidence: Evidence = {
    calls: [],
    ...emptyColumns(),
    tierTopics: names.map(({ topic, tier }) => ({
      ...{ topic, delayMs: tier.delayMs },
      isStrict: tier.name === strictTier.name,
    })),
    unexpectedDeadLetters: new Map(),
    deadRecords: new Map(),
    wrongRequests: new Map(),
    strangers: [],
    side: new SideEvidence(),
    ledger: new LedgerEvidence(),
  }
  await readCalls(rig, evidence)
  await readRetryRecords(rig, evidence)
  await readDeadLetters(rig, evidence)
  await readArrivals(arrivalsFile, evidence)
  await evidence.side.read(rig)
  await evidence.ledger.read(rig, deliveryNumber, evidence.side)
  return evidence
}

const recordsOf = (rig: Rig, topic: string) => readRange({ kafka: rig.kafka, topic, log: silent })

async function readCalls(rig: Rig, { calls, side, strangers }: Evidence): Promise<void> {
  const codec = rig.codecs.calls
  for await (const { partition, offset, timestamp, headers, value } of recordsOf(rig, rig.topics.calls)) {
    let seq = Number(headers?.seq?.toString())
    if (Number.isNaN(seq)) {
      const call = codec.tryDecode(value) ?? (await codec.decode(value))
      if (call.sourceId === sideSource) {
        const { messageId, type, userId, traits } = call
        const place = `${rig.topics.calls}/${partition}/${offset}`
        side.calls.push({ messageId, type, userId, traits, place, at: Number(timestamp) })
        continue
      }
      const { messageId } = call
      seq = /^m\d+$/.test(messageId) ? Number(messageId.slice(1)) : NaN
      if (Number.isNaN(seq)) {
        strangers.push(`call ${partition}/${offset}: ${messageId}`)
        continue
      }
    }
    const written = { partition, offset: Number(offset), at: Number(timestamp) }
    const known = calls[seq]
    if (known) known.push(written)
    else calls[seq] = [written]
  }
}

const times = ({ firstAttemptAt, firstScheduledAt, attempts, timesScheduled }: Delivery) => ({
  firstAttemptAt: firstAttemptAt ?? -1,
  firstScheduledAt: firstScheduledAt ?? -1,
  attempts,
  timesScheduled,
})

/** A text for a place in the calls' topic. */
const callKey = (partition: number, offset: number): string => `${partition}/${offset}`

/** The messageId of each call, by where it lies. */
function messageIds(rig: Rig, { calls, side }: Evidence): Map<string, string> {
  const ids = new Map<string, string>()
  calls.forEach((copies, seq) => {
    for (const { partition, offset } of copies) ids.set(callKey(partition, offset), `m${seq}`)
  })
  const prefix = `${rig.topics.calls}/`
  for (const { place, messageId } of side.calls) ids.set(place.slice(prefix.length), messageId)
  return ids
}

async function readRetryRecords(rig: Rig, evidence: Evidence): Promise<void> {
  const codec = rig.codecs.retries('1s')
  const ids = messageIds(rig, evidence)
  for (const [index, { topic }] of evidence.tierTopics.entries()) {
    for await (const { partition, offset, timestamp, value } of recordsOf(rig, topic)) {
      const retry = codec.tryDecode(value) ?? (await codec.decode(value))
      if (isRun(retry)) {
        const place = { topic: index, partition, offset: Number(offset), at: Number(timestamp) }
        for (const call of offsetsOf(retry.calls)) {
          const messageId = ids.get(callKey(retry.calls.partition, call))
          const id = deliveryIdIn(retry, messageId ?? '')
          const delivery = deliveryNumber(id)
          if (isSide.has(retry.destinationId))
            evidence.side.addRetry(id, retry.owner, `${topic}/${partition}/${offset}`, false)
          else if (delivery === null)
            evidence.strangers.push(`${topic}/${partition}/${offset}: ${id}, in a run with ${call}`)
          else
            evidence.retryRecords.push({
              ...{ delivery, ...place, attempts: 0, timesScheduled: retry.timesScheduled },
              ...{ firstAttemptAt: -1, firstScheduledAt: retry.firstScheduledAt },
              ...{ scheduledAt: retry.scheduledAt, notBefore: -1, urls: urlBits(retry.endpointIds) },
              again: retry.from === null ? 0 : 1,
            })
        }
        continue
      }
      const delivery = deliveryNumber(retry.id)
      if (retry.sourceId === sideSource) {
        const isReplayed = topic === rig.topics.retry(replayTier.name)
        evidence.side.addRetry(retry.id, retry.owner, `${topic}/${partition}/${offset}`, isReplayed)
        continue
      }
      if (delivery === null) {
        evidence.strangers.push(`${topic}/${partition}/${offset}: ${retry.id}`)
        continue
      }
      evidence.retryRecords.push({
        ...{ delivery, topic: index, partition, offset: Number(offset), at: Number(timestamp) },
        ...times(retry),
        scheduledAt: retry.scheduledAt,
        notBefore: retry.notBefore ?? -1,
        urls: urlBits(retry.endpointIds),
        again: 0,
      })
    }
  }
}

async function readDeadLetters(rig: Rig, evidence: Evidence): Promise<void> {
  const { deadLetters: topic } = rig.topics
  for await (const { partition, offset, timestamp, value } of recordsOf(rig, topic)) {
    const deadLetter = await rig.codecs.deadLetters.decode(value)
    if (!deadLetter.delivery) {
      const place = `${deadLetter.origin.partition}/${deadLetter.origin.offset}`
      const reasons = evidence.deadRecords.get(place) ?? []
      reasons.push(deadLetter.reason)
      evidence.deadRecords.set(place, reasons)
      continue
    }
    const delivery = deliveryNumber(deadLetter.delivery.id)
    if (deadLetter.delivery.sourceId === sideSource) {
      evidence.side.addDeadLetter(deadLetter.delivery.id, deadLetter.reason, Number(timestamp))
      continue
    }
    if (delivery === null) {
      evidence.strangers.push(`${topic}/${partition}/${offset}: ${deadLetter.delivery.id}`)
      continue
    }
    const reason = deadLetterReasons.indexOf(deadLetter.reason)
    const expected = expectation(slots[delivery % slots.length]!, Math.floor(delivery / slots.length))
    if (!expected.reasons.includes(deadLetter.reason)) {
      const { outcomes, timesScheduled } = deadLetter.delivery
      const said = outcomes.map(
        ({ endpointId, kind, detail, at }) => `${endpointId} ${kind} (${detail}) at ${at}`,
      )
      // Of what waits in a run no outcome is kept: it was deferred.
      if (said.length === 0 && timesScheduled > 0)
        said.push(`all deferred (${timesScheduled} times, in runs)`)
      evidence.unexpectedDeadLetters.set(evidence.deadLetters.length, said.join('; '))
    }
    const at = Number(timestamp)
    evidence.deadLetters.push({
      ...{ delivery, reason, partition, at, failedAt: deadLetter.failedAt },
      ...times(deadLetter.delivery),
    })
  }
}

async function readArrivals(file: string, evidence: Evidence): Promise<void> {
  for await (const line of createInterface({ input: createReadStream(file) })) {
    const [at, readAt, sender, path, answer, body, fault, id] = line.split(' ') as [
      string,
      string,
      string,
      string,
      string,
      string,
      string,
      string,
    ]
    if (fault !== '-') {
      evidence.wrongRequests.set(fault, (evidence.wrongRequests.get(fault) ?? 0) + 1)
      continue
    }
    const { destination, url } = urlPathIndex(path)
    if (isSide.has(destination)) {
      if (id.split(':')[1] === destination) evidence.side.addArrival(id, answer as AnswerKind)
      else evidence.strangers.push(`${path} got ${id}`)
      continue
    }
    const delivery = deliveryNumber(id)
    // With its own delivery for each URL, the id and the path must speak of the same one.
    const slot = delivery === null ? undefined : slots[delivery % slots.length]!
    if (!slot || slot.destination.id !== destination || (slot.url !== null && slot.url !== url)) {
      evidence.strangers.push(`${path} got ${id}`)
      continue
    }
    evidence.arrivals.push({
      ...{ delivery: delivery!, url, at: Number(at), readAt: Number(readAt), sender: Number(sender) },
      answer: answerIndex.get(answer)!,
      body: Number.parseInt(body, 16),
    })
  }
}
