import { noCounts } from './result-codes.ts'
import { totalOf, type DestinationCounts } from './tally.ts'

/**
 * planned + carried + replayed + copies + ahead = delivered + waiting + dead + skipped + erased + held. Of the destination
 * null, the deliveries are records that were for no destination, or were no call.
 */
export interface DestinationLine {
  destinationId: string | null
  /** Deliveries of the calls audited. */
  planned: number
  /** In tiers: scheduled before what is audited. */
  carried: number
  /** In tiers: dead letters that were sent again. */
  replayed: number
  /** In tiers: made once more by a crash, a rebalance or a producer's repetition. */
  copies: number
  /** In tiers: settled there before the commit of the record that they came from was read. */
  ahead: number
  delivered: number
  waiting: number
  dead: number
  skipped: number
  erased: number
  /** Not attempted, because the destination was paused. What a replay sends of it comes in again. */
  held: number
  /** What comes in less what is accounted for: 0 where all is. */
  balance: number
}

/** Sums over the tiers, by destination. */
export interface TierSums {
  carried: number
  replayed: number
  copies: number
  ahead: number
  waiting: number
  /** Scheduled within what is audited, and settled before it: where the tier's chain begins later. */
  settledBefore: number
}

export const noTierSums = (): TierSums => ({
  carried: 0,
  replayed: 0,
  copies: 0,
  ahead: 0,
  waiting: 0,
  settledBefore: 0,
})

/** By destination, the equation over calls and tiers. */
export function equationOf(
  calls: ReadonlyMap<string | null, DestinationCounts>,
  tiers: ReadonlyMap<string | null, DestinationCounts>,
  sums: ReadonlyMap<string | null, TierSums>,
): DestinationLine[] {
  const ids = new Set([...calls.keys(), ...tiers.keys(), ...sums.keys()])
  const lines = [...ids].map((id) =>
    lineOf(calls.get(id) ?? noCounts(id), tiers.get(id) ?? noCounts(id), sums.get(id) ?? noTierSums()),
  )
  settleUnread(lines)
  return lines.sort((a, b) => ((a.destinationId ?? '') < (b.destinationId ?? '') ? -1 : 1))
}

function lineOf(calls: DestinationCounts, tiers: DestinationCounts, sums: TierSums): DestinationLine {
  const planned = totalOf(calls)
  const { carried, replayed, copies, ahead, waiting, settledBefore } = sums
  const delivered = calls.delivered + tiers.delivered
  const dead = calls.deadLettered + tiers.deadLettered
  const skipped = calls.skipped + tiers.skipped
  const erased = calls.erased + tiers.erased
  const held = calls.held + tiers.held
  const incoming = planned + carried + replayed + copies + ahead
  const accounted = delivered + waiting + dead + skipped + erased + held + settledBefore
  return {
    destinationId: calls.destinationId,
    planned,
    carried,
    replayed,
    copies,
    ahead,
    delivered,
    waiting,
    dead,
    skipped,
    erased,
    held,
    balance: incoming - accounted,
  }
}

/**
 * A tier's record that could not be delivered for what it is became a dead letter without a destination, although the
 * record may name one: what is too much there is what is missing here.
 */
function settleUnread(lines: DestinationLine[]): void {
  const none = lines.find(({ destinationId }) => destinationId === null)
  if (!none || none.balance >= 0) return
  for (const line of lines) {
    if (line === none || line.balance <= 0 || none.balance >= 0) continue
    const moved = Math.min(line.balance, -none.balance)
    line.balance -= moved
    line.dead += moved
    none.balance += moved
    none.dead -= moved
  }
}
