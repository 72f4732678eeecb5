import type { DestinationOptions } from '../settings/destination-options.ts'
import { compileExpression, type CallExpression } from '../expression/call-expression.ts'
import { ExpressionFault, type CallValues } from '../expression/call-values.ts'
import type { CallType } from './analytics-call.ts'

/** Of a destination: names of track calls. */
export const maxEvents = 100
export const maxEventNameLength = 255

/** Which calls are sent, by what stands in the call itself. */
export interface CallFilter {
  /** Null where every type and event is sent. */
  names: ((type: CallType, event: string | null) => boolean) | null
  /** Categories of which a call may deny none. */
  consent: readonly string[] | null
  where: CallExpression | null
}

export const leftOutReasons = ['not_chosen', 'no_consent', 'filtered'] as const

/** Why a call is not sent. */
export interface LeftOut {
  reason: (typeof leftOutReasons)[number]
  /** Why it cannot be said whether it should be: then it is not. */
  fault: string | null
}

/**
 * A filter of null: everything is sent. A `delete` is always sent: a receiver that holds anything of a user must learn
 * that the user is to be forgotten, whatever it was chosen to get. The fault is that of a condition that does not compile,
 * as one of an earlier version may: the filter is without it, and the destination cannot be set up.
 */
export function callFilter({ types, events, consent, where }: DestinationOptions): {
  filter: CallFilter | null
  fault: string | null
} {
  const names = namesFilter(types, events)
  const { expression, fault } = where === null ? noCondition : compileExpression(where)
  const isEmpty = names === null && consent === null && expression === null
  return {
    filter: isEmpty ? null : { names, consent, where: expression },
    fault: fault === null ? null : `its condition cannot be used: ${fault}`,
  }
}

const noCondition = { expression: null, fault: null }

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
const noConsent: LeftOut = { reason: 'no_consent', fault: null }
const filtered: LeftOut = { reason: 'filtered', fault: null }

/** Null for a call that is sent. What cannot be said counts as not matching. */
export function leftOutBy(
  { names, consent, where }: CallFilter,
  type: CallType,
  event: string | null,
  values: () => CallValues,
): LeftOut | null {
  if (type === 'delete') return null
  if (names && !names(type, event)) return notChosen
  if (consent && denies(values().read('context'), consent)) return noConsent
  if (where === null) return null
  const verdict = where.evaluate(values())
  if (typeof verdict !== 'boolean') return { reason: 'filtered', fault: verdict.reason }
  return verdict ? null : filtered
}

/**
 * Whether a call's context denies any of the categories, in the form that Segment's consent wrappers send:
 * `{consent: {categoryPreferences: {advertising: false}}}`. A context that cannot be read denies all.
 */
function denies(context: unknown, categories: readonly string[]): boolean {
  if (context instanceof ExpressionFault) return true
  const preferences = fieldOf(fieldOf(context, 'consent'), 'categoryPreferences')
  return categories.some((category) => fieldOf(preferences, category) === false)
}

const fieldOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined
