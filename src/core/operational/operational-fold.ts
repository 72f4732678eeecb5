import type { AnalyticsCall } from '../call/analytics-call.ts'
import type { DeadLetter } from '../delivery/delivery.ts'
import type { DeliveryEvent } from '../ledger/delivery-event.ts'
import type { SettingsEvent } from '../settings/events.ts'
import type { SettingsState } from '../settings/settings.ts'
import { EndpointHealth, type DownEndpoint } from './endpoint-health.ts'
import { CauseLimits, type CauseTimes, type OpenCause } from './causes.ts'
import { DeletionChecks, failedDelivery } from './failures.ts'
import { endpointCause, settingChange, timeText, type OperationalEvent } from './operational-event.ts'
import { planViolation } from './violations.ts'

export interface FoldTimes extends CauseTimes {
  /** How long a deletion must have been quiet before it is looked up whether it is finished. */
  quietMs: number
}

/** What is left of everything that was read: kept with the positions that it was read to. */
export interface OperationalState extends FoldState {
  /** What was not mailed yet, the oldest first. */
  mails: AnalyticsCall[]
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

/**
 * The state, and smaller ones to keep where it does not fit: without the responses that it shows, then without what would
 * only be sent twice, or not at all, after a crash.
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
  return [
    state,
    bare,
    { ...bare, down: [], causes: bare.causes.filter(({ held }) => held !== null) },
    { ...bare, down: [], causes: [], deletions: [], mails: [] },
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
