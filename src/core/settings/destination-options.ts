import { callTypes, type CallType } from '../call/analytics-call.ts'
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
}

export const deliverToChoices = ['any', 'every'] as const
export type DeliverTo = (typeof deliverToChoices)[number]

/** A change of options: what is undefined stays as it is. */
export type OptionsEdit = { [K in keyof DestinationOptions]?: DestinationOptions[K] | undefined }

export const defaultOptions: DestinationOptions = {
  standardWebhooks: false,
  types: null,
  events: null,
  deliverTo: 'any',
}

export const maxEvents = 100
export const maxEventNameLength = 255

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
  }
}

/** What is wrong with an edit in itself; `optionsConflicts` looks at what it leads to. */
export function optionsFaults({ types, events }: OptionsEdit): Fault[] {
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
  return faults
}

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

/** True for a call that is to be sent. */
export type CallFilter = (type: CallType, event: string | null) => boolean

/**
 * Null where everything is sent. A `delete` is always sent: a receiver that holds anything of a user must learn
 * that the user is to be forgotten, whatever it was chosen to get.
 */
export function callFilter({ types, events }: DestinationOptions): CallFilter | null {
  if (types === null && events === null) return null
  const wantedTypes = types && new Set(types)
  const wantedEvents = events && new Set(events)
  return (type, event) => {
    if (type === 'delete') return true
    if (wantedTypes && !wantedTypes.has(type)) return false
    return type !== 'track' || !wantedEvents || (event !== null && wantedEvents.has(event))
  }
}
