// Why the deliveries of a call wait: by its life, and by how their destinations are now.
import type { DeliveryLife } from '../../core/ledger/delivery-life.ts'
import type { Step } from '../../core/ledger/call-life.ts'
import { reasonOfWait, type DestinationNow, type WaitReason } from '../../core/statistics/waiting-reason.ts'
import { strictTier } from '../../core/topics.ts'
import type { ConsoleServices } from '../services.ts'
import { destinationsNow } from '../statistics/overview.ts'
import type { MessageLife } from './why.ts'

/** By delivery; those that do not wait, or of which nothing is known that keeps them, are not in it. */
export type Waits = ReadonlyMap<DeliveryLife, WaitReason>

export const noWaits: Waits = new Map()

const isUnfinished = ({ state }: DeliveryLife): boolean => state === 'waiting' || state === 'open'

/** Throws what opening the statistics does. */
export async function waitsOf(
  { copies }: MessageLife,
  {
    statistics,
    settings,
    callsTopic,
    now,
  }: Pick<ConsoleServices, 'statistics' | 'settings' | 'callsTopic' | 'now'>,
): Promise<Waits> {
  const lives = copies.flatMap(({ life }) => life ?? [])
  const unfinished = lives.flatMap(({ deliveries }) => deliveries).filter(isUnfinished)
  if (unfinished.length === 0) return noWaits
  const ids = new Set(unfinished.map(({ destinationId }) => destinationId))
  const destinations = [...settings.state.destinations.values()].filter(({ id }) => ids.has(id))
  const found = destinationsNow({ store: await statistics(), callsTopic, now: now() }, destinations)
  const waits = new Map<DeliveryLife, WaitReason>()
  for (const { deliveries, steps } of lives)
    for (const delivery of deliveries.filter(isUnfinished)) {
      const reason = waitOf(delivery, steps, found.get(delivery.destinationId) ?? null)
      if (reason) waits.set(delivery, reason)
    }
  return waits
}

function waitOf(
  { destinationId, urlId, state, tier, dueAt }: DeliveryLife,
  steps: readonly Step[],
  destination: DestinationNow | null,
): WaitReason | null {
  const attempts = steps
    .filter((step) => step.kind === 'attempt')
    .filter((step) => step.destinationId === destinationId && step.ofUrlId === urlId)
  const last = attempts.at(-1)
  const made = attempts.findLast(({ outcome }) => outcome !== 'deferred' && outcome !== 'no_token')
  return reasonOfWait(
    {
      ...{ urlId, dueAt, isInTier: state === 'waiting', isInOrder: tier === strictTier.name },
      lastAttempt: made ? { at: made.at, outcome: made.outcome, status: made.status } : null,
      putOff: last && last !== made ? last.detail : null,
    },
    destination,
  )
}
