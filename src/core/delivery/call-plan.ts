import type { AnalyticsCall } from '../call/analytics-call.ts'
import { deliveryIdSuffix } from './delivery.ts'
import type { NotPlannedReason, PlannedDestination } from '../ledger/delivery-event.ts'
import { callFilter } from '../settings/destination-options.ts'
import { allowsWebhooks } from '../call/integrations.ts'
import type { Destination, SettingsState } from '../settings/settings.ts'

type PlannedCall = Pick<AnalyticsCall, 'messageId' | 'sourceId' | 'type' | 'event' | 'integrations'>

/**
 * What a forwarder plans for a valid call by these settings, in the order of the destinations; it is what the ledger's
 * `planned` records with LEDGER=all. Null when there is no such source.
 */
export function planCall(
  call: PlannedCall,
  { sources, destinations }: Pick<SettingsState, 'sources' | 'destinations'>,
): PlannedDestination[] | null {
  const source = sources.get(call.sourceId)
  if (!source) return null
  const allowed = allowsWebhooks(call)
  return [...destinations.values()]
    .filter(({ sourceIds }) => sourceIds.includes(source.id))
    .flatMap((destination): PlannedDestination[] => {
      const reason = reasonAgainst(call, destination, source.enabled, allowed)
      if (reason !== null) return [{ destinationId: destination.id, deliveryId: null, reason }]
      return urlIdsOf(destination).map((urlId) => ({
        destinationId: destination.id,
        deliveryId: call.messageId + deliveryIdSuffix(destination.id, urlId),
        reason: null,
      }))
    })
}

function reasonAgainst(
  { type, event }: PlannedCall,
  { enabled, options }: Destination,
  isSourceEnabled: boolean,
  allowed: boolean,
): NotPlannedReason | null {
  if (!isSourceEnabled) return 'source_disabled'
  if (!enabled) return 'destination_disabled'
  if (!allowed) return 'integrations'
  const filter = callFilter(options)
  return filter === null || type === 'unknown' || filter(type, event) ? null : 'not_chosen'
}

/** Null stands for any of the destination's URLs. */
const urlIdsOf = ({ options, urls }: Destination): (string | null)[] =>
  options.deliverTo === 'any' ? [null] : urls.map(({ id }) => id)

/**
 * The plans that were in force one after another, each once. What settles a delivery beside its plan counts as a
 * difference: a URL that was taken away has its deliveries skipped.
 */
export function plansUnder(
  call: PlannedCall,
  states: readonly Pick<SettingsState, 'sources' | 'destinations'>[],
): (PlannedDestination[] | null)[] {
  const plans = new Map<string, PlannedDestination[] | null>()
  for (const state of states) {
    const plan = planCall(call, state)
    const urls = (plan ?? []).map(({ destinationId }) =>
      state.destinations.get(destinationId)!.urls.map(({ id }) => id),
    )
    plans.set(JSON.stringify([plan, urls]), plan)
  }
  return [...plans.values()]
}
