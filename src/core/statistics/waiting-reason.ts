// Why a delivery waits, in one sentence. `why`, the API, the page of a call and that of a destination have it from here. The
// page has it in its script: it imports no value.
import type { BreakerPhase } from '../pacing/breaker.ts'
import type { Health } from './health.ts'

/** What explains most comes first. */
export const waitCauses = [
  'disabled',
  'held',
  'no_forwarder',
  'nothing_read',
  'order',
  'no_token',
  'down',
  'asked_to_wait',
  'attempt_failed',
  'put_off',
] as const
export type WaitCause = (typeof waitCauses)[number]

/** How an attempt ended. */
interface Answered {
  outcome: string
  /** Null without a response. */
  status: number | null
}

/** How a URL is now. Times are epoch ms. */
export interface UrlNow {
  urlId: string
  isGone: boolean
  /** Null where no live forwarder has sent to it. */
  breaker: BreakerPhase | null
  /** Since when it is down, or its login fails. */
  downSince: number | null
  /** Until then nothing is sent to it. */
  pausedUntil: number | null
  /** Its login fails. */
  isWithoutToken: boolean
  /** While it is not well. */
  lastFailure: Answered | null
}

export interface DestinationNow {
  health: Pick<Health, 'word' | 'why'>
  urls: readonly UrlNow[]
}

/** What the ledger and the record in its tier say of a delivery that waits. Times are epoch ms. */
export interface WaitingDelivery {
  /** Of a destination that delivers to every URL. */
  urlId: string | null
  /** It lies in a retry tier. Otherwise its call was not taken from Kafka yet, or it is in flight. */
  isInTier: boolean
  /** It waits for an earlier call of its user. */
  isInOrder: boolean
  /** Its tier, and the receiver by `Retry-After`, let it be tried then. */
  dueAt: number | null
  lastAttempt: (Answered & { at: number }) | null
  /** Why it was put off since. */
  putOff: string | null
}

export interface WaitReason {
  cause: WaitCause
  /** Since when that is so, or when its last attempt was. */
  since: number | null
  outcome: string | null
  status: number | null
  detail: string | null
  /** How many URLs it is about. */
  urls: number
  /** When it is tried next; null where nobody can know. */
  nextAt: number | null
}

/** Why a delivery waits; null where nothing is known that keeps it. */
export function reasonOfWait(
  { urlId, isInTier, isInOrder, dueAt, lastAttempt, putOff }: WaitingDelivery,
  destination: DestinationNow | null,
): WaitReason | null {
  const reason = (cause: WaitCause, more: Partial<WaitReason> = {}): WaitReason => ({
    ...{ cause, since: null, outcome: null, status: null, detail: null, urls: 1, nextAt: dueAt },
    ...more,
  })
  const asItIs = destination && reasonOfState(destination, urlId)
  // What is not in a tier is tried as soon as somebody reads it, whatever its URL answered to others.
  if (!isInTier) return asItIs && isUnread(asItIs.cause) ? asItIs : null
  if (asItIs && isNotSentTo(asItIs.cause)) return { ...asItIs, nextAt: dueAt }
  if (isInOrder) return reason('order', { nextAt: null })
  if (asItIs) return { ...asItIs, nextAt: later(dueAt, asItIs.nextAt) }
  if (putOff !== null) return reason('put_off', { detail: putOff })
  if (lastAttempt) {
    const { at, outcome, status } = lastAttempt
    return reason('attempt_failed', { since: at, outcome, status })
  }
  return reason('put_off')
}

const isUnread = (cause: WaitCause): boolean => cause === 'no_forwarder' || cause === 'nothing_read'
const isNotSentTo = (cause: WaitCause): boolean => cause === 'disabled' || cause === 'held' || isUnread(cause)

const later = (one: number | null, other: number | null): number | null =>
  one === null || other === null ? (one ?? other) : Math.max(one, other)

/** What keeps deliveries of a destination, or of one of its URLs, from being tried; null where nothing does. */
export function reasonOfState(
  { health: { word, why }, urls }: DestinationNow,
  urlId: string | null = null,
): WaitReason | null {
  const asked = urls.filter((url) => !url.isGone && (urlId === null || url.urlId === urlId))
  const reason = (cause: WaitCause, more: Partial<WaitReason> = {}): WaitReason => ({
    ...{ cause, since: null, outcome: null, status: null, detail: null, urls: asked.length, nextAt: null },
    ...more,
  })
  if (word === 'disabled' || word === 'held') return reason(word)
  if (why === 'no_forwarder' || why === 'nothing_read') return reason(why)
  if (asked.length === 0) return null
  const since = firstOf(asked.map(({ downSince }) => downSince))
  // The first that is tried again lets them go on.
  const nextAt = firstOf(asked.map(({ pausedUntil }) => pausedUntil))
  const { outcome = null, status = null } = asked.find(({ lastFailure }) => lastFailure)?.lastFailure ?? {}
  if (asked.every(({ isWithoutToken }) => isWithoutToken)) return reason('no_token', { since, nextAt })
  if (asked.every(({ breaker, isWithoutToken }) => isWithoutToken || isDown(breaker)))
    return reason('down', { since, nextAt, outcome, status })
  if (asked.every(({ breaker }) => breaker === 'paused'))
    return reason('asked_to_wait', { nextAt, outcome, status })
  return null
}

const isDown = (breaker: BreakerPhase | null): boolean => breaker === 'open' || breaker === 'half_open'

const firstOf = (times: readonly (number | null)[]): number | null => {
  const known = times.filter((at) => at !== null)
  return known.length === 0 ? null : Math.min(...known)
}

interface Clock {
  /** Epoch ms. */
  now: number
  /** A time as the reader knows it. */
  timeText: (at: number) => string
}

/** `Its URL answers 500 since 18:19; next try 18:52.` */
export function waitSentence(reason: WaitReason, { now, timeText }: Clock): string {
  const { cause, since, detail, urls, nextAt } = reason
  const one = urls === 1
  const from = since === null ? '' : ` since ${timeText(since)}`
  const next =
    nextAt === null ? '' : nextAt > now ? `; next try ${timeText(nextAt)}` : '; its next try is due now'
  switch (cause) {
    case 'disabled':
      return `Its destination is disabled: it is skipped when it comes due${when(' at ', nextAt, timeText)}.`
    case 'held':
      return `Its destination is paused: it is held when it comes due${when(' at ', nextAt, timeText)}.`
    case 'no_forwarder':
      return 'No forwarder is running: nothing is sent.'
    case 'nothing_read':
      return 'No forwarder reads calls yet: nothing is sent.'
    case 'order':
      return 'It waits for an earlier call of its user, which has failed.'
    case 'no_token':
      return `No OAuth2 token is to be had for its login${from}${next}.`
    case 'down':
      return one
        ? `Its URL ${answersText(reason)}${from}${next}.`
        : `Each of its URLs is down${from}: one ${answersText(reason)}${next}.`
    case 'asked_to_wait':
      return `${one ? 'Its URL' : 'Each of its URLs'} asked for a pause (Retry-After)${next}.`
    case 'attempt_failed':
      return `Its URL ${answeredText(reason)}${when(' at ', since, timeText)}${next}.`
    case 'put_off':
      return `It was put off without an attempt${detail === null ? '' : `: ${detail}`}${next}.`
  }
}

const when = (before: string, at: number | null, timeText: Clock['timeText']): string =>
  at === null ? '' : `${before}${timeText(at)}`

function answersText({ outcome, status }: Pick<WaitReason, 'outcome' | 'status'>): string {
  if (status !== null) return `answers ${status}`
  return (outcome !== null && failing[outcome]) || 'takes nothing'
}

function answeredText({ outcome, status }: Pick<WaitReason, 'outcome' | 'status'>): string {
  if (status !== null) return `answered ${status}`
  return (outcome !== null && failed[outcome]) || 'did not take it'
}

const failing: Record<string, string> = {
  timeout: 'does not answer in time',
  network: 'cannot be connected to',
  tls: 'shows a certificate that is not trusted',
  blocked: 'has an address that is not allowed',
  proxy: 'cannot be reached through the forward proxy',
}

const failed: Record<string, string> = {
  timeout: 'did not answer in time',
  network: 'could not be connected to',
  tls: 'showed a certificate that is not trusted',
  blocked: 'had an address that is not allowed',
  proxy: 'could not be reached through the forward proxy',
}
