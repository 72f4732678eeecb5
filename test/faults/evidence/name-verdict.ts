import { answerOf, type Evidence } from './evidence.ts'
import type { Findings } from './findings.ts'
import { followMs } from '../load/moving-host.ts'
import { slots } from '../load/destinations.ts'
import type { Injected } from '../schedule.ts'

/** Of the host whose name moves. */
export interface NameTally {
  moves: number
  /** Requests to an address that the name did not lead to any more. */
  late: number
  /** How long after its move the last of them was sent, in ms. */
  latestMs: number
  /** Requests that it took after the time that there is to follow a move. */
  takenAfter: number
}

/** A forwarder that is frozen meanwhile cannot follow; no freeze is longer, in ms. */
const frozenMs = 15_000

/** Requests to an address that the name has long left; and calls that come to the new one. */
export function judgeNames(
  given: { evidence: Evidence; injected: readonly Injected[]; moves: readonly number[]; patience: number },
  findings: Findings,
): NameTally {
  const { evidence, injected, moves, patience } = given
  const { arrivals } = evidence
  const tally: NameTally = { moves: moves.length, late: 0, latestMs: 0, takenAfter: 0 }
  for (let row = 0; row < arrivals.length; row++) {
    const at = arrivals.get('at', row)
    const { destination } = slots[arrivals.get('delivery', row) % slots.length]!
    // By when it was read, which decides its answer: what was sent just before the move may be read behind it.
    const moved = moves.findLast((each) => each <= arrivals.get('readAt', row))
    if (destination.id !== 'moving' || moved === undefined) continue
    const afterMs = at - moved
    const wasFrozen = injected.some(
      ({ kind, from, to }) => kind === 'forwarder-frozen' && from <= at && to >= moved,
    )
    const boundMs = followMs * patience + (wasFrozen ? frozenMs : 0)
    if (!['movedAway', 'takenAway'].includes(answerOf(arrivals.get('answer', row)))) {
      if (afterMs > boundMs) tally.takenAfter++
      continue
    }
    tally.late++
    tally.latestMs = Math.max(tally.latestMs, afterMs)
    if (afterMs > boundMs)
      findings.add('names not followed', `a request at ${at}, ${afterMs} ms after the name moved`)
  }
  return tally
}
