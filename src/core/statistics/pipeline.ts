// What became of a destination's calls in a period: every step counted by itself, so that they can fail to add up.
import type { DeliveryCounts } from './views.ts'

export interface PipelineFacts {
  /** Of the period. */
  counts: DeliveryCounts
  /** Deliveries that lie in retry tiers now, counted there; null where they were not. */
  waiting: number | null
  /** Of what was held: what replays of pauses sent, and what they left out because its user was erased. */
  heldSent: number
  heldErased: number
  /** Of the period's dead letters: those that are still none but that; null where that is not known. */
  openDeadLetters: number | null
}

/** None is negative. What comes in is what became of it, and what is unaccounted. */
export interface Pipeline {
  /** Looked at for the first time, and not counted otherwise below. */
  planned: number
  /** Came in again by replays, of what lies before the period or was delivered already. */
  sentAgain: number
  /** Waited when the period began; null where what waits now is not known. */
  waitedBefore: number | null
  delivered: number
  /** In retry tiers, now; null where it is not known. */
  waiting: number | null
  deadLettered: number
  /** Still: what was sent or erased since has left it. */
  held: number
  skipped: number
  erased: number
  /** Has left no trace where it should be: nothing of it is right to be shown as anything else. Null: not known. */
  unaccounted: number | null
}

export function pipelineOf({ counts, waiting, ...facts }: PipelineFacts): Pipeline {
  const { planned, replayed, cameDue, delivered, retried, deferred, skipped } = counts
  // What leaves a step by a replay is not counted as coming in a second time.
  const heldSent = Math.min(counts.held, facts.heldSent, replayed)
  const heldErased = Math.min(counts.held - heldSent, facts.heldErased)
  const open = facts.openDeadLetters ?? counts.deadLettered
  const deadSent = Math.min(Math.max(0, counts.deadLettered - open), replayed - heldSent)
  const steps = {
    planned,
    sentAgain: replayed - heldSent - deadSent,
    delivered,
    deadLettered: counts.deadLettered - deadSent,
    held: counts.held - heldSent - heldErased,
    skipped,
    erased: counts.erased + heldErased,
  }
  if (waiting === null) return { ...steps, waitedBefore: null, waiting, unaccounted: null }
  // Scheduled by those that tried, less what was taken from the tiers: written and read by different hands.
  const net = retried + deferred - cameDue
  const incoming = steps.planned + steps.sentAgain + Math.max(0, waiting - net)
  const ended = delivered + steps.deadLettered + steps.held + skipped + steps.erased
  return {
    ...steps,
    waitedBefore: Math.max(0, waiting - net),
    waiting,
    unaccounted: Math.max(0, incoming - ended - waiting),
  }
}

/** What of a destination moves while it is retried: while any of it changes, counts of different moments are compared. */
export const movesOf = ({ retried, deferred, cameDue }: DeliveryCounts, waiting: number): string =>
  [retried, deferred, cameDue, waiting].join()

/** How long nothing must have moved before it is said: counts of what waits and of what was scheduled come seconds apart. */
const calmMs = 20_000
/** For how long what was found is said on while it moves again, in ms. */
const rememberedMs = 120_000

/** Says only what is sure: what is unaccounted for while nothing moves. */
export class SureCount {
  #moves = ''
  #calmSince = 0
  #sure: { count: number; at: number } | null = null

  /** Null where it is not sure; that nothing is missing is known at once. @param now epoch ms */
  add(count: number, moves: string, now: number): number | null {
    if (moves !== this.#moves) [this.#moves, this.#calmSince] = [moves, now]
    if (count === 0) {
      this.#sure = null
      return 0
    }
    if (now - this.#calmSince >= calmMs) this.#sure = { count, at: now }
    if (!this.#sure || now - this.#sure.at > rememberedMs) return null
    return Math.min(count, this.#sure.count)
  }
}
