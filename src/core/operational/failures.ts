import type { DeadLetter, DeadLetterReason } from '../delivery/delivery.ts'
import type { AuditReport } from '../ledger/audit-report.ts'
import type { DeliveryEvent, DispositionLabel } from '../ledger/delivery-event.ts'
import { builtInSourceId } from '../call/built-in-source.ts'
import { type OperationalEvent, timeText, type ShownResponse } from './operational-event.ts'

/** As many faults an event names. */
const maxNamed = 10

/** What an audit found is one event however often it is found. Null for an audit that found nothing. */
export function auditFailure(
  report: Pick<AuditReport, 'ok' | 'faults' | 'destinations'>,
  at: number,
): OperationalEvent | null {
  if (report.ok) return null
  const unbalanced = report.destinations.filter(({ balance }) => balance !== 0)
  const faults = report.faults.map(({ kind, topic, partition, first, last }) => ({
    kind,
    topic,
    partition,
    first,
    last,
  }))
  const balances = unbalanced.map(({ destinationId, balance }) => ({ destinationId, balance }))
  return {
    name: 'Audit Failed',
    identity: JSON.stringify([faults, balances]),
    at,
    destination: null,
    properties: {
      count: faults.length,
      faults: faults.slice(0, maxNamed),
      unbalanced: balances.slice(0, maxNamed),
    },
  }
}

/** `delete-<request id>-<hash>`: the messageId of a delete call (core/erasure/deletion.ts). */
const deleteCallId = /^delete-(.+)-[\w-]{27}$/

/** What ends a delivery; everything else goes on. */
const final: ReadonlySet<DispositionLabel> = new Set(['delivered', 'dead_lettered', 'skipped', 'erased'])

/**
 * Which deletion requests may be finished: some of their delete calls were delivered, or finally were not, and nothing
 * more happened for a while. Whether they are has to be looked up, which reads much, and so is not done for each call.
 */
export class DeletionChecks {
  /** By request, when the last of its calls was settled, epoch ms by this process's clock. */
  readonly #settledAt = new Map<string, number>()
  readonly #quietMs: number

  constructor(quietMs: number, requestIds: Iterable<string> = [], now = 0) {
    this.#quietMs = quietMs
    for (const id of requestIds) this.#settledAt.set(id, now)
  }

  get requestIds(): Iterable<string> {
    return this.#settledAt.keys()
  }

  take({ type, messageId, disposition }: DeliveryEvent, now: number): void {
    if (type !== 'disposition' || disposition === null || !final.has(disposition)) return
    const requestId = messageId === null ? undefined : deleteCallId.exec(messageId)?.[1]
    if (requestId !== undefined) this.#settledAt.set(requestId, now)
  }

  due(now: number): string[] {
    return [...this.#settledAt].filter(([, at]) => now >= at + this.#quietMs).map(([id]) => id)
  }

  /** It was looked up: it is finished, or another of its calls will be settled. */
  checked(requestId: string): void {
    this.#settledAt.delete(requestId)
  }
}

/** Dead letters of one destination and reason that were not reported yet. */
export interface FailureWindow {
  /** Null for records that never became a delivery. */
  destinationId: string | null
  reason: DeadLetterReason
  /** When the first of them was counted, epoch ms by the counting process's clock. */
  openedAt: number
  /** When the first and the last of them failed, epoch ms. */
  since: number
  until: number
  count: number
  /** Of the last one that had a response. */
  lastResponse: ShownResponse | null
}

/**
 * Counts dead letters by destination and reason. The first one opens a window; at its end one event says how many there
 * were, so there is at most one a window's length, however many fail.
 */
export class FailureWindows {
  readonly #open = new Map<string, FailureWindow>()
  readonly #lengthMs: number

  constructor(lengthMs: number, open: Iterable<FailureWindow> = []) {
    this.#lengthMs = lengthMs
    for (const each of open) this.#open.set(keyOf(each.destinationId, each.reason), { ...each })
  }

  get open(): Iterable<FailureWindow> {
    return this.#open.values()
  }

  /**
   * Dead letters of operational events are left out: with two subscribers that are both down, the failures of each would
   * be news for the other, for ever.
   *
   * @param now epoch ms
   */
  take({ delivery, reason, failedAt }: DeadLetter, now: number): void {
    if (delivery?.sourceId === builtInSourceId) return
    const destinationId = delivery?.destinationId ?? null
    const key = keyOf(destinationId, reason)
    let window = this.#open.get(key)
    if (!window) {
      const opened = { openedAt: now, since: failedAt, until: failedAt, count: 0, lastResponse: null }
      this.#open.set(key, (window = { destinationId, reason, ...opened }))
    }
    window.count++
    window.since = Math.min(window.since, failedAt)
    window.until = Math.max(window.until, failedAt)
    const last = delivery?.lastResponse
    if (last) window.lastResponse = { status: last.status, detail: `status ${last.status}` }
  }

  /** What the windows that have ended come to. */
  due(now: number): OperationalEvent[] {
    const events: OperationalEvent[] = []
    for (const [key, window] of this.#open) {
      const { destinationId, reason, openedAt, since, until, count, lastResponse } = window
      if (now < openedAt + this.#lengthMs) continue
      this.#open.delete(key)
      events.push({
        name: 'Deliveries Failed',
        identity: `${key}/${openedAt}`,
        at: until,
        destination: destinationId,
        properties: { reason, count, since: timeText(since), until: timeText(until), lastResponse },
      })
    }
    return events
  }
}

const keyOf = (destinationId: string | null, reason: string): string => `${destinationId ?? ''}/${reason}`
