import {
  computationAfter,
  type Computation,
  type ComputationEvent,
  type ComputationKind,
} from '../audience/computations.ts'
import { defaultOptions, editOptions, type OptionsEdit } from './destination-options.ts'
import { fault, type Fault } from './fault.ts'
import { withResealed, type ResealedPlaces } from './secrets.ts'
import type {
  Destination,
  Endpoint,
  SealedSecret,
  SettingsAggregate,
  SettingsState,
  Source,
} from './settings.ts'

/** A URL as an event carries it: whether it is gone is not a setting. */
export type EndpointSettings = Omit<Endpoint, 'goneAt'>
export type DestinationSettings = Omit<Destination, 'urls' | 'earlierSecret' | 'options'> & {
  urls: EndpointSettings[]
  options?: OptionsEdit | undefined
}

/**
 * What can have happened to the settings. Kept for ever, so a type's fields are only ever added, as optional.
 * An update holds what was changed and nothing else: two writers that change different fields both keep theirs.
 */
export type SettingsEvent =
  | { type: 'source_created'; source: Source }
  | { type: 'source_updated'; id: string; name?: string | undefined; writeKey?: string | undefined }
  | { type: 'source_enabled' | 'source_disabled'; id: string }
  | { type: 'destination_created'; destination: DestinationSettings }
  | DestinationChange
  | ComputationEvent

type DestinationChange = { id: string } & (
  | {
      type: 'destination_updated'
      name?: string | undefined
      sourceIds?: string[] | undefined
      urls?: EndpointSettings[] | undefined
      /** Null takes all secrets away. */
      sharedSecret?: SealedSecret | null | undefined
      /** Stays active beside `sharedSecret`, which is there too; absent: that one replaced all. */
      earlierSecret?: SealedSecret | undefined
      options?: OptionsEdit | undefined
    }
  | { type: 'destination_enabled' | 'destination_disabled' }
  /** The same secrets under another key. */
  | ({ type: 'secrets_resealed' } & ResealedPlaces)
  /** A receiver answered 410; `at` is in epoch milliseconds. */
  | { type: 'endpoint_gone'; urlId: string; at: number }
)

/** One command makes one event, or none when nothing is to be changed; or it is refused with every fault. */
export type Decision = { accepted: true; event: SettingsEvent | null } | { accepted: false; faults: Fault[] }

export const accepted = (event: SettingsEvent | null): Decision => ({ accepted: true, event })

export const refused = (code: Fault['code'], field: string, message: string): Decision => ({
  accepted: false,
  faults: [fault(code, field, message)],
})

/** Which aggregate an event belongs to: the key of its record. */
export function aggregateOf(event: SettingsEvent): {
  aggregate: 'source' | 'destination' | ComputationKind
  id: string
} {
  if ('kind' in event) return { aggregate: event.kind, id: event.id }
  switch (event.type) {
    case 'source_created':
      return { aggregate: 'source', id: event.source.id }
    case 'source_updated':
    case 'source_enabled':
    case 'source_disabled':
      return { aggregate: 'source', id: event.id }
    case 'destination_created':
      return { aggregate: 'destination', id: event.destination.id }
    default:
      return { aggregate: 'destination', id: event.id }
  }
}

/** What an event changes: each changes one thing. */
export type SettingsChange =
  | { of: 'sources'; value: Source }
  | { of: 'destinations'; value: Destination }
  | { of: 'computations'; value: Computation }

/** The state after an accepted event. Throws as `changeBy`. */
export function evolve(state: SettingsAggregate, event: SettingsEvent): SettingsAggregate {
  const { of, value } = changeBy(state, event)
  const next = {
    ...state,
    version: state.version + 1,
    [of]: new Map<string, unknown>(state[of]).set(value.id, value),
  }
  if (of !== 'destinations') return next
  const made = endpointsMadeBy(value, state)
  return { ...next, endpointsMade: new Map(state.endpointsMade).set(value.id, made) }
}

/**
 * What an accepted event changes. Total over every event that `decide` makes on the same state; throws for an event
 * of something that does not exist, which no writer of ours can have written.
 */
export function changeBy(state: SettingsState, event: SettingsEvent): SettingsChange {
  if ('kind' in event) return { of: 'computations', value: computationAfter(state.computations, event) }
  switch (event.type) {
    case 'source_created':
      return { of: 'sources', value: event.source }
    case 'source_updated': {
      const source = existing(state.sources, event.id, event.type)
      const { name = source.name, writeKey = source.writeKey } = event
      return { of: 'sources', value: { ...source, name, writeKey } }
    }
    case 'source_enabled':
    case 'source_disabled': {
      const source = existing(state.sources, event.id, event.type)
      return { of: 'sources', value: { ...source, enabled: event.type === 'source_enabled' } }
    }
    case 'destination_created': {
      const { destination } = event
      const value = {
        ...destination,
        urls: notGone(destination.urls),
        earlierSecret: null,
        options: editOptions(defaultOptions, destination.options ?? {}),
      }
      return { of: 'destinations', value }
    }
    default: {
      const destination = existing(state.destinations, event.id, event.type)
      return { of: 'destinations', value: changedDestination(destination, event) }
    }
  }
}

function changedDestination(destination: Destination, event: DestinationChange): Destination {
  const { urls } = destination
  switch (event.type) {
    case 'destination_updated':
      return {
        ...destination,
        name: event.name ?? destination.name,
        sourceIds: event.sourceIds ?? destination.sourceIds,
        // An edited destination is looked after: a URL that was gone gets another chance.
        urls: notGone(event.urls ?? urls),
        ...(event.sharedSecret !== undefined && {
          sharedSecret: event.sharedSecret,
          earlierSecret: event.earlierSecret ?? null,
        }),
        options: editOptions(destination.options, event.options ?? {}),
      }
    case 'secrets_resealed':
      return withResealed(destination, event)
    case 'destination_enabled':
      return { ...destination, enabled: true, urls: notGone(urls) }
    case 'destination_disabled':
      return { ...destination, enabled: false }
    case 'endpoint_gone':
      return {
        ...destination,
        urls: urls.map((url) =>
          url.id === event.urlId && url.goneAt === null ? { ...url, goneAt: event.at } : url,
        ),
      }
  }
}

function existing<T>(all: ReadonlyMap<string, T>, id: string, type: string): T {
  const found = all.get(id)
  if (found === undefined) throw new Error(`${type} names "${id}", which does not exist`)
  return found
}

function notGone(urls: readonly EndpointSettings[]): Endpoint[] {
  return urls.map((url) => ({ ...url, goneAt: null }))
}

/** The highest number of an endpoint id that the destination ever had, after it became this. */
export function endpointsMadeBy(
  { id, urls }: Destination,
  { endpointsMade }: Pick<SettingsAggregate, 'endpointsMade'>,
): number {
  return urls.reduce((made, url) => Math.max(made, endpointNumber(url.id)), endpointsMade.get(id) ?? 0)
}

/** The number in an endpoint's id: 12 for `u12`; 0 for an id that is not of that form. */
function endpointNumber(id: string): number {
  const match = /^u(\d{1,9})$/.exec(id)
  return match ? Number(match[1]) : 0
}
