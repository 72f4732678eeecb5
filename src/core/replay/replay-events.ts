import { isUnfinished, stateAfterTurn, type ReplayJob, type ReplayTotals } from './replay-job.ts'

/** Replays that have ended are listed for so long; a pause that ended earlier gets none. */
export const replaysKeptMs = 30 * 86_400_000
/** Of those that have ended and were made by people. */
export const maxEndedReplays = 500

export type ReplayEvent =
  | { type: 'replay_started'; replay: ReplayJob }
  | { type: 'replay_paused' | 'replay_resumed'; id: string; at: number }
  | { type: 'replay_cancelled' | 'replay_finished'; id: string; at: number; totals: ReplayTotals | null }

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
