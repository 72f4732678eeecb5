import type { CallType } from '../call/analytics-call.ts'
import { stateAfter, type Transitions } from '../transitions.ts'

/**
 * What a delivery was when its replay was made. `held`: finished without an attempt, because its destination was paused.
 * `failed`: a dead letter. `skipped`: never planned. `delivered`: all others, those that still wait in a tier included.
 */
export const replayKinds = ['held', 'skipped', 'failed', 'delivered'] as const
export type ReplayKind = (typeof replayKinds)[number]
/** What a receiver never took. */
export const defaultReplayKinds: readonly ReplayKind[] = ['held', 'skipped', 'failed']

export const replayStates = ['running', 'paused', 'finished', 'cancelled'] as const
export type ReplayState = (typeof replayStates)[number]
export type ReplayTurn = 'pause' | 'resume' | 'cancel' | 'finish'

const transitions: Transitions<ReplayState, ReplayTurn> = {
  running: { pause: 'paused', cancel: 'cancelled', finish: 'finished' },
  paused: { resume: 'running', cancel: 'cancelled' },
  finished: {},
  cancelled: {},
}

export const canTurn = (state: ReplayState, turn: ReplayTurn): boolean => turn in transitions[state]
export const stateAfterTurn = (state: ReplayState, turn: ReplayTurn): ReplayState =>
  stateAfter(transitions, state, turn)
export const isUnfinished = ({ state }: Pick<ReplayJob, 'state'>): boolean =>
  state === 'running' || state === 'paused'

/** How far a replay is, and what it did. */
export interface ReplayTotals extends Record<ReplayKind, number> {
  /** Records that were looked at. */
  looked: number
  /** Not sent: their user was erased since. */
  erased: number
  /** Not sent: larger than a retry topic takes. */
  refused: number
  /** Offsets that retention took before they were looked at. */
  lost: number
}

export const noTotals = (): ReplayTotals => ({
  held: 0,
  skipped: 0,
  failed: 0,
  delivered: 0,
  looked: 0,
  erased: 0,
  refused: 0,
  lost: 0,
})

export function addTotals(sum: ReplayTotals, more: Readonly<ReplayTotals>): void {
  for (const key of Object.keys(sum) as (keyof ReplayTotals)[]) sum[key] += more[key]
}

export const sentOf = (totals: Readonly<ReplayTotals>): number =>
  replayKinds.reduce((sum, kind) => sum + totals[kind], 0)

/** What is asked for. Times are epoch ms, by which the broker appended the calls' records. */
export interface ReplayRange {
  destinationId: string
  only: ReplayKind[]
  since: number
  /** Not included. */
  until: number
  /** Null: whatever the destination's settings let pass. */
  types: CallType[] | null
  /** Names of `track` events. */
  events: string[] | null
  user: string | null
  /** Of the one call that is meant; null: of any. */
  messageId: string | null
  /** A second, at most; null for as many as the forwarders take. */
  rate: number | null
}

/** A replay: it goes on after a crash of any process, on whichever console is there. */
export interface ReplayJob extends ReplayRange {
  id: string
  /** Made by the end of that pause: takes what it held, whenever that was appended. */
  pauseId: string | null
  createdAt: number
  /** Where `since` is earlier than what `analytics.calls` still held then: about its beginning. Null: nothing is missing. */
  keptSince: number | null
  state: ReplayState
  changedAt: number
  /** At the end; while it runs they stand beside its progress. */
  totals: ReplayTotals | null
}

/** Whoever names one call wants it sent, whatever it was. */
export const kindsUnlessChosen = (messageId: string | null): ReplayKind[] => [
  ...(messageId === null ? defaultReplayKinds : replayKinds),
]

/** Whether they may send the same calls. */
export const overlaps = (one: ReplayRange, other: ReplayRange): boolean =>
  one.destinationId === other.destinationId &&
  one.since < other.until &&
  other.since < one.until &&
  (one.messageId === null || other.messageId === null || one.messageId === other.messageId)
