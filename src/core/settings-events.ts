import { evolveComputations, type ComputationEvent, type ComputationKind } from './computations.ts'
import { defaultOptions, editOptions, type OptionsEdit } from './destination-options.ts'
import { withResealed, type ResealedPlaces } from './settings-secrets.ts'
import type { Destination, Endpoint, SealedSecret, SettingsAggregate, Source } from './settings.ts'

/** A URL as an event carries it: whether it is gone is not a setting. */
export type EndpointSettings = Omit<Endpoint, 'goneAt'>
export type DestinationSettings = Omit<Destination, 'urls' | 'earlierSecret' | 'options'> & {
  urls: EndpointSettings[]
  options?: OptionsEdit | undefined
}

/**
 * What can have happened to the settings. Kept for ever, so a type's fields are only ever added, as optional.
 * An update holds what was changed and nothing else: two writers who change different fields both keep theirs.
 */
export type SettingsEvent =
  | { type: 'source_created'; source: Source }
  | { type: 'source_updated'; id: string; name?: string | undefined; writeKey?: string | undefined }
  | { type: 'source_enabled'; id: string }
  | { type: 'source_disabled'; id: string }
  | { type: 'destination_created'; destination: DestinationSettings }
  | {
      type: 'destination_updated'
      id: string
      name?: string | undefined
      sourceIds?: string[] | undefined
      urls?: EndpointSettings[] | undefined
      /** Null takes all secrets away. */
      sharedSecret?: SealedSecret | null | undefined
      /** Stays active beside `sharedSecret`, which is there too; absent: that one replaced all. */
      earlierSecret?: SealedSecret | undefined
      options?: OptionsEdit | undefined
    }
  | { type: 'destination_enabled'; id: string }
  | { type: 'destination_disabled'; id: string }
  /** The same secrets under another key. */
  | ({ type: 'secrets_resealed'; id: string } & ResealedPlaces)
  /** A receiver answered 410; `at` is in epoch milliseconds. */
  | { type: 'endpoint_gone'; id: string; urlId: string; at: number }
  | ComputationEvent

/** Which aggregate an event belongs to: the key of its record. */
export function aggregateOf(event: SettingsEvent): {
  aggregate: 'source' | 'destination' | ComputationKind
  id: string
} {
  switch (event.type) {
    case 'source_created':
      return { aggregate: 'source', id: event.source.id }
    case 'source_updated':
    case 'source_enabled':
    case 'source_disabled':
      return { aggregate: 'source', id: event.id }
    case 'destination_created':
      return { aggregate: 'destination', id: event.destination.id }
    case 'computation_created':
    case 'sync_started':
    case 'sync_finished':
    case 'computation_deleted':
      return { aggregate: event.kind, id: event.id }
    default:
      return { aggregate: 'destination', id: event.id }
  }
}

/**
 * The state after an accepted event. Total over every event that `decide` makes on the same state; throws for an
 * event of something that does not exist, which no writer of ours can have written.
 */
export function evolve(state: SettingsAggregate, event: SettingsEvent): SettingsAggregate {
  const next = { ...state, version: state.version + 1 }
  switch (event.type) {
    case 'source_created':
      return withSource(next, event.source)
    case 'source_updated': {
      const source = existing(state.sources, event.id, event.type)
      return withSource(next, {
        ...source,
        name: event.name ?? source.name,
        writeKey: event.writeKey ?? source.writeKey,
      })
    }
    case 'source_enabled':
    case 'source_disabled': {
      const source = existing(state.sources, event.id, event.type)
      return withSource(next, { ...source, enabled: event.type === 'source_enabled' })
    }
    case 'destination_created':
      return withDestination(next, {
        ...event.destination,
        urls: notGone(event.destination.urls),
        earlierSecret: null,
        options: editOptions(defaultOptions, event.destination.options ?? {}),
      })
    case 'destination_updated': {
      const destination = existing(state.destinations, event.id, event.type)
      return withDestination(next, {
        ...destination,
        name: event.name ?? destination.name,
        sourceIds: event.sourceIds ?? destination.sourceIds,
        // Whoever edits a destination looks after it: a URL that was gone gets another chance.
        urls: notGone(event.urls ?? destination.urls),
        ...(event.sharedSecret !== undefined && {
          sharedSecret: event.sharedSecret,
          earlierSecret: event.earlierSecret ?? null,
        }),
        options: editOptions(destination.options, event.options ?? {}),
      })
    }
    case 'secrets_resealed':
      return withDestination(next, withResealed(existing(state.destinations, event.id, event.type), event))
    case 'destination_enabled': {
      const destination = existing(state.destinations, event.id, event.type)
      return withDestination(next, { ...destination, enabled: true, urls: notGone(destination.urls) })
    }
    case 'destination_disabled': {
      const destination = existing(state.destinations, event.id, event.type)
      return withDestination(next, { ...destination, enabled: false })
    }
    case 'computation_created':
    case 'sync_started':
    case 'sync_finished':
    case 'computation_deleted':
      return { ...next, computations: evolveComputations(state.computations, event) }
    case 'endpoint_gone': {
      const destination = existing(state.destinations, event.id, event.type)
      return withDestination(next, {
        ...destination,
        urls: destination.urls.map((url) =>
          url.id === event.urlId && url.goneAt === null ? { ...url, goneAt: event.at } : url,
        ),
      })
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

function withSource(state: SettingsAggregate, source: Source): SettingsAggregate {
  return { ...state, sources: new Map(state.sources).set(source.id, source) }
}

function withDestination(state: SettingsAggregate, destination: Destination): SettingsAggregate {
  const made = Math.max(
    state.endpointsMade.get(destination.id) ?? 0,
    ...destination.urls.map((url) => endpointNumber(url.id)),
  )
  return {
    ...state,
    destinations: new Map(state.destinations).set(destination.id, destination),
    endpointsMade: new Map(state.endpointsMade).set(destination.id, made),
  }
}

/** The number in an endpoint's id: 12 for `u12`; 0 for an id that is not of that form. */
function endpointNumber(id: string): number {
  const match = /^u(\d{1,9})$/.exec(id)
  return match ? Number(match[1]) : 0
}
