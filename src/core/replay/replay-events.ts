import { z } from 'zod'
import {
  isUnfinished,
  replayJob,
  replayTotals,
  stateAfterTurn,
  type ReplayJob,
  type PlacedRange,
  type ReplayTotals,
} from './replay-job.ts'

/** Replays that have ended are listed for so long; a pause that ended earlier gets none. */
export const replaysKeptMs = 30 * 86_400_000
/** Of those that have ended and were made by people. */
export const maxEndedReplays = 500

const turn = { id: z.string(), at: z.number().int() }
const end = { ...turn, totals: replayTotals.nullable() }

/** What can have happened to one. Times are epoch ms. */
export const replayEvents = [
  z.object({ type: z.literal('replay_started'), replay: replayJob }),
  z.object({ type: z.literal('replay_paused'), ...turn }),
  z.object({ type: z.literal('replay_resumed'), ...turn }),
  z.object({ type: z.literal('replay_cancelled'), ...end }),
  z.object({ type: z.literal('replay_finished'), ...end }),
] as const
export type ReplayEvent = z.output<(typeof replayEvents)[number]>

const turnOf = {
  replay_paused: 'pause',
  replay_resumed: 'resume',
  replay_cancelled: 'cancel',
  replay_finished: 'finish',
} as const

/** The replay that an event is about, as it is then. Throws for one that cannot happen. */
export function replayAfter(replays: ReadonlyMap<string, ReplayJob>, event: ReplayEvent): ReplayJob {
  if (event.type === 'replay_started') return event.replay
  const replay = replays.get(event.id)
  if (!replay) throw new Error(`${event.type} names "${event.id}", which does not exist`)
  const totals = 'totals' in event ? event.totals : replay.totals
  return { ...replay, state: stateAfterTurn(replay.state, turnOf[event.type]), changedAt: event.at, totals }
}

/** Ids of those that are not listed any more once this one is: seen from its time, so that all readers agree. */
export function forgottenBy(
  { changedAt }: Pick<ReplayJob, 'changedAt'>,
  replays: ReadonlyMap<string, ReplayJob>,
): string[] {
  const ended = [...replays.values()].filter((each) => !isUnfinished(each))
  const old = ended.filter((each) => each.changedAt < changedAt - replaysKeptMs)
  const byPeople = ended.filter(({ pauseId }) => pauseId === null)
  const tooMany = byPeople.slice(0, Math.max(0, byPeople.length - maxEndedReplays))
  return [...new Set([...old, ...tooMany])].map(({ id }) => id)
}

export type ReplayCommand =
  | {
      type: 'start_replay'
      /** New; of a pause's replay `heldReplayId`. */
      id: string
      terms: PlacedRange
      pauseId: string | null
      keptSince: number | null
      at: number
    }
  | { type: 'pause_replay' | 'resume_replay'; id: string; at: number }
  | { type: 'cancel_replay' | 'finish_replay'; id: string; at: number; totals: ReplayTotals | null }
