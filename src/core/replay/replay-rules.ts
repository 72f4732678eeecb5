import { callTypes, maxMessageIdLength } from '../call/analytics-call.ts'
import { maxEventNameLength, maxEvents } from '../call/filter.ts'
import { accepted, refused, faultIf, type Fault } from '../decision.ts'
import type { Decision } from '../settings/events.ts'
import type { Destination, SettingsAggregate } from '../settings/settings.ts'
import type { ReplayCommand } from './replay-events.ts'
import {
  canTurn,
  isUnfinished,
  replayKinds,
  type CallRange,
  type DeadLetterRange,
  type ReplayJob,
  type ReplayRange,
} from './replay-job.ts'

export const maxUnfinishedReplays = 20
export const maxReplayRate = 999_999
export const maxDeadLetterIds = 1_000
/** About 1,000 kinds of dead letters. */
export const maxChoiceLength = 131_072
const maxUserLength = 1_024

const turns = {
  pause_replay: ['pause', 'replay_paused'],
  resume_replay: ['resume', 'replay_resumed'],
  cancel_replay: ['cancel', 'replay_cancelled'],
  finish_replay: ['finish', 'replay_finished'],
} as const

/** One for each pause, whoever starts it. */
export const heldReplayId = (pauseId: string): string => `held-${pauseId}`

export function decideReplay(command: ReplayCommand, state: SettingsAggregate): Decision {
  if (command.type === 'start_replay') return decideStart(command, state)
  const { id, at } = command
  const replay = state.replays.get(id)
  if (!replay) return refused('not_found', 'id', `replay ${JSON.stringify(id)} does not exist`)
  const [turn, type] = turns[command.type]
  if (!canTurn(replay.state, turn)) {
    const isDone = replay.state === stateNames[turn]
    return isDone ? accepted(null) : refused('conflict', 'id', `replay ${id} is ${replay.state} already`)
  }
  if (type === 'replay_paused' || type === 'replay_resumed') return accepted({ type, id, at })
  return accepted({ type, id, at, totals: 'totals' in command ? command.totals : null })
}

const stateNames = { pause: 'paused', resume: 'running', cancel: 'cancelled', finish: 'finished' } as const

type Start = Extract<ReplayCommand, { type: 'start_replay' }>

function decideStart({ id, terms, pauseId, keptSince, at }: Start, state: SettingsAggregate): Decision {
  const { destinations, replays } = state
  // Of several consoles that see a pause end, one starts its replay.
  if (pauseId !== null && replays.has(id)) return accepted(null)
  const unfinished = [...replays.values()].filter((each) => isUnfinished(each) && each.pauseId === null)
  const faults = [
    ...termsFaults(terms, destinations, at),
    ...faultIf(
      pauseId === null && unfinished.length >= maxUnfinishedReplays,
      'conflict',
      terms.deadLetters === null ? 'destinationId' : 'deadLetters',
      `${maxUnfinishedReplays} replays are unfinished already: wait for one, or cancel one`,
    ),
  ]
  if (pauseId === null && faults.length > 0) return { accepted: false, faults }
  const replay: ReplayJob = {
    id,
    ...terms,
    pauseId,
    createdAt: at,
    keptSince,
    state: 'running',
    changedAt: at,
    totals: null,
  }
  return accepted({ type: 'replay_started', replay })
}

/** What is wrong with what is asked for. */
export function termsFaults(
  terms: ReplayRange,
  destinations: ReadonlyMap<string, Destination>,
  now: number,
): Fault[] {
  const faults = terms.deadLetters === null ? callFaults(terms, destinations, now) : deadLetterFaults(terms)
  const { since, until, rate } = terms
  return [
    ...faults,
    ...usage(!isTime(since), 'since', 'it is no time'),
    ...usage(!isTime(until), 'until', 'it is no time'),
    ...usage(
      since !== null && until !== null && since >= until,
      'since',
      'it is not before until; nothing can lie between them',
    ),
    ...rateFaults(rate),
  ]
}

export const rateFaults = (rate: number | null): Fault[] =>
  usage(
    rate !== null && !(rate > 0 && rate <= maxReplayRate),
    'rate',
    `it must be above 0 and at most ${maxReplayRate} a second`,
  )

const usage = (isWrong: boolean, field: string, message: string): Fault[] =>
  faultIf(isWrong, 'usage', field, message)

const isTime = (at: number | null): boolean => at === null || (Number.isSafeInteger(at) && at >= 0)

/** A destination that is disabled would skip all of it. */
function callFaults(
  { destinationId, only, until, types, events, user, messageId }: CallRange,
  destinations: ReadonlyMap<string, Destination>,
  now: number,
): Fault[] {
  const destination = destinations.get(destinationId)
  const isUnknown = destination === undefined
  const isOff = destination?.enabled === false
  const unknownKinds = only.filter((kind) => !replayKinds.includes(kind))
  const unknownTypes = (types ?? []).filter((type) => !callTypes.includes(type))
  return [
    ...faultIf(
      isUnknown,
      'not_found',
      'destinationId',
      `destination ${JSON.stringify(destinationId)} does not exist`,
    ),
    ...faultIf(
      isOff,
      'conflict',
      'destinationId',
      `destination ${destinationId} is disabled, so that everything would be skipped: enable it first`,
    ),
    ...usage(only.length === 0, 'only', `at least one is needed of ${replayKinds.join(', ')}`),
    ...usage(
      unknownKinds.length > 0,
      'only',
      `${unknownKinds.join(', ')} is none of ${replayKinds.join(', ')}`,
    ),
    // What is named has come in, whatever the clocks of brokers and of this process say.
    ...usage(
      messageId === null && until > now,
      'until',
      'it lies in the future: only what has come in can be replayed',
    ),
    ...usage(types?.length === 0, 'types', 'at least one call type is needed'),
    ...usage(
      unknownTypes.length > 0,
      'types',
      `${unknownTypes.join(', ')} is none of ${callTypes.join(', ')}`,
    ),
    ...usage(events?.length === 0, 'events', 'at least one event is needed'),
    ...usage((events?.length ?? 0) > maxEvents, 'events', `at most ${maxEvents} events can be named`),
    ...usage(
      (events ?? []).some((name) => name === '' || name.length > maxEventNameLength),
      'events',
      `the name of an event has 1-${maxEventNameLength} characters`,
    ),
    ...usage(
      user !== null && (user === '' || user.length > maxUserLength),
      'user',
      `a user id has 1-${maxUserLength} characters`,
    ),
    ...usage(
      messageId !== null && (messageId === '' || messageId.length > maxMessageIdLength),
      'messageId',
      `a messageId has 1-${maxMessageIdLength} characters`,
    ),
  ]
}

/** Every process keeps the settings in memory: where the chosen ones lie is short, and what else they are chosen by is bounded. */
function deadLetterFaults({ deadLetters, since, until }: DeadLetterRange): Fault[] {
  const { ids, ...by } = deadLetters
  const isFiltered = [since, until, ...Object.values(by)].some((value) => value !== null)
  return [
    ...usage(
      Object.values(deadLetters).some((list) => list?.length === 0),
      'deadLetters',
      'what is chosen by needs at least one value',
    ),
    ...usage(ids !== null && isFiltered, 'deadLetters.ids', 'they go with nothing else to choose by'),
    ...usage(
      (ids?.length ?? 0) > maxDeadLetterIds,
      'deadLetters.ids',
      `at most ${maxDeadLetterIds} can be named`,
    ),
    ...usage(
      JSON.stringify(by).length > maxChoiceLength,
      'deadLetters',
      `what is chosen by has at most ${maxChoiceLength} characters as JSON`,
    ),
  ]
}
