import { isDeepStrictEqual } from 'node:util'
import type { SettingsEvent } from '../../../src/core/settings/events.ts'
import { answers } from '../load/answers.ts'
import { sideDestinations } from '../load/destinations.ts'
import type { Findings } from './findings.ts'
import { judgeHeld, type HeldTally } from './held-verdict.ts'
import type { SideCall, SideEvidence } from './side-evidence.ts'
import { audienceId, fixedDestination, type SideNotes } from '../load/side-work.ts'

/** What came of all that was done beside the numbered calls. */
interface SideCounts {
  calls: number
  syncs: number
  /** Identify calls of them that lie in Kafka. */
  identifies: number
  deletions: number
  /** Users whose deletion was acknowledged. */
  deleted: number
  replayed: number
  settingsEvents: number
  deliveries: number
  delivered: number
  /** The ledger says that it was delivered, and nobody took it. */
  wronglyDelivered: number
  erased: number
  /** Dead, as their destination or the faults may have it. */
  dead: number
}

export type SideTally = SideCounts & HeldTally

/** @param settings the events that the runner's own commands came to */
export function judgeSide(
  {
    notes,
    settings,
    evidence,
  }: {
    notes: SideNotes
    settings: readonly SettingsEvent[]
    evidence: SideEvidence
  },
  findings: Findings,
): SideTally {
  const tally: SideCounts = {
    ...{ calls: notes.calls.size, syncs: notes.syncs.length, deletions: notes.deletions.length },
    ...{ identifies: 0, deleted: 0, replayed: notes.replay?.replayed ?? 0 },
    ...{ settingsEvents: settings.length + notes.names.length },
    ...{ deliveries: 0, delivered: 0, wronglyDelivered: 0, erased: 0, dead: 0 },
  }
  judgeCalls(notes, evidence, findings)
  judgeSyncs(notes, evidence, tally, findings)
  judgeDeletions(notes, evidence, tally, findings)
  judgeSettings(notes, settings, evidence, findings)
  const erasedAt = new Map(notes.deletions.flatMap(({ userIds, to }) => userIds.map((user) => [user, to])))
  judgeDeliveries(notes, evidence, erasedAt, tally, findings)
  judgeStrangers(evidence, findings)
  for (const id of evidence.delivered) {
    const said = evidence.arrivals.get(id) ?? []
    if (said.some((kind) => answers[kind] !== 'failure')) continue
    tally.wronglyDelivered++
    findings.add('wrongly delivered', `${id}: ${said.join(', ') || 'no request'}`)
  }
  return { ...tally, ...judgeHeld(notes.holds, evidence, erasedAt, findings) }
}

function judgeCalls({ calls }: SideNotes, evidence: SideEvidence, findings: Findings): void {
  const written = new Set(evidence.calls.map(({ messageId }) => messageId))
  for (const id of calls.keys())
    if (!written.has(id)) findings.add('acknowledged and not in Kafka', `side call ${id}`)
}

/** Each change was told at least once, and the topic of memberships ends with the last list. */
function judgeSyncs(
  { syncs, members }: SideNotes,
  evidence: SideEvidence,
  tally: SideCounts,
  findings: Findings,
): void {
  const identifies = Map.groupBy(
    evidence.calls.filter(({ type }) => type === 'identify'),
    ({ userId }) => userId,
  )
  for (const each of identifies.values()) tally.identifies += each.length
  for (const { from, to, changes } of syncs)
    for (const [user, member] of changes) {
      const traits = JSON.stringify({ [audienceId]: member })
      const isReported = (identifies.get(user) ?? []).some(
        (call) => call.traits === traits && call.at >= from && call.at <= to + 1_000,
      )
      if (!isReported)
        findings.add('acknowledged and not in Kafka', `the call of ${user}, ${member}, sync at ${from}`)
    }
  const differs = new Set([...members, ...evidence.members])
  for (const user of differs)
    if (members.has(user) !== evidence.members.has(user))
      findings.add('memberships lost', `${user} is ${members.has(user) ? 'no' : 'still a'} member in Kafka`)
}

function judgeDeletions(
  { deletions }: SideNotes,
  evidence: SideEvidence,
  tally: SideCounts,
  findings: Findings,
): void {
  const deletes = new Set(evidence.calls.filter(({ type }) => type === 'delete').map(({ userId }) => userId))
  for (const { id, userIds, deleteCalls } of deletions) {
    if (deleteCalls !== userIds.length)
      findings.add('deletions', `${id}: ${deleteCalls} delete calls for ${userIds.length} users`)
    for (const user of userIds) {
      tally.deleted++
      if (!evidence.erasures.has(`${id} ${user}`)) findings.add('erasures lost', `${user} of ${id}`)
      if (!deletes.has(user)) findings.add('acknowledged and not in Kafka', `the delete call of ${user}`)
    }
  }
}

function judgeSettings(
  { names }: SideNotes,
  acknowledged: readonly SettingsEvent[],
  { settings }: SideEvidence,
  findings: Findings,
): void {
  // As JSON knows them: what is undefined is not there.
  const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))
  const written = settings.map(plain)
  for (const event of acknowledged) {
    const at = written.findIndex((each) => isDeepStrictEqual(each, plain(event)))
    if (at < 0) findings.add('settings lost', JSON.stringify(event))
    else written.splice(at, 1)
  }
  for (const { name } of names)
    if (!settings.some((event) => event.type === 'destination_updated' && event.name === name))
      findings.add('settings lost', `the name ${name}`)
}

/** Each call that lies in Kafka came to each destination, or may be dead, or was erased. */
function judgeDeliveries(
  notes: SideNotes,
  evidence: SideEvidence,
  erasedAt: ReadonlyMap<string, number>,
  tally: SideCounts,
  findings: Findings,
): void {
  const calls = new Map<string, SideCall>()
  for (const call of evidence.calls) if (!calls.has(call.messageId)) calls.set(call.messageId, call)
  for (const call of calls.values())
    for (const { id: destination } of sideDestinations) {
      const id = `${call.messageId}:${destination}`
      tally.deliveries++
      const said = (evidence.arrivals.get(id) ?? []).map((kind) => answers[kind])
      const isErased = call.type !== 'delete' && call.at <= (erasedAt.get(call.userId ?? '') ?? -Infinity)
      const deadLetters = evidence.deadLetters.get(id) ?? []
      const shouldBeReplayed =
        destination === fixedDestination &&
        notes.replay &&
        deadLetters.some(({ at }) => at < notes.replay!.from)
      if (said.includes('success')) tally.delivered++
      else if (isErased) tally.erased++
      // It may have died once more while the replay still ran.
      else if (shouldBeReplayed && !deadLetters.some(({ at }) => at >= notes.replay!.from))
        findings.add('replays lost', `${id}, dead at ${deadLetters.map(({ at }) => at).join(', ')}`)
      else if (deadLetters.length > 0) tally.dead++
      else if (!said.includes('either')) findings.add('lost', `${id}: neither delivered nor dead nor erased`)
    }
}

/** Whatever came, was scheduled or is dead is of one of these calls, at one of these destinations. */
function judgeStrangers(
  { calls, arrivals, deadLetters, retryPlaces }: SideEvidence,
  findings: Findings,
): void {
  const known = new Set(calls.map(({ messageId }) => messageId))
  const side = new Set(sideDestinations.map(({ id }) => id))
  const ids = new Set([...arrivals.keys(), ...deadLetters.keys()])
  for (const each of retryPlaces.values()) for (const id of each) ids.add(id)
  for (const id of ids) {
    const [call, destination] = id.split(':') as [string, string]
    if (!known.has(call) || !side.has(destination)) findings.add('strangers', id)
  }
}
