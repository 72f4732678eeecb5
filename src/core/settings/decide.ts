import { decideComputation } from './computation-rules.ts'
import { decideDestinationCreate, decideDestinationUpdate } from './destination-rules.ts'
import type { SettingsCommand } from './commands.ts'
import { accepted, refused, type Decision } from './events.ts'
import { resealedPlaces } from './secrets.ts'
import { decideSourceCreate, decideSourceUpdate } from './source-rules.ts'
import type { SettingsAggregate } from './settings.ts'

/** Decides on the state alone: the same command on the same state always comes to the same. */
export function decide(command: SettingsCommand, state: SettingsAggregate): Decision {
  if ('kind' in command) return decideComputation(command, state)
  switch (command.type) {
    case 'create_source':
      return decideSourceCreate(command, state)
    case 'update_source':
      return decideSourceUpdate(command, state)
    case 'enable_source':
    case 'disable_source': {
      const source = state.sources.get(command.id)
      if (!source) return unknown('source', command.id)
      const enabled = command.type === 'enable_source'
      const type = enabled ? 'source_enabled' : 'source_disabled'
      return accepted(source.enabled === enabled ? null : { type, id: command.id })
    }
    case 'create_destination':
      return decideDestinationCreate(command, state)
    case 'update_destination':
      return decideDestinationUpdate(command, state)
    case 'enable_destination': {
      const destination = state.destinations.get(command.id)
      if (!destination) return unknown('destination', command.id)
      const isDone = destination.enabled && destination.urls.every((url) => url.goneAt === null)
      return accepted(isDone ? null : { type: 'destination_enabled', id: command.id })
    }
    case 'disable_destination': {
      const destination = state.destinations.get(command.id)
      if (!destination) return unknown('destination', command.id)
      return accepted(destination.enabled ? { type: 'destination_disabled', id: command.id } : null)
    }
    case 'reseal_secrets': {
      const destination = state.destinations.get(command.id)
      const places = destination ? resealedPlaces(destination, command.resealed) : null
      return accepted(places && { type: 'secrets_resealed', id: command.id, ...places })
    }
    case 'report_endpoint_gone': {
      const { destinationId, urlId, at } = command
      const url = state.destinations.get(destinationId)?.urls.find((endpoint) => endpoint.id === urlId)
      // The URL may have been taken away meanwhile, or another forwarder may have been first: nothing to record.
      const isNews = url?.goneAt === null
      return accepted(isNews ? { type: 'endpoint_gone', id: destinationId, urlId, at } : null)
    }
  }
}

const unknown = (what: 'source' | 'destination', id: string): Decision =>
  refused('not_found', 'id', `${what} "${id}" does not exist`)
