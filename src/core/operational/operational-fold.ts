import type { DeadLetter } from '../delivery/delivery.ts'
import type { DeliveryEvent } from '../ledger/delivery-event.ts'
import type { SettingsEvent } from '../settings/events.ts'
import type { SettingsState } from '../settings/settings.ts'
import { EndpointHealth, type DownEndpoint } from './endpoint-health.ts'
import { DeletionChecks, FailureWindows, type FailureWindow } from './failures.ts'
import { ViolationWindows, type ViolationWindow } from './violations.ts'
import { type OperationalEvent, settingChange } from './operational-event.ts'

export interface FoldTimes {
  /** How long dead letters of one destination and reason, or violations alike, are counted together. */
  windowMs: number
  /** How long a deletion must have been quiet before it is looked up whether it is finished. */
  quietMs: number
}

/** What is left of everything that was read: kept with the positions that it was read to. */
export interface OperationalState {
  down: DownEndpoint[]
  windows: FailureWindow[]
  violations: ViolationWindow[]
  deletions: string[]
  /** Events that may not have been sent yet, the oldest first. */
  unsent: OperationalEvent[]
}

export const noState: OperationalState = {
  down: [],
  windows: [],
  violations: [],
  deletions: [],
  unsent: [],
}

/**
 * The state, and smaller ones to keep where it does not fit: without the responses that it shows, then without what would
 * only be sent twice, or not at all, after a crash.
 */
export function smallerStates(state: OperationalState): OperationalState[] {
  const windows = state.windows.map((window) => ({ ...window, lastResponse: null }))
  const unsent = state.unsent.map((event) => ({
    ...event,
    properties: { ...event.properties, lastResponse: null },
  }))
  const bare = { ...state, windows, unsent }
  return [
    state,
    bare,
    { ...bare, down: [] },
    { ...bare, down: [], windows: [], violations: [], deletions: [] },
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
  readonly #windows: FailureWindows
  readonly #violations: ViolationWindows
  readonly #deletions: DeletionChecks
  #unsent: OperationalEvent[]

  constructor(
    times: FoldTimes,
    { down, windows, violations, deletions, unsent }: OperationalState,
    now: number,
  ) {
    this.#health = new EndpointHealth(down)
    this.#windows = new FailureWindows(times.windowMs, windows)
    this.#violations = new ViolationWindows(times.windowMs, violations)
    this.#deletions = new DeletionChecks(times.quietMs, deletions, now)
    this.#unsent = [...unsent]
  }

  get state(): OperationalState {
    return {
      down: [...this.#health.down],
      windows: [...this.#windows.open].map((window) => ({ ...window })),
      violations: [...this.#violations.open].map((window) => ({ ...window })),
      deletions: [...this.#deletions.requestIds],
      unsent: [...this.#unsent],
    }
  }

  get unsent(): readonly OperationalEvent[] {
    return this.#unsent
  }

  /** @param appendedAt when the broker took the record, epoch ms; `now` is this process's clock */
  ledger(event: DeliveryEvent, appendedAt: number, now: number): void {
    if (event.heartbeat) this.#unsent.push(...this.#health.take(event.heartbeat, appendedAt))
    else if (event.type === 'lost') this.#unsent.push(lossOf(event))
    else if (event.violations) this.#violations.take(event.violations, now)
    else this.#deletions.take(event, now)
  }

  deadLetter(deadLetter: DeadLetter, now: number): void {
    this.#windows.take(deadLetter, now)
  }

  setting(event: SettingsEvent, before: Pick<SettingsState, 'destinations' | 'replays'>): void {
    const change = settingChange(event, before)
    if (change) this.#unsent.push(change)
  }

  /** Forgets what the settings no longer have. */
  keep({ destinations }: Pick<SettingsState, 'destinations'>): void {
    this.#health.keep(
      (destinationId, urlId) =>
        destinations.get(destinationId)?.urls.some((url) => url.id === urlId) ?? false,
    )
  }

  /** Ends the windows whose time is over. */
  elapse(now: number): void {
    this.#unsent.push(...this.#windows.due(now), ...this.#violations.due(now))
  }

  deletionsToCheck(now: number): string[] {
    return this.#deletions.due(now)
  }

  /** @param finished what became of it, or null where it is not finished */
  deletionChecked(requestId: string, finished: Record<string, unknown> | null, now: number): void {
    this.#deletions.checked(requestId)
    if (finished === null) return
    this.#unsent.push({
      name: 'Deletion Finished',
      identity: requestId,
      at: now,
      destination: null,
      properties: { deletion: requestId, ...finished },
    })
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
