import type { AnalyticsCall } from '../call/analytics-call.ts'
import type { DeadLetter } from '../delivery/delivery.ts'
import type { DeliveryEvent, ViolationCount } from '../ledger/delivery-event.ts'
import type { SettingsEvent } from '../settings/events.ts'
import type { SettingsState } from '../settings/settings.ts'
import { CauseLimits, type CauseTimes, type OpenCause } from './causes.ts'
import { DeletionChecks, failedDelivery } from './failures.ts'
import {
  endpointCause,
  settingChange,
  timeText,
  shownFailure,
  type OperationalEvent,
} from './operational-event.ts'
import type { Heartbeat, HeartbeatEndpoint } from '../ledger/heartbeat.ts'

/** Violations of one event and path at one source; alike ones are counted together. */
export function planViolation({ messageIds: _, ...violation }: ViolationCount): OperationalEvent {
  const { sourceId, planId, mode, event, path, rule, count, lastAt } = violation
  const cause = `plan:${JSON.stringify([sourceId, event, path])}`
  return {
    name: 'Plan Violated',
    identity: `${cause}/${lastAt}`,
    cause,
    at: lastAt,
    destination: null,
    properties: {
      ...{ source: sourceId, plan: planId, event, path, rule, mode, count },
      until: timeText(lastAt),
    },
  }
}

/** An endpoint that was reported as down, and not as recovered yet. */
interface DownEndpoint {
  destinationId: string
  urlId: string
  /** Epoch ms, by the clock of the forwarder that reported it first. */
  since: number
}

interface LiveForwarder {
  /** When the broker took its last heartbeat, epoch ms. */
  seenAt: number
  intervalMs: number
  /** Keys of the endpoints that are down there. */
  down: Set<string>
}

/** A process that has been silent for that many intervals is gone. */
const maxSilentIntervals = 3

/**
 * Which endpoints are down, folded from the heartbeats of all forwarders. An endpoint is down once a forwarder's breaker
 * has opened, and has recovered once no forwarder that lives has it open and a request has succeeded since: a forwarder
 * that was restarted knows nothing, and is no proof.
 */
export class EndpointHealth {
  readonly #forwarders = new Map<string, LiveForwarder>()
  readonly #down = new Map<string, DownEndpoint>()
  #isUsed: (destinationId: string, urlId: string) => boolean = () => true
  /** The time of the newest heartbeat, by the brokers' clock. */
  #now = -Infinity
  /** Until then a forwarder that has it open may just not have been heard yet. */
  #heardAllAt: number | null = null

  /** @param down what was reported before, by this process or one before it */
  constructor(down: Iterable<DownEndpoint> = []) {
    for (const each of down) this.#down.set(keyOf(each), each)
  }

  get down(): Iterable<DownEndpoint> {
    return this.#down.values()
  }

  /** @param appendedAt when the broker took it, epoch ms */
  take(heartbeat: Heartbeat, appendedAt: number): OperationalEvent[] {
    const { instance, roles, isLast, intervalMs, endpoints } = heartbeat
    if (!roles.includes('forwarder')) return []
    this.#now = Math.max(this.#now, appendedAt)
    this.#heardAllAt ??= appendedAt + maxSilentIntervals * intervalMs
    const isDown = (endpoint: HeartbeatEndpoint) => endpoint.downSince !== null
    if (isLast) this.#forwarders.delete(instance)
    else {
      const down = new Set(endpoints.filter(isDown).map(keyOf))
      this.#forwarders.set(instance, { seenAt: appendedAt, intervalMs, down })
    }
    for (const [id, { seenAt, intervalMs: every }] of this.#forwarders)
      if (seenAt + maxSilentIntervals * every < this.#now) this.#forwarders.delete(id)
    return endpoints.flatMap((endpoint) => this.#judge(endpoint, appendedAt) ?? [])
  }

  /**
   * Forgets endpoints that nothing is sent to any more, and passes over what forwarders that do not know it yet say of
   * them. Returns those that were down.
   */
  keep(isUsed: (destinationId: string, urlId: string) => boolean): DownEndpoint[] {
    this.#isUsed = isUsed
    const left = [...this.#down].filter(([, { destinationId, urlId }]) => !isUsed(destinationId, urlId))
    for (const [key] of left) this.#down.delete(key)
    return left.map(([, endpoint]) => endpoint)
  }

  #judge(endpoint: HeartbeatEndpoint, at: number): OperationalEvent | null {
    const { destinationId, urlId, downSince, lastSuccessAt, lastFailure } = endpoint
    if (!this.#isUsed(destinationId, urlId)) return null
    const key = keyOf(endpoint)
    const reported = this.#down.get(key)
    if (downSince !== null) {
      if (reported) return null
      this.#down.set(key, { destinationId, urlId, since: downSince })
      return {
        name: 'Endpoint Down',
        identity: `${key}/${downSince}`,
        at,
        ...endpointCause('down', destinationId, urlId),
        properties: {
          urlId,
          since: timeText(downSince),
          forwarders: { down: this.#downAt(key), total: this.#forwarders.size },
          lastResponse: shownFailure(lastFailure),
        },
      }
    }
    if (!reported || lastSuccessAt === null || lastSuccessAt < reported.since) return null
    if (this.#downAt(key) > 0 || this.#now < (this.#heardAllAt ?? Infinity)) return null
    this.#down.delete(key)
    return {
      name: 'Endpoint Recovered',
      identity: `${key}/${reported.since}`,
      at,
      ...endpointCause('down', destinationId, urlId),
      properties: { urlId, since: timeText(reported.since), recoveredAt: timeText(at) },
    }
  }

  #downAt(key: string): number {
    let count = 0
    for (const { down } of this.#forwarders.values()) if (down.has(key)) count++
    return count
  }
}

const keyOf = ({ destinationId, urlId }: Pick<DownEndpoint, 'destinationId' | 'urlId'>): string =>
  `${destinationId}/${urlId}`

export interface FoldTimes extends CauseTimes {
  /** How long a deletion must have been quiet before it is looked up whether it is finished. */
  quietMs: number
}

/** What is left of everything that was read: kept with the positions that it was read to. */
export interface OperationalState extends FoldState {
  /** What was not mailed yet, the oldest first. */
  mails: WaitingMail[]
}

export interface WaitingMail extends AnalyticsCall {
  /** Ids of the alerts that still get it; null for MAIL_TO. Absent: whoever gets such an event now. */
  mailTo?: readonly (string | null)[]
}

export interface FoldState {
  down: DownEndpoint[]
  causes: OpenCause[]
  deletions: string[]
  /** Events that may not have been sent yet, the oldest first. */
  unsent: OperationalEvent[]
}

export const noState: OperationalState = {
  down: [],
  causes: [],
  deletions: [],
  unsent: [],
  mails: [],
}

/** A cause of which more is so is long. */
const maxItemsKept = 10

/**
 * The state, and smaller ones to keep where it does not fit. What matters least is forgotten first: the responses that it
 * shows, then long causes, such as many endpoints that are down, which heartbeats report again. What was not sent or
 * mailed is forgotten last.
 */
export function smallerStates(state: OperationalState): OperationalState[] {
  const bareEvent = (event: OperationalEvent): OperationalEvent => ({
    ...event,
    properties: { ...event.properties, lastResponse: null },
  })
  const bare = {
    ...state,
    causes: state.causes.map((each) => ({ ...each, held: each.held && bareEvent(each.held) })),
    unsent: state.unsent.map(bareEvent),
  }
  const { causes, unsent, mails } = bare
  const short = causes.filter(({ held, open }) => held !== null || open.length <= maxItemsKept)
  const items = new Set(short.flatMap(({ open }) => open))
  return [
    state,
    bare,
    { ...bare, causes: short, down: state.down.filter((each) => items.has(keyOf(each))) },
    { ...bare, causes: causes.filter(({ held }) => held !== null), down: [] },
    { ...noState, unsent, mails },
    { ...noState, unsent },
    noState,
  ]
}

/**
 * The fold that operational events come from: heartbeats, losses, violations and delete calls of the ledger, dead letters, and
 * changes of the settings go in. Nothing may be sent before a state that holds it is safe: then whoever goes on after a
 * crash sends the same events, under the same messageIds.
 */
export class OperationalFold {
  readonly #health: EndpointHealth
  readonly #limits: CauseLimits
  readonly #deletions: DeletionChecks
  #unsent: OperationalEvent[]

  constructor(times: FoldTimes, { down, causes, deletions, unsent }: FoldState, now: number) {
    this.#health = new EndpointHealth(down)
    this.#limits = new CauseLimits(times, causes)
    for (const { destinationId, urlId } of down)
      this.#limits.wasSaid(endpointCause('down', destinationId, urlId), 'Endpoint Down')
    this.#deletions = new DeletionChecks(times.quietMs, deletions, now)
    this.#unsent = [...unsent]
  }

  get state(): FoldState {
    return {
      down: [...this.#health.down],
      causes: [...this.#limits.open].map((each) => structuredClone(each)),
      deletions: [...this.#deletions.requestIds],
      unsent: [...this.#unsent],
    }
  }

  get unsent(): readonly OperationalEvent[] {
    return this.#unsent
  }

  /** @param appendedAt when the broker took the record, epoch ms; `now` is this process's clock */
  ledger(event: DeliveryEvent, appendedAt: number, now: number): void {
    if (event.heartbeat) this.#take(this.#health.take(event.heartbeat, appendedAt), now)
    else if (event.type === 'lost') this.#take([lossOf(event)], now)
    else if (event.violations) this.#take(event.violations.map(planViolation), now)
    else this.#deletions.take(event, now)
  }

  deadLetter(deadLetter: DeadLetter, now: number): void {
    const failed = failedDelivery(deadLetter)
    if (failed) this.#take([failed], now)
  }

  setting(event: SettingsEvent, before: Pick<SettingsState, 'destinations' | 'replays'>, now: number): void {
    const change = settingChange(event, before)
    if (change) this.#take([change], now)
  }

  /** What nothing is sent to any more is neither down nor gone. */
  keep({ destinations }: Pick<SettingsState, 'destinations'>, now: number): void {
    const urlOf = (destinationId: string, urlId: string) => {
      const destination = destinations.get(destinationId)
      return destination?.enabled ? destination.urls.find(({ id }) => id === urlId) : undefined
    }
    const left = this.#health.keep((destinationId, urlId) => urlOf(destinationId, urlId) !== undefined)
    for (const { destinationId, urlId, since } of left)
      this.#take([problemEnded('down', destinationId, urlId, since, now)], now)
    for (const { of, open } of [...this.#limits.open])
      if (of === 'Endpoint Gone')
        for (const item of open) {
          const [destinationId = '', urlId = ''] = item.split('/')
          if ((urlOf(destinationId, urlId)?.goneAt ?? null) === null)
            this.#take([problemEnded('gone', destinationId, urlId, null, now)], now)
        }
  }

  #take(events: readonly OperationalEvent[], now: number): void {
    for (const event of events) this.#unsent.push(...this.#limits.take(event, now))
  }

  /** What is due by now. */
  elapse(now: number): void {
    this.#unsent.push(...this.#limits.due(now))
  }

  deletionsToCheck(now: number): string[] {
    return this.#deletions.due(now)
  }

  /** @param finished what became of it, or null where it is not finished */
  deletionChecked(requestId: string, finished: Record<string, unknown> | null, now: number): void {
    this.#deletions.checked(requestId)
    if (finished === null) return
    const finishedEvent = {
      name: 'Deletion Finished',
      identity: requestId,
      cause: `deletion:${requestId}`,
      at: now,
      destination: null,
      properties: { deletion: requestId, ...finished },
    } as const
    this.#take([finishedEvent], now)
  }

  sent(events: readonly OperationalEvent[]): void {
    const those = new Set(events)
    this.#unsent = this.#unsent.filter((event) => !those.has(event))
  }
}

function lossOf({ topic, partition, firstOffset, lastOffset, at }: DeliveryEvent): OperationalEvent {
  return {
    name: 'Records Lost',
    identity: `${topic}/${partition}/${firstOffset}-${lastOffset}`,
    cause: `lost:${topic}/${partition}`,
    at,
    destination: null,
    properties: {
      topic,
      partition,
      firstOffset,
      lastOffset,
      count: (lastOffset ?? 0) - (firstOffset ?? 0) + 1,
    },
  }
}

/** Nobody will say that this URL works again: it was taken away or disabled, or is to be tried again. */
function problemEnded(
  word: 'down' | 'gone',
  destinationId: string,
  urlId: string,
  since: number | null,
  now: number,
): OperationalEvent {
  return {
    name: 'Problem Ended',
    identity: `${word}/${destinationId}/${urlId}/${since ?? now}`,
    ...endpointCause(word, destinationId, urlId),
    at: now,
    properties: {
      of: word === 'down' ? 'Endpoint Down' : 'Endpoint Gone',
      ...{ urlId, since: since === null ? null : timeText(since), until: timeText(now) },
    },
  }
}
