import type { OperationalEvent, OperationalEventName } from './operational-event.ts'

/**
 * How an event bears on its cause. `begins`, `ends`: something of the cause is so from then on, or is not any more.
 * `counts`: one of many that are alike, and nobody says when there are no more. `happens`: it has no end. `news`: it is
 * the only one of its cause.
 */
type Bearing = 'begins' | 'ends' | 'counts' | 'happens' | 'news'

/** For each event, how it bears on its cause, and the event that such causes begin with. */
const bearings: Readonly<Record<OperationalEventName, { bearing: Bearing; of: OperationalEventName }>> = {
  'Endpoint Down': { bearing: 'begins', of: 'Endpoint Down' },
  'Endpoint Recovered': { bearing: 'ends', of: 'Endpoint Down' },
  'Endpoint Gone': { bearing: 'begins', of: 'Endpoint Gone' },
  'Deliveries Failed': { bearing: 'counts', of: 'Deliveries Failed' },
  'Destination Paused': { bearing: 'begins', of: 'Destination Paused' },
  'Destination Resumed': { bearing: 'ends', of: 'Destination Paused' },
  'Replay Finished': { bearing: 'news', of: 'Replay Finished' },
  'Deletion Finished': { bearing: 'news', of: 'Deletion Finished' },
  'Audit Failed': { bearing: 'begins', of: 'Audit Failed' },
  'Records Lost': { bearing: 'happens', of: 'Records Lost' },
  'Plan Violated': { bearing: 'counts', of: 'Plan Violated' },
  // Of what it says in `of`.
  'Problem Ended': { bearing: 'ends', of: 'Problem Ended' },
}

function bearingOf({ name, properties }: OperationalEvent): { bearing: Bearing; of: OperationalEventName } {
  const found = bearings[name]
  return name === 'Problem Ended' ? { ...found, of: properties.of as OperationalEventName } : found
}

export interface CauseTimes {
  /** A cause is said at most once in so long; what is counted is counted for so long, in ms. */
  windowMs: number
  /** What is counted has ended once nothing of it came for so long, in ms. */
  endMs: number
}

/** A cause of which something is so, or of which something was said within the last window. */
export interface OpenCause {
  cause: string
  /** The event that it begins with. */
  of: OperationalEventName
  destination: string | null
  /** What of the first event's properties says what it is about. */
  about: Record<string, unknown>
  /** By the clock of the process that counts, as all times here: epoch ms. */
  openedAt: number
  /** When something of it came last. */
  lastAt: number
  /** From then on it may be said again. */
  nextAt: number
  /** What of it is so; of what is counted, the cause alone: nothing of it ends by itself. */
  open: string[]
  /** What is said next: it stands for all that came since the last time. */
  held: OperationalEvent | null
  /** What `held` stands for: an item for each event; of what is counted, each item once, the first `maxParts`. */
  parts: string[]
}

/** Causes that begin with the same event and are said by themselves within a window; further ones are one. */
export const maxCausesAtOnce = 10
/** Destinations that an event about several names. */
const maxNamed = 20
/** Items of what is counted that are told apart: senders choose the names of events. */
const maxParts = 100

/**
 * The one rule that keeps operational events from being a storm. A cause is said at once when it begins, and then at
 * most once a window, by one event for all that came since; what is counted waits for the end of its first window.
 * Causes beyond a number are said together. What is counted ends by itself, with one event.
 */
export class CauseLimits {
  readonly #times: CauseTimes
  readonly #causes = new Map<string, OpenCause>()

  /** @param open what was kept, by this process or one before it */
  constructor(times: CauseTimes, open: Iterable<OpenCause> = []) {
    this.#times = times
    for (const each of open) this.#causes.set(each.cause, structuredClone(each))
  }

  get open(): Iterable<OpenCause> {
    return this.#causes.values()
  }

  /** It was said, by a process that kept less of it. */
  wasSaid(event: Pick<OperationalEvent, 'cause' | 'item' | 'destination'>, of: OperationalEventName): void {
    if (this.#holderOf(event, of) !== null) return
    const { cause, destination } = event
    const known = this.#causes.get(cause) ?? this.#opened({ cause, of, destination, about: {} }, 0, 0)
    known.open.push(itemOf(event))
  }

  /** @returns what is said of it at once */
  take(event: OperationalEvent, now: number): OperationalEvent[] {
    const { bearing, of } = bearingOf(event)
    if (bearing === 'news') return [{ ...event, ended: null, more: 0 }]
    const item = itemOf(event)
    const holder = this.#holderOf(event, of)
    if (event.name === 'Problem Ended' && holder === null) return []
    const entry = holder ?? this.#causeFor(event, { bearing, of }, now)
    entry.lastAt = now
    if (bearing === 'ends') entry.open = entry.open.filter((each) => each !== item)
    else if (bearing === 'counts') entry.open = [entry.cause]
    else if (bearing === 'begins' && !entry.open.includes(item)) entry.open.push(item)
    // Others of it are still so: nothing has ended yet.
    if (event.name === 'Problem Ended' && entry.open.length > 0) return []
    if (bearing === 'counts' && entry.held === null)
      entry.nextAt = Math.max(entry.nextAt, now + this.#times.windowMs)
    entry.held = this.#merged(entry, bearing, event, now)
    const { parts } = entry
    if (bearing !== 'counts' || (parts.length < maxParts && !parts.includes(item))) parts.push(item)
    return bearing !== 'counts' && now >= entry.nextAt ? [this.#say(entry, now)] : []
  }

  /** What is said by now, and ends by now. */
  due(now: number): OperationalEvent[] {
    const events: OperationalEvent[] = []
    for (const entry of [...this.#causes.values()]) {
      const { held, open, nextAt, lastAt, of } = entry
      if (held !== null && now >= nextAt) events.push(this.#say(entry, now))
      else if (held !== null) continue
      else if (open.length === 0 && now >= nextAt) this.#causes.delete(entry.cause)
      else if (open.length > 0 && bearings[of].bearing === 'counts' && now >= lastAt + this.#times.endMs) {
        entry.open = []
        entry.held = ended(entry)
        entry.parts = ['']
        events.push(this.#say(entry, now))
      }
    }
    return events
  }

  /** The cause of which this item is so. */
  #holderOf(event: Pick<OperationalEvent, 'cause' | 'item'>, of: OperationalEventName): OpenCause | null {
    const places = [this.#causes.get(event.cause), this.#causes.get(manyOf(of))]
    return places.find((each) => each?.open.includes(itemOf(event))) ?? null
  }

  /** Its own, unless too many have begun at once. */
  #causeFor(
    { cause, destination, properties }: OperationalEvent,
    { bearing, of }: { bearing: Bearing; of: OperationalEventName },
    now: number,
  ): OpenCause {
    const own = this.#causes.get(cause)
    if (own) return own
    const many = this.#causes.get(manyOf(of))
    if (bearing !== 'ends' && many) return many
    const { windowMs } = this.#times
    const others = [...this.#causes.values()].filter(
      (each) => each.of === of && each.openedAt > now - windowMs,
    )
    // Waits, so that what began together is said together.
    return others.length >= maxCausesAtOnce
      ? (many ?? this.#opened({ cause: manyOf(of), of, destination: null, about: {} }, now, now + windowMs))
      : this.#opened({ cause, of, destination, about: aboutOf(properties) }, now, now)
  }

  #opened(
    given: Pick<OpenCause, 'cause' | 'of' | 'destination' | 'about'>,
    now: number,
    nextAt: number,
  ): OpenCause {
    const entry = { ...given, openedAt: now, lastAt: now, nextAt, open: [], held: null, parts: [] }
    this.#causes.set(given.cause, entry)
    return entry
  }

  #merged(
    { cause, held, of }: OpenCause,
    bearing: Bearing,
    event: OperationalEvent,
    now: number,
  ): OperationalEvent {
    const isMany = cause === manyOf(of)
    const one = isMany ? asOneOfMany(event) : event
    // What makes it this one lasts for its window, whatever comes in.
    const identity = bearing === 'counts' ? (held?.identity ?? `${cause}/${now}`) : event.identity
    if (held === null || (!isMany && bearing !== 'counts')) return { ...one, identity }
    const properties = sum(held.properties, one.properties)
    // The last answer that there was of one cause says enough.
    if (!isMany) properties.lastResponse = one.properties.lastResponse ?? held.properties.lastResponse ?? null
    return { ...one, identity, at: Math.max(held.at, one.at), properties }
  }

  #say(entry: OpenCause, now: number): OperationalEvent {
    const { held, parts, cause, of, open } = entry
    entry.held = null
    entry.parts = []
    entry.nextAt = now + this.#times.windowMs
    const isEnding = bearings[of].bearing !== 'happens'
    return { ...held!, cause, ended: isEnding ? open.length === 0 : null, more: parts.length - 1 }
  }
}

const itemOf = ({ cause, item }: Pick<OperationalEvent, 'cause' | 'item'>): string => item ?? cause

/** No cause of one thing is called so. */
const manyOf = (of: OperationalEventName): string => `many:${of}`

function asOneOfMany({ destination, ...event }: OperationalEvent): OperationalEvent {
  const destinations = destination === null ? [] : [destination]
  return { ...event, destination: null, properties: { ...event.properties, destinations } }
}

/** What they count together; and where they differ, nothing. */
function sum(a: Record<string, unknown>, b: Record<string, unknown>): Record<string, unknown> {
  const all = Object.keys({ ...a, ...b }).map((key) => {
    const [one, other] = [a[key], b[key]]
    if (one === undefined || other === undefined) return [key, null]
    const of = sums[key]
    if (of && one !== null && other !== null) return [key, of(one, other)]
    return [key, JSON.stringify(one) === JSON.stringify(other) ? one : null]
  })
  return Object.fromEntries(all) as Record<string, unknown>
}

/** ISO times of one form sort as texts do. */
const sums: Readonly<Record<string, (a: unknown, b: unknown) => unknown>> = {
  count: (a, b) => (a as number) + (b as number),
  since: (a, b) => ((a as string) < (b as string) ? a : b),
  until: (a, b) => ((a as string) > (b as string) ? a : b),
  destinations: (a, b) => [...new Set([...(a as string[]), ...(b as string[])])].slice(0, maxNamed),
}

const namings = ['reason', 'source', 'plan', 'event', 'path']

const aboutOf = (properties: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(properties).filter(([key]) => namings.includes(key)))

/** Nothing of it came for long. */
function ended({ cause, of, destination, about, openedAt, lastAt }: OpenCause): OperationalEvent {
  const time = (at: number) => new Date(at).toISOString()
  return {
    name: 'Problem Ended',
    identity: `${cause}/${openedAt}/${lastAt}`,
    cause,
    at: lastAt,
    destination,
    properties: { of, ...about, since: time(openedAt), until: time(lastAt) },
  }
}
