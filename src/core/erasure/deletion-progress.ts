import { deleteIdPrefix } from './deletion.ts'
import type { RecordedDeletion } from './deletion-book.ts'
import type { DeliveryEvent, DispositionLabel } from '../ledger/delivery-event.ts'

/** How many of a request's delete calls came to what. */
export interface DeleteCounts {
  delivered: number
  /** Became a dead letter. */
  failed: number
  /** Not sent: source or destination were disabled meanwhile, or its URL was taken away. */
  skipped: number
  /** Not written yet, in front of a forwarder, in a retry tier, or held while its destination is paused. */
  waiting: number
  /** It is too long ago: `webhooks.deliveries` no longer holds it. */
  unknown: number
}

/** How long `webhooks.deliveries` keeps a delivery. */
export const deliveriesKeptMs = 9 * 86_400_000

export interface SourceProgress extends DeleteCounts {
  sourceId: string
  users: number
  /** Delete calls; 0 where the source had no enabled webhook destination. */
  requested: number
  destinations: (DeleteCounts & { destinationId: string })[]
}

type DeletionOutcome = keyof DeleteCounts

/** `erased` cannot be of a delete call. */
const states: Record<DispositionLabel, DeletionOutcome> = {
  delivered: 'delivered',
  dead_lettered: 'failed',
  skipped: 'skipped',
  erased: 'skipped',
  retried: 'waiting',
  deferred: 'waiting',
  /** Until its destination is resumed. */
  held: 'waiting',
}

interface Call {
  sourceId: string
  /** By delivery id; '' for the record itself, where it never became a delivery. */
  deliveries: Map<string, { destinationId: string; at: number; state: DeletionOutcome }>
}

/** The fold of `webhooks.deliveries` for one request: what became of each of its delete calls. */
export class DeletionProgress {
  readonly #prefix: string
  readonly #calls = new Map<string, Call>()

  constructor(requestId: string) {
    this.#prefix = deleteIdPrefix(requestId)
  }

  take({ type, at, messageId, sourceId, destinationId, deliveryId, disposition }: DeliveryEvent): void {
    if (type !== 'disposition' || disposition === null) return
    if (messageId === null || !messageId.startsWith(this.#prefix)) return
    let call = this.#calls.get(messageId)
    if (!call) this.#calls.set(messageId, (call = { sourceId: sourceId ?? '', deliveries: new Map() }))
    const before = call.deliveries.get(deliveryId ?? '')
    // A delivery that was scheduled again, or replayed, gets another disposition: the last one counts.
    if (before && before.at > at) return
    // A record that failed before it became a delivery was replayed.
    if (deliveryId) call.deliveries.delete('')
    call.deliveries.set(deliveryId ?? '', {
      destinationId: destinationId ?? '',
      at,
      state: states[disposition],
    })
  }

  /**
   * @param isEnabled whether the destination still is: one that was disabled meanwhile is not waited for
   * @param now epoch milliseconds
   */
  summary(
    { sources, appendedAt }: RecordedDeletion,
    isEnabled: (destinationId: string) => boolean,
    now: number,
  ): SourceProgress[] {
    const unrecorded: DeletionOutcome = now - appendedAt > deliveriesKeptMs ? 'unknown' : 'waiting'
    return [...sources].map(([sourceId, { users, destinationIds }]) => {
      const calls = [...this.#calls.values()].filter((call) => call.sourceId === sourceId)
      const requested = destinationIds.length > 0 ? users : 0
      if (requested === 0) return { sourceId, users, requested, ...zeros(), destinations: [] }
      const expected = destinationIds.filter(isEnabled)
      const ids = new Set(expected)
      for (const { deliveries } of calls)
        for (const { destinationId } of deliveries.values()) if (destinationId !== '') ids.add(destinationId)
      const count = (expected: readonly string[], only: string | null): DeleteCounts => {
        const counts = zeros()
        for (const call of calls) counts[stateOf(call, expected, unrecorded, only)]++
        counts[unrecorded] += Math.max(0, requested - calls.length)
        return counts
      }
      const destinations = [...ids].sort().map((id) => ({ destinationId: id, ...count([id], id) }))
      return { sourceId, users, requested, ...count(expected, null), destinations }
    })
  }
}

/**
 * Whether none of its delete calls waits at any destination. Of the whole source that is not enough: a call that failed at
 * one destination counts as failed there, and may wait at another.
 */
export const isSettled = (progress: readonly SourceProgress[]): boolean =>
  progress.every((source) => [source, ...source.destinations].every(({ waiting }) => waiting === 0))

const zeros = (): DeleteCounts => ({ delivered: 0, failed: 0, skipped: 0, waiting: 0, unknown: 0 })

/** A call counts as failed when any of its deliveries failed, and as delivered when none is left that could. */
const byWeight: readonly DeletionOutcome[] = ['failed', 'waiting', 'unknown', 'delivered', 'skipped']

/**
 * What became of a call, at all destinations or at one. One that is expected to have a delivery and has none is
 * `unrecorded`.
 */
function stateOf(
  { deliveries }: Call,
  expected: readonly string[],
  unrecorded: DeletionOutcome,
  only: string | null,
): DeletionOutcome {
  const record = deliveries.get('')
  if (record) return record.state
  const its = [...deliveries.values()].filter(({ destinationId }) => only === null || destinationId === only)
  const found = new Set(its.map(({ state }) => state))
  const reached = new Set(its.map(({ destinationId }) => destinationId))
  if (!expected.every((id) => reached.has(id))) found.add(unrecorded)
  return byWeight.find((each) => found.has(each)) ?? unrecorded
}
