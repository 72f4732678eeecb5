import { plannedWithinMs } from '../../../src/core/replay/replay-facts.ts'
import { replayOwner } from '../../../src/core/replay/replayed-delivery.ts'
import { heldReplayId } from '../../../src/core/replay/replay-rules.ts'
import { answers } from '../load/answers.ts'
import { heldDestination, type HoldNotes } from '../load/side-holds.ts'
import type { Findings } from './findings.ts'
import type { SideEvidence } from './side-evidence.ts'

/** For so long after a change of the settings it is not known by which of them a call was planned. */
const unclearMs = 2 * plannedWithinMs

/** What came of a destination that was paused and resumed. */
export interface HeldTally {
  pauses: number
  /** Deliveries that a pause held; some more than once. */
  held: number
  /** Of them, for their user was deleted before the replay. */
  heldAndErased: number
  /** Of them, for they had been delivered before. */
  heldAndDelivered: number
  /** Deliveries that were sent once more, of all that it had had; and of those that it may not have had. */
  sentAgain: number
  sentAgainUnderOwnId: number
}

/** @param erasedAt by user: up to when (epoch ms) its calls may be erased */
export function judgeHeld(
  notes: HoldNotes,
  evidence: SideEvidence,
  erasedAt: ReadonlyMap<string, number>,
  findings: Findings,
): HeldTally {
  const tally: HeldTally = {
    pauses: notes.pauses.length,
    held: 0,
    heldAndErased: 0,
    heldAndDelivered: 0,
    sentAgain: 0,
    sentAgainUnderOwnId: 0,
  }
  judgeReplays(notes, evidence, findings)
  judgeWhatWasHeld(evidence, erasedAt, tally, findings)
  judgeSentAgain(notes, evidence, erasedAt, tally, findings)
  return tally
}

/** Each pause was ended, and has a replay that was finished once. */
function judgeReplays(
  { pauses, again, replays }: HoldNotes,
  evidence: SideEvidence,
  findings: Findings,
): void {
  const { settings } = evidence
  const times = (matches: (event: (typeof settings)[number]) => boolean) => settings.filter(matches).length
  for (const { id } of pauses)
    for (const type of ['destination_paused', 'destination_resumed'] as const)
      if (times((event) => event.type === type && event.pauseId === id) !== 1)
        findings.add('settings lost', `${type} ${id}`)
  for (const id of [...pauses.map((pause) => heldReplayId(pause.id)), ...(again ? [again.id] : [])]) {
    const state = replays.find((replay) => replay.id === id)?.state ?? 'not there'
    const finished = times((event) => event.type === 'replay_finished' && event.id === id)
    if (state !== 'finished' || finished !== 1)
      findings.add('replays that do not end', `${id} is ${state}, and was finished ${finished} times`)
  }
}

const isErased = (
  { type, userId, at }: { type: string; userId: string | null; at: number },
  erasedAt: ReadonlyMap<string, number>,
): boolean => type !== 'delete' && at <= (erasedAt.get(userId ?? '') ?? -Infinity)

/** Whatever the ledger says that a pause held, its replay has sent; but for what was erased. */
function judgeWhatWasHeld(
  { calls, arrivals, held, retryPlaces, replayed }: SideEvidence,
  erasedAt: ReadonlyMap<string, number>,
  tally: HeldTally,
  findings: Findings,
): void {
  const idsAt = new Map(retryPlaces)
  const callById = new Map(calls.map((call) => [call.messageId, call]))
  for (const { messageId, place } of calls) idsAt.set(place, new Set([`${messageId}:${heldDestination}`]))
  for (const [place, pauseIds] of held)
    for (const pauseId of pauseIds) {
      const ids = idsAt.get(place)
      if (ids === undefined) findings.add('strangers', `${place} is held by ${pauseId}`)
      for (const id of ids ?? []) {
        tally.held++
        const call = callById.get(id.slice(0, id.indexOf(':')))
        if (!call) findings.add('strangers', `${place} is held by ${pauseId}`)
        else if (replayed.get(id)?.has(replayOwner(heldReplayId(pauseId)))) continue
        else if (isErased(call, erasedAt)) tally.heldAndErased++
        // Another forwarder had delivered it, and could not commit: its replay sends it to nobody twice.
        else if (arrivals.get(id)?.some((kind) => answers[kind] === 'success')) tally.heldAndDelivered++
        else findings.add('held and not sent', `${id} at ${place}, by the pause ${pauseId}`)
      }
    }
}

/**
 * All of it came once more: what it has had under an id of its own, and under its own id what was dead, or what nobody
 * can say of, since its settings changed just then.
 */
function judgeSentAgain(
  { begunAt, again }: HoldNotes,
  { calls, arrivals, deadLetters, replayed }: SideEvidence,
  erasedAt: ReadonlyMap<string, number>,
  tally: HeldTally,
  findings: Findings,
): void {
  const known = new Set<string>()
  for (const call of again ? calls : []) {
    const own = `${call.messageId}:${heldDestination}`
    const id = `${own}:${again!.id}`
    if (known.has(id)) continue
    known.add(id)
    if (call.at >= again!.until) continue
    const said = (arrivals.get(id) ?? []).map((kind) => answers[kind])
    const isOwn = replayed.get(own)?.has(replayOwner(again!.id)) ?? false
    if (said.includes('success')) tally.sentAgain++
    else if (said.includes('either') || deadLetters.has(id) || isErased(call, erasedAt)) continue
    else if (isOwn) tally.sentAgainUnderOwnId++
    else findings.add('replays lost', `${id}, ${replayed.has(id) ? 'which was sent' : 'which was not sent'}`)
    if (isOwn && call.at > begunAt + unclearMs && !deadLetters.has(own))
      findings.add('replays under an id that had been taken', own)
  }
  for (const id of [...replayed.keys(), ...arrivals.keys()])
    if (id.includes(`:${heldDestination}:`) && !known.has(id)) findings.add('strangers', id)
}
