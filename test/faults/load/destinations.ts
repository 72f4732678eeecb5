import type { DeadLetterReason } from '../../../src/core/delivery/delivery.ts'

/** How a URL behaves, towards whoever calls. */
export type Behaviour =
  /** Takes everything, soon. */
  | 'healthy'
  /** Mostly takes it; else any kind of nonsense. */
  | 'flaky'
  /** Fails for half a minute and works for half a minute, by turns. */
  | 'phases'
  | 'hangs'
  /** Answers every fifth call with 503 the first time. */
  | 'fifth'
  /** Refuses everything, and takes everything once it was fixed. */
  | 'fixed'
  /** Refuses every third call for good. */
  | 'picky'
  | 'refuses'
  | 'redirects'
  | 'gone'
  /** Resets every connection as soon as it is made. */
  | 'resets'
  /** Nobody listens. */
  | 'closed'
  /** HTTPS with a certificate that nobody vouches for. */
  | 'self-signed'
  /** An address that the settings do not allow. */
  | 'forbidden'
  /** Answers many calls once more than they asked for, and refuses every eighth one for good. Shares a host with `victim`. */
  | 'unasked'
  /** Refuses every eighth call for good. */
  | 'victim'
  /** Takes everything, at the address that its name leads to now; the one of before fails. */
  | 'moving'
  /** Takes everything that comes with a token of its token endpoint, which goes away at times and takes its tokens along. */
  | 'login'
  /** Takes everything that comes through its proxy, which goes away at times. */
  | 'proxied'
  /** Cuts one request in four in the middle: before it has read the body, or within its own answer. */
  | 'cuts'
  /** Fails for some calls, the first times that they come. */
  | 'stumbles'

export interface DestinationPlan {
  id: string
  source: string
  urls: readonly Behaviour[]
  deliverTo: 'any' | 'every'
  signed: boolean
  /** Null: no limit. */
  maxInFlight: number | null
  /** How many calls a request may hold; null: one, alone. */
  batch: number | null
  order: 'first' | 'strict'
}

const plan = (
  source: string,
  id: string,
  urls: readonly Behaviour[],
  rest: Partial<DestinationPlan> = {},
): DestinationPlan => ({
  source,
  id,
  urls,
  deliverTo: 'any',
  signed: true,
  maxInFlight: null,
  batch: null,
  order: 'first',
  ...rest,
})

export const orderedSource = 'ordered'

/** Every call of `share` goes to each destination of its source. */
export const sources: readonly { id: string; share: number }[] = [
  { id: 'main', share: 0.63 },
  { id: 'bad', share: 0.2 },
  { id: 'edge', share: 0.05 },
  { id: 'odd', share: 0.05 },
  { id: 'toggled', share: 0.03 },
  // Of few users: each has many calls.
  { id: orderedSource, share: 0.04 },
  // Only of runs that have no other.
  { id: 'calm', share: 0 },
]

export const destinations: readonly DestinationPlan[] = [
  plan('main', 'healthy', ['healthy']),
  plan('main', 'flaky', ['flaky']),
  plan('main', 'pair', ['refuses', 'flaky'], { signed: false }),
  plan('bad', 'steady', ['healthy']),
  plan('bad', 'hangs', ['hangs']),
  plan('bad', 'phases', ['phases']),
  plan('bad', 'picky', ['picky']),
  plan('edge', 'closed', ['closed']),
  plan('edge', 'resets', ['resets']),
  plan('edge', 'self-signed', ['self-signed']),
  plan('edge', 'forbidden', ['forbidden']),
  plan('edge', 'redirects', ['redirects']),
  plan('edge', 'gone', ['gone']),
  plan('edge', 'each', ['healthy', 'flaky'], { deliverTo: 'every' }),
  // With so few at a time a batch of calls waits, and each request goes out the moment that one before it was answered.
  plan('odd', 'unasked', ['unasked'], { maxInFlight: 3 }),
  plan('odd', 'victim', ['victim'], { maxInFlight: 3 }),
  plan('odd', 'moving', ['moving']),
  plan('odd', 'batched', ['flaky'], { batch: 20 }),
  plan('odd', 'batched-picky', ['picky'], { batch: 20 }),
  plan('odd', 'batched-cut', ['cuts'], { batch: 20 }),
  plan('odd', 'login', ['login']),
  plan('odd', 'proxied', ['proxied']),
  plan(orderedSource, 'strict', ['stumbles'], { order: 'strict' }),
  plan('toggled', 'toggled', ['healthy']),
  plan('calm', 'fifth', ['fifth']),
]

/** Of what is done beside the numbered calls (side-work.ts). */
export const sideSource = 'side'
export const sideDestinations: readonly DestinationPlan[] = [
  plan(sideSource, 'side-healthy', ['healthy']),
  plan(sideSource, 'side-flaky', ['flaky']),
  plan(sideSource, 'side-fixed', ['fixed'], { signed: false }),
  // Paused and resumed by turns.
  plan(sideSource, 'side-held', ['healthy']),
]

/** One delivery of a call: a destination, or one URL of a destination that delivers to every one. */
export interface Slot {
  destination: DestinationPlan
  /** The URL that the delivery is for, from 0; null when it is for any. */
  url: number | null
  /** What follows the messageId in the delivery's id. */
  suffix: string
}

/** The ids of URLs are given out in order: u1, u2 … */
export const urlId = (index: number): string => `u${index + 1}`

export const slots: readonly Slot[] = destinations.flatMap((destination): Slot[] =>
  destination.deliverTo === 'any'
    ? [{ destination, url: null, suffix: `:${destination.id}` }]
    : destination.urls.map((_, url) => ({ destination, url, suffix: `:${destination.id}:${urlId(url)}` })),
)

/** What may become of a delivery. */
export interface Expectation {
  delivered: boolean
  reasons: readonly DeadLetterReason[]
  /** It may also be skipped, for its destination was disabled at times. */
  skipped: boolean
}

const givenUp: readonly DeadLetterReason[] = ['expired', 'not_attempted']

const ends: Record<Behaviour, (seq: number) => Omit<Expectation, 'skipped'>> = {
  healthy: () => ({ delivered: true, reasons: [] }),
  flaky: () => ({ delivered: true, reasons: givenUp }),
  phases: () => ({ delivered: true, reasons: givenUp }),
  fixed: () => ({ delivered: true, reasons: ['rejected'] }),
  fifth: () => ({ delivered: true, reasons: [] }),
  hangs: () => ({ delivered: false, reasons: givenUp }),
  picky: (seq) =>
    isPickedOut(seq) ? { delivered: false, reasons: ['rejected'] } : { delivered: true, reasons: [] },
  refuses: () => ({ delivered: false, reasons: ['rejected'] }),
  redirects: () => ({ delivered: false, reasons: ['redirect'] }),
  gone: () => ({ delivered: false, reasons: ['gone'] }),
  resets: () => ({ delivered: false, reasons: givenUp }),
  closed: () => ({ delivered: false, reasons: givenUp }),
  // Retried until the window ends. While its circuit breaker is open, a call may wait for all of it.
  'self-signed': () => ({ delivered: false, reasons: ['tls', 'not_attempted'] }),
  forbidden: () => ({ delivered: false, reasons: ['blocked', 'not_attempted'] }),
  unasked: (seq) => eighthRefused(seq),
  victim: (seq) => eighthRefused(seq),
  // Around a move it may be given up: see the verdict.
  moving: () => ({ delivered: true, reasons: [] }),
  // Each takes up far less than the window; where another fault comes to it, see the verdict.
  login: () => ({ delivered: true, reasons: [] }),
  proxied: () => ({ delivered: true, reasons: [] }),
  cuts: () => ({ delivered: true, reasons: givenUp }),
  stumbles: () => ({ delivered: true, reasons: givenUp }),
}

/** How often a call fails before it is taken by what `stumbles`. */
export const stumbles = (seq: number): number => (seq % 13 === 0 ? 2 : seq % 17 === 0 ? 1 : 0)

export const isPickedOut = (seq: number): boolean => seq % 3 === 0
export const isEighth = (seq: number): boolean => seq % 8 === 0

/** Where one in two attempts fails, the breaker may open for long at times. */
const eighthRefused = (seq: number): Omit<Expectation, 'skipped'> => ({
  delivered: !isEighth(seq),
  reasons: givenUp,
})

export function expectation({ destination, url }: Slot, seq: number): Expectation {
  const urls = url === null ? destination.urls : [destination.urls[url]!]
  const each = urls.map((behaviour) => ends[behaviour](seq))
  return {
    delivered: each.some(({ delivered }) => delivered),
    // As long as one URL may still take it, a refusal by another is not the end.
    reasons: [
      ...new Set(
        each.some(({ delivered }) => delivered)
          ? each.filter(({ delivered }) => delivered).flatMap(({ reasons }) => reasons)
          : each.flatMap(({ reasons }) => reasons),
      ),
    ],
    skipped: destination.id === 'toggled',
  }
}
