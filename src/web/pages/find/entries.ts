import { durationText } from '../../../core/duration.ts'
import type { Tone } from '../../components/badge.tsx'
import { msText } from '../../components/figures.ts'
import { beginsWait, reasonText, stepWords, type CallCopy } from './words.ts'

/** A line of the life of a call. */
export interface TimelineEntry {
  /** Null where only the order is known. */
  at: number | null
  name: string
  tone: Tone
  /** Destination, and URL where each is a delivery of its own. */
  who: string | null
  text: string
  /** How long it had waited. */
  waitedMs?: number | null
  dueAt?: string | null
  deadLetterId?: string | null
  isRepeat?: boolean
}

export const waitText = (ms: number): string => (ms < 60_000 ? msText(ms) : durationText(ms))

/** Each destination of a delivery by name, with its URL where that is part of the id. */
export function namesOf({ deliveries, plan }: CallCopy): Map<string, string> {
  const names = new Map<string, string>()
  for (const { deliveryId, destinationId } of plan?.destinations ?? [])
    if (deliveryId !== null) names.set(deliveryId, destinationId)
  for (const { deliveryId, destinationId, urlId } of deliveries)
    names.set(deliveryId, urlId === null ? destinationId : `${destinationId}, URL ${urlId}`)
  return names
}

/** Everything that is recorded of a copy, in order; the plan, of which no time is known, behind what it was made of. */
export function entriesOf(copy: CallCopy, startMs: number | null): TimelineEntry[] {
  const { received, plan, steps, deliveries } = copy
  const names = namesOf(copy)
  const by = { collector: 'by a collector', producer: 'from a producer' }
  const first: TimelineEntry = {
    at: startMs,
    name: 'received',
    tone: 'plain',
    who: null,
    text: `${received.receivedBy === null ? 'its record is there no more' : by[received.receivedBy]}; partition ${received.partition}, offset ${received.offset}`,
  }
  const unsure = plan?.isCertain === false ? ' (perhaps: the settings changed meanwhile)' : ''
  const lines = (plan?.destinations ?? []).map(({ destinationId, deliveryId, reason }) => ({
    who: (deliveryId !== null && names.get(deliveryId)) || destinationId,
    reason,
  }))
  const untimed = (name: string, who: string, text: string): TimelineEntry => ({
    at: null,
    name,
    tone: 'plain',
    who,
    text: text + unsure,
  })
  const given = lines.filter(({ reason }) => reason === null).map(({ who }) => who)
  const planned = [
    ...(given.length > 0 ? [untimed('planned', given.join(', '), '')] : []),
    ...lines.flatMap(({ who, reason }) =>
      reason === null ? [] : [untimed('not planned', who, `because ${reasonText(reason)}`)],
    ),
  ]
  const recorded: (TimelineEntry & { at: number })[] = []
  /** By delivery, since when it waits. */
  const waiting = new Map<string, number>()
  for (const step of steps) {
    const { deliveryId, at, what, repeat } = step
    const atMs = Date.parse(at)
    const since = deliveryId === null ? undefined : waiting.get(deliveryId)
    const ends = what !== 'replayed' && since !== undefined
    const waitedMs = ends ? Math.max(0, atMs - (step.durationMs ?? 0) - since) : null
    if (ends) waiting.delete(deliveryId!)
    if (deliveryId !== null && beginsWait(step)) waiting.set(deliveryId, atMs)
    recorded.push({
      at: atMs,
      ...stepWords(step),
      who: deliveryId === null ? null : (names.get(deliveryId) ?? deliveryId),
      waitedMs,
      dueAt: what === 'retried' || what === 'deferred' ? (step.dueAt ?? null) : null,
      deadLetterId: step.deadLetterId ?? null,
      isRepeat: repeat,
    })
  }
  for (const { deliveryId, state, at, byTally, reason } of deliveries)
    if (byTally && at !== null)
      recorded.push({
        at: Date.parse(at),
        name: state,
        tone: state === 'delivered' ? 'good' : state === 'held' ? 'warn' : 'plain',
        who: names.get(deliveryId)!,
        text: state === 'held' ? `by pause ${reason}` : `by then, as a tally of the ledger says`,
      })
  return [first, ...planned, ...recorded.sort((a, b) => a.at - b.at)]
}
