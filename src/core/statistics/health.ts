// One word for how a destination is. Every place that says it takes it from here: overview, lists, API, commands. The page
// has it in its script: it imports no other value.
import type { BreakerPhase } from '../pacing/breaker.ts'

/** What needs somebody most comes first. */
export const healthWords = [
  'gone',
  'down',
  'failing',
  'asked_to_wait',
  'degraded',
  'not_known',
  'held',
  'delivering',
  'idle',
  'disabled',
] as const
export type HealthWord = (typeof healthWords)[number]

/** Why it is that word; null where the word says it. */
export const healthReasons = [
  'no_token',
  'no_success',
  'few_successes',
  'rate_limited',
  'some_urls',
  'ledger_unread',
  'no_forwarder',
  'nothing_read',
  'partitions_unread',
] as const
export type HealthReason = (typeof healthReasons)[number]

/**
 * What forwarders read of the topics. `no_forwarder`: none lives. `nothing`: those that live read no calls, as before
 * their group has shared the partitions. `some`: partitions that were read are read by nobody now. `unknown`: the
 * ledger was not read yet.
 */
export type Reading = 'all' | 'some' | 'nothing' | 'no_forwarder' | 'unknown'

/** How its attempts and deliveries of a while ended. */
export interface JudgedOutcomes {
  attempts: number
  succeeded: number
  /** Attempts that were answered 429. */
  busy: number
  delivered: number
  deadLettered: number
}

export interface HealthFacts {
  enabled: boolean
  isPaused: boolean
  urls: readonly {
    isGone: boolean
    /** Null where no live forwarder has sent to it. */
    breaker: BreakerPhase | null
    /** Epoch ms; null for not. */
    pausedUntil: number | null
    /** Its login fails. */
    isWithoutToken: boolean
  }[]
  reading: Reading
  /** Of the last ten minutes; where nothing ended in them, of the last hour. */
  recent: JudgedOutcomes
  /** Epoch ms. */
  now: number
}

export interface Health {
  word: HealthWord
  why: HealthReason | null
  /** From 0 to 1, of attempts or of deliveries that came to an end, whichever is less; null where none did. */
  successRate: number | null
}

/** The stretch by which it is judged, and the longer one where nothing ended in that, in ms. */
export const judgedMs = 600_000
export const judgedAtMostMs = 3_600_000
/** The share of successes under which it is degraded. */
export const degradedUnder = 0.9
/** An endpoint that asks for less is sent to again before anybody could act, in ms. */
const longPauseMs = 60_000

export function healthOf({ enabled, isPaused, urls, reading, recent, now }: HealthFacts): Health {
  const { word: judged, successRate } = judge(recent)
  const health = (word: HealthWord, why: HealthReason | null = null): Health => ({ word, why, successRate })
  if (!enabled) return health('disabled')
  if (isPaused) return health('held')
  const sent = urls.filter(({ isGone }) => !isGone)
  if (sent.length === 0) return health('gone')
  // What forwarders said last is no news of now.
  if (reading === 'unknown') return health('not_known', 'ledger_unread')
  if (reading === 'no_forwarder') return health('not_known', 'no_forwarder')
  if (reading === 'nothing') return health('not_known', 'nothing_read')
  if (sent.every(isDown))
    return health('down', sent.every(({ isWithoutToken }) => isWithoutToken) ? 'no_token' : null)
  const isAsked = sent.every(
    ({ breaker, pausedUntil }) => breaker === 'paused' && (pausedUntil ?? 0) > now + longPauseMs,
  )
  if (isAsked) return health('asked_to_wait', 'rate_limited')
  if (judged === 'asked_to_wait') return health(judged, 'rate_limited')
  if (judged === 'failing') return health(judged, 'no_success')
  if (judged === 'degraded') return health(judged, 'few_successes')
  if (sent.length < urls.length || sent.some(isDown)) return health('degraded', 'some_urls')
  if (reading === 'some') return health('degraded', 'partitions_unread')
  return health(judged)
}

const isDown = ({ breaker, isWithoutToken }: HealthFacts['urls'][number]): boolean =>
  isWithoutToken || breaker === 'open' || breaker === 'half_open'

type JudgedWord = 'failing' | 'asked_to_wait' | 'degraded' | 'delivering' | 'idle'

/** By outcomes alone. */
export function judge(recent: JudgedOutcomes): { word: JudgedWord; successRate: number | null } {
  const { attempts, succeeded, busy, delivered, deadLettered } = recent
  const shares = [share(succeeded, attempts), share(delivered, delivered + deadLettered)]
  const known = shares.filter((each) => each !== null)
  if (known.length === 0) return { word: 'idle', successRate: null }
  const successRate = Math.min(...known)
  if (successRate >= degradedUnder) return { word: 'delivering', successRate }
  // An endpoint that is asked for too much is not broken.
  if (busy > 0 && busy * 2 >= attempts - succeeded + deadLettered)
    return { word: 'asked_to_wait', successRate }
  // While its URLs take calls, older ones that become dead letters are no sign that it fails now.
  const nothingArrives = succeeded === 0 && delivered === 0
  return { word: nothingArrives ? 'failing' : 'degraded', successRate }
}

const share = (part: number, whole: number): number | null => (whole > 0 ? part / whole : null)

export const isAnythingIn = ({ attempts, delivered, deadLettered }: JudgedOutcomes): boolean =>
  attempts + delivered + deadLettered > 0

/** Destinations that need somebody most come first. */
export const healthRank = ({ word }: Pick<Health, 'word'>): number => healthWords.indexOf(word)

/** Whether there is nothing that anybody has to know of. */
export const isWell = ({ word }: Pick<Health, 'word'>): boolean =>
  word === 'delivering' || word === 'idle' || word === 'disabled'

/** For people: `asked to wait`, `degraded 81 %`. */
export function healthText({ word, successRate }: Pick<Health, 'word' | 'successRate'>): string {
  const text = word.replaceAll('_', ' ')
  // Rounded down: what is degraded must not read as what is not.
  return word === 'degraded' && successRate !== null && successRate < 1
    ? `${text} ${Math.floor(successRate * 100)} %`
    : text
}

/** A sentence that says why; null where the word says it. */
export const healthSentence = ({ why }: Pick<Health, 'why'>): string | null => why && sentences[why]

const sentences: Record<HealthReason, string> = {
  no_token: 'Its login fails: no OAuth2 token is to be had. Its calls wait.',
  no_success: 'Nothing that was sent to it of late has arrived.',
  few_successes: 'Of what was sent to it of late, some failed.',
  rate_limited: 'It answers 429: too many requests. What it does not take waits.',
  some_urls: 'Not all of its URLs are sent to.',
  ledger_unread: 'The ledger could not be read for a while.',
  no_forwarder: 'No forwarder is running: nothing is sent.',
  nothing_read: 'No forwarder reads calls yet: nothing is sent.',
  partitions_unread: 'Some partitions are read by no forwarder: their calls wait.',
}
