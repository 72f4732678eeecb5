import { answers } from '../load/answers.ts'
import { orderedSource, slots } from '../load/destinations.ts'
import { userOf } from '../load/load.ts'
import type { Traffic } from '../load/traffic.ts'
import { isParked } from './attempt-checks.ts'
import { answerOf, type Evidence } from './evidence.ts'
import type { Findings } from './findings.ts'
import type { Groups } from '../columns.ts'

/** Of a destination with strict order. */
export interface OrderTally {
  /** Calls that it took. */
  taken: number
  /** Of them, that came to Kafka behind a call of their user that failed at first. */
  behindFailures: number
  /** Deliveries that were parked. */
  parked: number
}

/** Clocks of this machine are read by several processes, in whole ms. */
const roundingMs = 2

/** One call in a partition of calls, as far as its order goes. */
interface Placed {
  seq: number
  offset: number
  /** Another partition has it, too: which of the two was taken is not to be seen. */
  isElsewhereToo: boolean
  /** The first request that was taken, by its row, which are in the order in which they were read; Infinity: none was. */
  takenRow: number
  /** When that was sent, epoch ms. */
  sentAt: number
  /** When it was given up, or let go into a tier, epoch ms; Infinity: never. */
  endedAt: number
  hasFailed: boolean
}

interface OrderQuestions {
  findings: Findings
  dossierOf: (seq: number, slot: number) => string[]
  hadClockFarOff: (seq: number, slot: number) => boolean
}

/**
 * What is promised where the order is strict: by the receiver's own log no call is taken before each earlier one of its user
 * was taken, or is a dead letter. Earlier is what lies before it in the same partition: partitions that are added break the
 * order, so nothing is said of a call that its producer wrote to two of them. What is taken once more is not looked at. The
 * limits of waiting are reached by a clock that is far off alone, so nothing else is let go.
 */
export function judgeOrder(
  evidence: Evidence,
  groups: { arrivals: Groups; retryRecords: Groups; deadLetters: Groups },
  traffic: Traffic,
  { findings, dossierOf, hadClockFarOff }: OrderQuestions,
): OrderTally {
  const tally: OrderTally = { taken: 0, behindFailures: 0, parked: 0 }
  const index = slots.findIndex(({ destination }) => destination.order === 'strict')
  const lines = new Map<string, Placed[]>()
  evidence.calls.forEach((copies, seq) => {
    if (traffic.sourceOf(seq) !== orderedSource || traffic.kindOf(seq) !== 'call') return
    const number = seq * slots.length + index
    const fate = fateOf(evidence, groups, number)
    if (fate.isParked) tally.parked++
    if (fate.isReleased && !hadClockFarOff(seq, index))
      findings.add('let go by those behind it', `m${seq}${slots[index]!.suffix}`, () => dossierOf(seq, index))
    const first = new Map<number, number>()
    for (const { partition, offset } of copies)
      first.set(partition, Math.min(first.get(partition) ?? Infinity, offset))
    for (const [partition, offset] of first) {
      const key = `${partition} ${userOf(seq, orderedSource)}`
      const line = lines.get(key)
      const placed = { seq, offset, isElsewhereToo: first.size > 1, ...fate }
      if (line) line.push(placed)
      else lines.set(key, [placed])
    }
  })
  for (const line of lines.values()) judgeLine(line.toSorted((a, b) => a.offset - b.offset))
  return tally

  function judgeLine(line: readonly Placed[]): void {
    line.forEach((call, at) => {
      if (call.takenRow === Infinity || call.isElsewhereToo) return
      tally.taken++
      const earlier = line.slice(0, at)
      if (earlier.at(-1)?.hasFailed) tally.behindFailures++
      const open = earlier.find(
        ({ takenRow, endedAt }) => takenRow >= call.takenRow && endedAt > call.sentAt + roundingMs,
      )
      if (open)
        findings.add('order that was not kept', `m${call.seq} was taken before m${open.seq}`, () => [
          ...dossierOf(open.seq, index),
          ...dossierOf(call.seq, index),
        ])
    })
  }
}

function fateOf(
  evidence: Evidence,
  groups: { arrivals: Groups; retryRecords: Groups; deadLetters: Groups },
  number: number,
): Omit<Placed, 'seq' | 'offset' | 'isElsewhereToo'> & { isParked: boolean; isReleased: boolean } {
  const { arrivals, retryRecords, deadLetters } = evidence
  const isTaken = (row: number) => answers[answerOf(arrivals.get('answer', row))] === 'success'
  const rows = [...groups.arrivals.of(number)]
  const takenRow = rows.find(isTaken) ?? Infinity
  const scheduled = [...groups.retryRecords.of(number)]
  const released = scheduled.filter((row) => !isParked(evidence, row))
  const ends = [
    ...released.map((row) => retryRecords.get('at', row)),
    ...[...groups.deadLetters.of(number)].map((row) => deadLetters.get('at', row)),
  ]
  return {
    takenRow,
    sentAt: takenRow === Infinity ? Infinity : arrivals.get('at', takenRow),
    endedAt: Math.min(...ends),
    hasFailed: rows.some((row) => row < takenRow),
    isParked: scheduled.length > released.length,
    isReleased: released.length > 0,
  }
}
