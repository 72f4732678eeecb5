import { callTypes, type CallType } from '../call/analytics-call.ts'
import { compileExpression, type CallExpression } from '../expression/call-expression.ts'
import type { CallValues } from '../expression/call-values.ts'
import { dropFaults } from '../call/redaction.ts'
import { maxAttemptCount, parseRate } from '../pacing/rate.ts'
import { faultIf, type Fault } from './fault.ts'

/** What can be chosen for a destination beside where it lies. The default is how most destinations work. */
export interface DestinationOptions {
  /** Sends the three headers of Standard Webhooks too (standardwebhooks.com). */
  standardWebhooks: boolean
  /** The call types that are sent; null: all. */
  types: CallType[] | null
  /** The names of the `track` events that are sent, letter by letter; null: all. */
  events: string[] | null
  /** `any`: one URL that took a call is enough. `every`: each URL is a delivery of its own. */
  deliverTo: DeliverTo
  /** `100/s` or `6/m`: attempts of the whole consumer group at all of its URLs; null: no limit. */
  maxRate: string | null
  /** Requests in flight of the whole consumer group at all of its URLs; null: no limit. */
  maxInFlight: number | null
  /** A condition on calls in CEL; null: all are sent. */
  where: string | null
  /** Paths that are left out of the body before it is signed; null: none. */
  drop: string[] | null
  /** Sends the `traceparent` that a call came with. */
  traceContext: boolean
}

export const deliverToChoices = ['any', 'every'] as const
export type DeliverTo = (typeof deliverToChoices)[number]

export const maxRateForm = `a whole number from 1 to ${maxAttemptCount} and "/s" or "/m", such as 100/s`

/** A change of options: what is undefined stays as it is. */
export type OptionsEdit = { [K in keyof DestinationOptions]?: DestinationOptions[K] | undefined }

export const defaultOptions: DestinationOptions = {
  standardWebhooks: false,
  types: null,
  events: null,
  deliverTo: 'any',
  maxRate: null,
  maxInFlight: null,
  where: null,
  drop: null,
  traceContext: false,
}

export const maxEvents = 100
export const maxEventNameLength = 255
export const mostInFlight = 10_000

/** What an edit changes, without what it leaves alone. */
export function givenOptions(edit: OptionsEdit): OptionsEdit {
  return Object.fromEntries(Object.entries(edit).filter(([, value]) => value !== undefined))
}

export function editOptions(current: DestinationOptions, edit: OptionsEdit): DestinationOptions {
  return {
    standardWebhooks: edit.standardWebhooks ?? current.standardWebhooks,
    types: edit.types === undefined ? current.types : edit.types,
    events: edit.events === undefined ? current.events : edit.events,
    deliverTo: edit.deliverTo ?? current.deliverTo,
    maxRate: edit.maxRate === undefined ? current.maxRate : edit.maxRate,
    maxInFlight: edit.maxInFlight === undefined ? current.maxInFlight : edit.maxInFlight,
    where: edit.where === undefined ? current.where : edit.where,
    drop: edit.drop === undefined ? current.drop : edit.drop,
    traceContext: edit.traceContext ?? current.traceContext,
  }
}

/** What is wrong with an edit in itself; `optionsConflicts` looks at what it leads to. */
export function optionsFaults(edit: OptionsEdit): Fault[] {
  const { types, events, maxRate, maxInFlight, where, drop } = edit
  const faults: Fault[] = []
  const usage = (field: string, message: string) => faults.push({ code: 'usage', field, message })
  if (types) {
    if (types.length === 0) usage('types', 'at least one call type is needed')
    for (const type of new Set(types)) {
      if (!callTypes.includes(type))
        usage('types', `call type ${JSON.stringify(type)} is none of ${callTypes.join(', ')}`)
      if (types.indexOf(type) !== types.lastIndexOf(type))
        usage('types', `call type "${type}" is named twice`)
    }
  }
  if (events) {
    if (events.length === 0) usage('events', 'at least one event is needed')
    if (events.length > maxEvents)
      usage('events', `${events.length} events are given, at most ${maxEvents} are allowed`)
    events.forEach((event, index) => {
      if (event === '' || event.length > maxEventNameLength)
        usage(
          'events',
          `event ${index + 1} is ${event.length} characters long, 1-${maxEventNameLength} are allowed`,
        )
      if (events.indexOf(event) < index) usage('events', `event ${JSON.stringify(event)} is named twice`)
    })
  }
  if (typeof maxRate === 'string' && parseRate(maxRate, maxAttemptCount) === null)
    usage('maxRate', `${JSON.stringify(maxRate)} is no rate: it takes ${maxRateForm}`)
  if (typeof maxInFlight === 'number' && !isWithin(maxInFlight, 1, mostInFlight))
    usage('maxInFlight', `${maxInFlight} is not a whole number from 1 to ${mostInFlight}`)
  const fault = typeof where === 'string' ? compileExpression(where).fault : null
  if (fault !== null) usage('where', `the expression cannot be used: ${fault}${expressionHint(fault)}`)
  if (drop) for (const phrase of dropFaults(drop)) usage('drop', phrase)
  return faults
}

/** For what people write first; the faults are those of the library. */
function expressionHint(fault: string): string {
  const name = /: Unknown variable: (\w+)/.exec(fault)?.[1]
  if (name !== undefined) return `; write call.${name}`
  return /: Unexpected character: =/.test(fault) ? '; write == to compare' : ''
}

const isWithin = (value: number, min: number, max: number): boolean =>
  Number.isInteger(value) && value >= min && value <= max

/** What does not go together in the whole of a destination, as it would be. */
export function optionsConflicts(
  code: Fault['code'],
  { standardWebhooks, types, events }: DestinationOptions,
  isSigned: boolean,
): Fault[] {
  const unsigned = 'Standard Webhooks are signed, and the destination has no shared secret to sign with'
  const untyped = 'events are names of track calls, which are not among the types that are sent'
  return [
    ...faultIf(standardWebhooks && !isSigned, code, 'standardWebhooks', unsigned),
    ...faultIf(events !== null && types?.includes('track') === false, code, 'events', untyped),
  ]
}

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
