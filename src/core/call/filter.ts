import type { DestinationOptions } from '../settings/destination-options.ts'
import { compileExpression, type CallExpression } from '../expression/call-expression.ts'
import type { CallValues } from '../expression/call-values.ts'
import type { CallType } from './analytics-call.ts'

/** Of a destination: names of track calls. */
export const maxEvents = 100
export const maxEventNameLength = 255

/** Which calls are sent, by what stands in the call itself. */
export interface CallFilter {
  /** Null where every type and event is sent. */
  names: ((type: CallType, event: string | null) => boolean) | null
  where: CallExpression | null
}

/** Why a call is not sent. */
export interface LeftOut {
  reason: 'not_chosen' | 'filtered'
  /** Why it cannot be said whether it should be: then it is not. */
  fault: string | null
}

/**
 * Null where everything is sent. A `delete` is always sent: a receiver that holds anything of a user must learn
 * that the user is to be forgotten, whatever it was chosen to get. Throws for an expression that does not compile, which
 * no command would have written.
 */
export function callFilter({ types, events, where }: DestinationOptions): CallFilter | null {
  const names = namesFilter(types, events)
  if (where === null) return names && { names, where: null }
  const { expression, fault } = compileExpression(where)
  if (fault !== null) throw new Error(`its condition cannot be used: ${fault}`)
  return { names, where: expression }
}

function namesFilter(
  types: readonly CallType[] | null,
  events: readonly string[] | null,
): CallFilter['names'] {
  if (types === null && events === null) return null
  const wantedTypes = types && new Set(types)
  const wantedEvents = events && new Set(events)
  return (type, event) => {
    if (wantedTypes && !wantedTypes.has(type)) return false
    return type !== 'track' || !wantedEvents || (event !== null && wantedEvents.has(event))
  }
}

const notChosen: LeftOut = { reason: 'not_chosen', fault: null }
const filtered: LeftOut = { reason: 'filtered', fault: null }

/** Null for a call that is sent. What cannot be said counts as not matching. */
export function leftOutBy(
  { names, where }: CallFilter,
  type: CallType,
  event: string | null,
  values: () => CallValues,
): LeftOut | null {
  if (type === 'delete') return null
  if (names && !names(type, event)) return notChosen
  if (where === null) return null
  const verdict = where.evaluate(values())
  if (typeof verdict !== 'boolean') return { reason: 'filtered', fault: verdict.reason }
  return verdict ? null : filtered
}
