import type { DeliveryEvidence } from '../evidence/attempt-checks.ts'
import { hasMoved, madeBefore } from '../evidence/attempt-checks.ts'
import type { CommitWatch } from './commit-watch.ts'
import type { Evidence, Written } from '../evidence/evidence.ts'
import type { Findings } from '../evidence/findings.ts'
import type { LeaderWatch } from './leader-watch.ts'
import type { OwnerWatch } from './owner-watch.ts'
import type { Rig } from '../rig.ts'
import type { Traffic } from '../load/traffic.ts'

/** Records that lie there once more, by the reason for it. */
export interface CopyCounts {
  calls: Record<string, number>
  retries: Record<string, number>
  deadLetters: Record<string, number>
}

export const noCopies = (): CopyCounts => ({ calls: {}, retries: {}, deadLetters: {} })

interface Known {
  evidence: Evidence
  watch: CommitWatch
  owners: OwnerWatch
  leaders: LeaderWatch
  rig: Rig
  traffic: Traffic
  findings: Findings
}

/** Times in epoch ms. */
interface Placed {
  topic: string
  partition: number
  /** When it was appended: long after it was made, where its leader could not be reached. */
  at: number
  madeAt: number
}

/** The call's own records: one is right. */
export function countCallCopies(known: Known, counts: CopyCounts, seq: number): void {
  const { evidence, rig, traffic } = known
  const records: Written[] = evidence.calls[seq]!
  if (records.length === 1) return
  const placed = records.map(({ partition, at }) => ({ topic: rig.topics.calls, partition, at, madeAt: at }))
  const why = traffic.wasSentAgain(seq) ? 'sent again by its sender' : null
  count(known, counts.calls, `call ${seq}`, placed, () => why)
}

/** Scheduled retries with the same count, and dead letters beyond the first. */
export function countDeliveryCopies(known: Known, counts: CopyCounts, delivery: DeliveryEvidence): void {
  const { evidence, rig } = known
  const { retryRecords, deadLetters, tierTopics } = evidence
  const isCallTwice = delivery.calls.length > 1
  const byCount = Map.groupBy(delivery.retryRecords, (row) => retryRecords.get('timesScheduled', row))
  let isCopied = false
  const why = (first: number, second: number): string | null => {
    if (isCallTwice) return 'its call lies there twice'
    if (isCopied) return 'of a copy'
    return hasMoved(known, delivery, first, second) ? 'its record moved' : null
  }
  for (const times of [...byCount.keys()].sort((a, b) => a - b)) {
    const placed = byCount.get(times)!.map((row) => ({
      topic: tierTopics[retryRecords.get('topic', row)]!.topic,
      partition: retryRecords.get('partition', row),
      at: retryRecords.get('at', row),
      madeAt: retryRecords.get('scheduledAt', row),
    }))
    if (placed.length === 1) continue
    count(known, counts.retries, `${delivery.name}, retry ${times}`, placed, why, delivery.dossier)
    isCopied = true
  }
  if (delivery.deadLetters.length < 2) return
  const placed = [...delivery.deadLetters].map((row) => ({
    topic: rig.topics.deadLetters,
    partition: deadLetters.get('partition', row),
    at: deadLetters.get('at', row),
    madeAt: deadLetters.get('failedAt', row),
  }))
  count(known, counts.deadLetters, `${delivery.name}, dead letter`, placed, why, delivery.dossier)
}

/**
 * Each record beyond the first must have a reason. An answer that was lost is none: brokers append a batch that is sent
 * again only once. What was going on stands in the finding all the same.
 */
function count(
  { leaders, findings }: Known,
  counts: Record<string, number>,
  name: string,
  records: Placed[],
  why: (first: number, second: number) => string | null,
  dossier?: () => string[],
): void {
  records.sort((a, b) => a.at - b.at)
  for (let index = 1; index < records.length; index++) {
    const [first, second] = [records[index - 1]!, records[index]!]
    const reason = why(madeBefore(first.at, first.madeAt), second.at)
    if (reason !== null) counts[reason] = (counts[reason] ?? 0) + 1
    else {
      const meanwhile = leaders.eventsOf(first.topic, first.partition, first.at, second.at)
      const example = `${name} at ${first.at} and ${second.at}; meanwhile: ${meanwhile.join(', ') || 'nothing'}`
      findings.add('written twice', example, dossier)
    }
  }
}
