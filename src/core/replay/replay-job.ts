import { z } from 'zod'
import { callTypes } from '../call/analytics-call.ts'
import { noneText } from '../delivery/dead-letter-filter.ts'
import { deadLetterReasons } from '../delivery/delivery.ts'
import { stateAfter, type Transitions } from '../transitions.ts'

/**
 * What a delivery was when its replay was made. `held`: finished without an attempt, because its destination was paused.
 * `failed`: a dead letter. `skipped`: never planned. `delivered`: all others, those that still wait in a tier included.
 */
export const replayKinds = ['held', 'skipped', 'failed', 'delivered'] as const
export type ReplayKind = (typeof replayKinds)[number]
/** What is sent: `raw` is a record that never became a delivery, as it was, to the topic that it came from. */
export const sentKinds = [...replayKinds, 'raw'] as const
export type SentKind = (typeof sentKinds)[number]
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

const count = z.number()
const text = z.string()
const at = z.number().int()
const texts = z.array(text).nullable()

/**
 * How far a replay is, and what it did. Settings events of earlier versions have none of what is 0 by default.
 */
export const replayTotals = z.object({
  held: count,
  skipped: count,
  failed: count,
  delivered: count,
  raw: count.default(0),
  /** Records that were looked at. */
  looked: count,
  /** Not sent: their user was erased since. */
  erased: count,
  /** Not sent: larger than a topic takes, or dead letters that cannot be replayed. */
  refused: count,
  /** Not sent: further dead letters of a delivery. */
  repeated: count.default(0),
  /** Offsets that retention took before they were looked at. */
  lost: count,
})
export type ReplayTotals = z.output<typeof replayTotals>

export const noTotals = (): ReplayTotals => ({
  held: 0,
  skipped: 0,
  failed: 0,
  delivered: 0,
  raw: 0,
  looked: 0,
  erased: 0,
  refused: 0,
  repeated: 0,
  lost: 0,
})

export function addTotals(sum: ReplayTotals, more: Readonly<ReplayTotals>): void {
  for (const key of Object.keys(sum) as (keyof ReplayTotals)[]) sum[key] += more[key]
}

export const sentOf = (totals: Readonly<ReplayTotals>): number =>
  sentKinds.reduce((sum, kind) => sum + totals[kind], 0)

/** Calls of the log for one destination. Times are epoch ms, by which the broker appended the calls' records. */
const callRange = z.object({
  deadLetters: z.null().default(null),
  destinationId: text,
  only: z.array(z.enum(replayKinds)),
  since: at,
  /** Not included. */
  until: at,
  /** Null: whatever the destination's settings let pass. */
  types: z.array(z.enum(callTypes)).nullable(),
  /** Names of `track` events. */
  events: texts,
  user: text.nullable(),
  /** Of the one call that is meant; null: of any. */
  messageId: text.nullable().default(null),
  /** A second, at most; null for as many as the forwarders take. */
  rate: count.nullable(),
})
export type CallRange = z.output<typeof callRange>

/** Which dead letters are chosen, spelled as in the admin API. Null lets everything pass. */
const deadLetterChoice = z.object({
  /** `<partition>-<offset>`; before it is known where they lie, ids of deliveries as well. */
  ids: texts,
  reason: texts,
  destination: texts,
  status: texts,
  kinds: z
    .array(
      z.object({
        reason: z.enum(deadLetterReasons).nullable(),
        status: z.union([text, count]).nullable(),
        destinationId: text.nullable(),
      }),
    )
    .nullable(),
})
export type DeadLetterChoice = z.output<typeof deadLetterChoice>

/** Dead letters, of any destination, or of none. Times are epoch ms, at which they failed; null for no bound. */
const deadLetterRange = z.object({
  deadLetters: deadLetterChoice,
  since: at.nullable(),
  until: at.nullable(),
  rate: count.nullable(),
})
export type DeadLetterRange = z.output<typeof deadLetterRange>

/** What is asked for. */
export type ReplayRange = CallRange | DeadLetterRange

/** Where the dead letters end that are taken: those that come of the replay itself lie behind. */
const topicEnds = { ends: z.array(z.object({ partition: count, offset: count })) }
export type TopicEnds = z.output<z.ZodObject<typeof topicEnds>>

/** What a replay works by: what is asked for, with where it lies. */
export type PlacedRange = CallRange | (DeadLetterRange & TopicEnds)

const jobFields = {
  id: text,
  /** Made by the end of that pause: takes what it held, whenever that was appended. */
  pauseId: text.nullable(),
  createdAt: at,
  /** Where `since` is earlier than what the topic still held then: about its beginning. Null: nothing is missing. */
  keptSince: at.nullable(),
  state: z.enum(replayStates),
  changedAt: at,
  /** At the end; while it runs they stand beside its progress. */
  totals: replayTotals.nullable(),
}
const callReplay = callRange.extend(jobFields)
const deadLetterReplay = deadLetterRange.extend({ ...topicEnds, ...jobFields })

export type CallReplay = z.output<typeof callReplay>
export type DeadLetterReplay = z.output<typeof deadLetterReplay>
/** A replay: it goes on after a crash of any process, on whichever console is there. */
export const replayJob = z.union([callReplay, deadLetterReplay])
export type ReplayJob = z.output<typeof replayJob>

/** Whoever names one call wants it sent, whatever it was. */
export const kindsUnlessChosen = (messageId: string | null): ReplayKind[] => [
  ...(messageId === null ? defaultReplayKinds : replayKinds),
]

/** The destinations that are named. */
export function destinationsOf(range: ReplayRange): string[] {
  if (range.deadLetters === null) return [range.destinationId]
  const { destination, kinds } = range.deadLetters
  const ofKinds = (kinds ?? []).flatMap((kind) => kind.destinationId ?? [])
  const named = [...(destination ?? []), ...ofKinds]
  return [...new Set(named.filter((id) => id !== noneText))]
}

/** Whether they may send the same. */
export function overlaps(one: ReplayRange, other: ReplayRange): boolean {
  if (one.deadLetters === null)
    return other.deadLetters === null ? callsOverlap(one, other) : mayFail(one, other)
  return other.deadLetters === null ? mayFail(other, one) : deadLettersOverlap(one, other)
}

const callsOverlap = (one: CallRange, other: CallRange): boolean =>
  one.destinationId === other.destinationId &&
  one.since < other.until &&
  other.since < one.until &&
  mayMeet(listOf(one.messageId), listOf(other.messageId))

/** Whether one of the calls may be among the dead letters: when it failed says little of when it came in. */
const mayFail = ({ only, destinationId }: CallRange, { deadLetters }: DeadLetterRange): boolean =>
  only.includes('failed') && mayMeet(deadLetters.destination, [destinationId])

const deadLettersOverlap = (one: DeadLetterRange, other: DeadLetterRange): boolean =>
  (one.since ?? 0) < (other.until ?? Infinity) &&
  (other.since ?? 0) < (one.until ?? Infinity) &&
  (['ids', 'reason', 'destination', 'status'] as const).every((by) =>
    mayMeet(one.deadLetters[by], other.deadLetters[by]),
  )

const listOf = (one: string | null): string[] | null => (one === null ? null : [one])

/** Null is anything. */
function mayMeet(one: readonly string[] | null, other: readonly string[] | null): boolean {
  if (one === null || other === null) return true
  const known = new Set(one)
  return other.some((each) => known.has(each))
}
