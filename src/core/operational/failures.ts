import type { DeadLetter } from '../delivery/delivery.ts'
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
    cause: 'audit',
    ended: false,
    at,
    destination: null,
    properties: {
      count: faults.length,
      faults: faults.slice(0, maxNamed),
      unbalanced: balances.slice(0, maxNamed),
    },
  }
}

/** The first audit that finds nothing, after one whose findings were reported. */
export const auditPassed = (found: string, at: number): OperationalEvent => ({
  name: 'Problem Ended',
  identity: `audit/${found}/${at}`,
  cause: 'audit',
  ended: true,
  at,
  destination: null,
  properties: { of: 'Audit Failed', until: timeText(at) },
})

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

/**
 * One delivery that failed; alike ones are counted together. Null for dead letters of operational events: with two
 * subscribers that are both down, the failures of each would be news for the other, for ever.
 */
export function failedDelivery({ delivery, reason, failedAt }: DeadLetter): OperationalEvent | null {
  if (delivery?.sourceId === builtInSourceId) return null
  const destination = delivery?.destinationId ?? null
  const last = delivery?.lastResponse
  const lastResponse: ShownResponse | null = last
    ? { status: last.status, detail: `status ${last.status}` }
    : null
  const cause = `dead_letters${destination === null ? '' : `:${destination}`}:${reason}`
  const at = timeText(failedAt)
  return {
    name: 'Deliveries Failed',
    identity: `${cause}/${failedAt}`,
    cause,
    at: failedAt,
    destination,
    properties: { reason, count: 1, since: at, until: at, lastResponse },
  }
}
