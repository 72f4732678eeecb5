// What the API says of a call's life, in words.
import { durationText } from '../../../core/duration.ts'
import type { MessageAnswer } from '../../api/routes.ts'
import { msText, countOf, remarkOf, wordsOf } from '../../components/figures.ts'
import type { Tone } from '../../components/text.tsx'

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
  /** Of which delivery; none where it is of the whole call. */
  deliveryId?: string | null
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
      deliveryId,
    })
  }
  for (const { deliveryId, state, at, byTally, reason } of deliveries)
    if (byTally && at !== null)
      recorded.push({
        at: Date.parse(at),
        name: state,
        deliveryId,
        tone: state === 'delivered' ? 'good' : state === 'held' ? 'warn' : 'plain',
        who: names.get(deliveryId)!,
        text: state === 'held' ? `by pause ${reason}` : `by then, as a tally of the ledger says`,
      })
  return [first, ...planned, ...recorded.sort((a, b) => a.at - b.at)]
}

export type CallCopy = MessageAnswer['copies'][number]
export type CallStep = CallCopy['steps'][number]
export type CallDelivery = CallCopy['deliveries'][number]
export type CallPlan = NonNullable<CallCopy['plan']>
type PlanReason = NonNullable<CallPlan['destinations'][number]['reason']>

/** Why a destination of the source does not get a call. */
const planReasons: Record<PlanReason, string> = {
  source_disabled: 'its source was disabled',
  destination_disabled: 'the destination was disabled',
  integrations: 'the call’s integrations keep it away',
  suppressed: 'the user was suppressed',
  not_chosen: 'the destination does not choose this type or event',
  no_consent: 'the call denies a consent that the destination needs',
  filtered: 'the destination’s condition does not hold for it',
}

const skipReasons: Record<string, string> = {
  ...planReasons,
  no_destination: 'the source had no destination',
  urls_removed: 'the URLs still to try were taken out',
}

/**
 * When a copy came in, epoch ms; null where that is not known. A producer can have written a time that no calendar has:
 * then it is the broker's.
 */
export function receivedAt({ received: { receivedAt, appendedAt } }: CallCopy): number | null {
  const times = [receivedAt, appendedAt].map((at) => (at === null ? NaN : Date.parse(at)))
  return times.find((at) => !Number.isNaN(at)) ?? null
}

/** What comes next waits until it is due. */
export const beginsWait = ({ what }: CallStep): boolean =>
  what === 'retried' || what === 'deferred' || what === 'replayed'

export const reasonText = (reason: string): string => skipReasons[reason] ?? wordsOf(reason)

const times = (attempts: number | null): string =>
  attempts === null ? 'attempts that nobody counted' : countOf(attempts, 'attempt')

/** What became of a delivery, beside its state. */
export function endText(
  end: Pick<CallDelivery, 'state' | 'byTally' | 'reason' | 'attempts' | 'tier'>,
): string {
  const { state, byTally, reason, attempts, tier } = end
  switch (state) {
    case 'open':
      return 'It waits in Kafka, or is in flight.'
    case 'waiting':
      if (tier === 'strict') return `In the order of its user’s calls, after ${times(attempts)} before that.`
      return `In tier ${tier}, after ${times(attempts)}.`
    case 'delivered':
      return byTally ? 'At the first attempt, by then at the latest.' : `After ${times(attempts)}.`
    case 'dead_letter':
      return `${reason === null ? 'Of an unknown reason' : wordsOf(reason)}, after ${times(attempts)}.`
    case 'skipped':
      return reason === null ? 'Why is not recorded.' : `Because ${reasonText(reason)}.`
    case 'erased':
      return 'A deletion request covers it.'
    case 'held':
      return `By pause ${reason}, after ${times(attempts)}.`
    case 'unknown':
      return 'Finished; what is left of the ledger does not say how.'
  }
}

/** What a step is called, and what it says. */
export function stepWords(step: CallStep): { name: string; tone: Tone; text: string } {
  const { what, attempt, attempts, urlId, outcome, status, durationMs, reason, detail, tier } = step
  const details = [reason && reasonText(reason), detail].filter(Boolean).join(': ')
  switch (what) {
    case 'attempt': {
      const at = urlId ? ` at URL ${urlId}` : ''
      if (outcome === 'deferred')
        return { name: 'put off', tone: 'warn', text: `${detail ?? 'no attempt now'}${at}` }
      const took = typeof durationMs === 'number' ? ` after ${msText(durationMs)}` : ''
      const came = typeof status === 'number' ? `answered ${status}` : wordsOf(outcome ?? 'unknown')
      const remark = remarkOf({ status: status ?? null, detail: detail ?? null })
      const more = remark ? `: ${remark}` : ''
      return {
        name: `attempt ${attempt ?? '?'}`,
        tone: outcome === 'success' ? 'good' : 'bad',
        text: `${came}${took}${at}${more}`,
      }
    }
    case 'retried':
    case 'deferred':
      return {
        name: what === 'retried' ? 'retry scheduled' : 'deferred',
        tone: 'warn',
        text: `to tier ${tier ?? '?'}${details && ` (${details})`}`,
      }
    case 'replayed':
      return {
        name: 'sent again',
        tone: 'plain',
        text: step.replay ? `by ${step.replay}` : `as a dead letter, through tier ${tier}`,
      }
    case 'dead_lettered':
      return { name: 'dead letter', tone: 'bad', text: details || 'of an unknown reason' }
    case 'delivered':
      return {
        name: 'delivered',
        tone: 'good',
        text: typeof attempts === 'number' ? `after ${times(attempts)}` : '',
      }
    case 'held':
      return { name: 'held', tone: 'warn', text: reason ? `by pause ${reason}` : '' }
    case 'skipped':
    case 'erased':
      return { name: what, tone: 'plain', text: details }
  }
}
