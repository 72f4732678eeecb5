import { isoOrNull } from '../iso-time.ts'
import { destinationsOf, sentOf } from '../replay/replay-job.ts'
import type { SettingsEvent } from '../settings/events.ts'
import type { SettingsState } from '../settings/settings.ts'
import { timeText, type OperationalEvent } from './operational-event.ts'

type ReplayEnd = Extract<SettingsEvent, { type: 'replay_finished' | 'replay_cancelled' }>
type StateBefore = Pick<SettingsState, 'destinations' | 'replays'>

/** What an accepted event of the settings log is for subscribers; `before` is the state that it changed. */
export function settingChange(event: SettingsEvent, before: StateBefore): OperationalEvent | null {
  switch (event.type) {
    case 'destination_paused': {
      const { id, pauseId, at, until } = event
      // Another end of the same pause is no transition.
      if (before.destinations.get(id)?.pause?.id === pauseId) return null
      const properties = { pauseId, since: timeText(at), until: until === null ? null : timeText(until) }
      return { name: 'Destination Paused', identity: `${id}/${pauseId}`, at, destination: id, properties }
    }
    case 'destination_resumed': {
      const { id, pauseId, at } = event
      const since = before.destinations.get(id)?.pause?.since ?? at
      const properties = { pauseId, since: timeText(since), resumedAt: timeText(at) }
      return { name: 'Destination Resumed', identity: `${id}/${pauseId}`, at, destination: id, properties }
    }
    case 'endpoint_gone': {
      const { id, urlId, at } = event
      const properties = { urlId, since: timeText(at) }
      return { name: 'Endpoint Gone', identity: `${id}/${urlId}/${at}`, at, destination: id, properties }
    }
    case 'replay_finished':
      return replayFinished(event, before)
    default:
      return null
  }
}

/** One that was cancelled is no news: a person did it. */
function replayFinished({ id, at, totals }: ReplayEnd, { replays }: StateBefore): OperationalEvent | null {
  const replay = replays.get(id)
  if (!replay) return null
  const { pauseId, since, until, createdAt } = replay
  const [destination = null, ...others] = destinationsOf(replay)
  const properties = {
    replay: id,
    pauseId,
    only: replay.deadLetters === null ? replay.only : ['failed'],
    since: isoOrNull(since),
    until: isoOrNull(until),
    startedAt: timeText(createdAt),
    finishedAt: timeText(at),
    count: totals && sentOf(totals),
    ...totals,
  }
  return {
    name: 'Replay Finished',
    identity: id,
    at,
    destination: others.length > 0 ? null : destination,
    properties,
  }
}
