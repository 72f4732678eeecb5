import type { AnalyticsCall } from '../call/analytics-call.ts'
import { aboutDestination, builtInSource, sourceOf } from '../call/built-in-source.ts'
import { allowsWebhooks } from '../call/check-call.ts'
import { callFilter, leftOutBy } from '../call/filter.ts'
import { CallValues, type ReadableCall } from '../expression/call-values.ts'
import type { NotPlannedReason, PlannedDestination } from '../ledger/delivery-event.ts'
import type { Destination, SettingsState } from '../settings/settings.ts'
import { deliveryIdSuffix } from './delivery.ts'

type PlannedCall = ReadableCall & Pick<AnalyticsCall, 'sourceId' | 'integrations'>

/**
 * What a forwarder plans for a valid call by these settings, in the order of the destinations; it is what the ledger's
 * `planned` records with LEDGER=all. Null when there is no such source.
 */
export function planCall(
  call: PlannedCall,
  { sources, destinations }: Pick<SettingsState, 'sources' | 'destinations'>,
): PlannedDestination[] | null {
  const source = sourceOf({ sources }, call.sourceId)
  if (!source) return null
  const allowed = allowsWebhooks(call)
  const about = source === builtInSource ? aboutDestination(call) : null
  let values: CallValues | null = null
  const valuesOf = () => (values ??= new CallValues(call))
  return [...destinations.values()]
    .filter(({ id, sourceIds }) => sourceIds.includes(source.id) && id !== about)
    .flatMap((destination): PlannedDestination[] => {
      const reason = reasonAgainst(call, destination, source.enabled, allowed, valuesOf)
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
  values: () => CallValues,
): NotPlannedReason | null {
  if (!isSourceEnabled) return 'source_disabled'
  if (!enabled) return 'destination_disabled'
  if (!allowed) return 'integrations'
  // Where its condition cannot be used, it is planned for without, and deferred.
  const { filter } = callFilter(options)
  return filter === null || type === 'unknown'
    ? null
    : (leftOutBy(filter, type, event, values)?.reason ?? null)
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
