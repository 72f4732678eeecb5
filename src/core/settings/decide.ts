import { decideToken } from '../access/tokens.ts'
import { isBuiltIn } from '../call/built-in-source.ts'
import { accepted, refused } from '../decision.ts'
import { decideMailAlert } from '../operational/mail-alerts.ts'
import { decideReplay, rateFaults } from '../replay/replay-rules.ts'
import type { SettingsCommand } from './commands.ts'
import { decideComputation } from './computation-rules.ts'
import { noRules, type DeploymentRules } from './deployment-rules.ts'
import { decideDestinationCreate, decideDestinationUpdate } from './destination-rules.ts'
import type { Decision } from './events.ts'
import { resealedPlaces } from './secrets.ts'
import type { SettingsAggregate } from './settings.ts'
import { decideTrackingPlan } from '../tracking-plan/plan-rules.ts'
import { builtInFault, decideSourceCreate, decideSourceUpdate } from './source-rules.ts'

/** What is held is kept for days only: an end beyond that is a mistake. */
const longestPauseMs = 366 * 86_400_000

/** Decides on its arguments alone: the same command on the same state always comes to the same. */
export function decide(
  command: SettingsCommand,
  state: SettingsAggregate,
  rules: DeploymentRules = noRules,
): Decision {
  if ('kind' in command) return decideComputation(command, state)
  switch (command.type) {
    case 'create_source':
      return decideSourceCreate(command, state)
    case 'update_source':
      return decideSourceUpdate(command, state)
    case 'enable_source':
    case 'disable_source': {
      const source = state.sources.get(command.id)
      if (isBuiltIn(command.id, state)) return refused('conflict', 'id', builtInFault)
      if (!source) return unknown('source', command.id)
      const enabled = command.type === 'enable_source'
      const type = enabled ? 'source_enabled' : 'source_disabled'
      return accepted(source.enabled === enabled ? null : { type, id: command.id })
    }
    case 'create_destination':
      return decideDestinationCreate(command, state, rules)
    case 'update_destination':
      return decideDestinationUpdate(command, state, rules)
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
    case 'create_token':
    case 'revoke_token':
      return decideToken(command, state)
    case 'create_plan':
    case 'update_plan':
    case 'remove_plan':
      return decideTrackingPlan(command, state)
    case 'pause_destination': {
      const { id, at, until } = command
      const destination = state.destinations.get(id)
      if (!destination) return unknown('destination', id)
      if (until !== null && until <= at)
        return refused('usage', 'until', 'the pause would end before it begins')
      if (until !== null && until - at > longestPauseMs)
        return refused('usage', 'until', 'a pause with an end lasts at most 366 days')
      const { pause } = destination
      if (pause?.until === until) return accepted(null)
      return accepted({
        type: 'destination_paused',
        id,
        pauseId: pause?.id ?? command.pauseId,
        at: pause?.since ?? at,
        until,
      })
    }
    case 'resume_destination': {
      const { id, pauseId, at } = command
      const destination = state.destinations.get(id)
      if (!destination) return unknown('destination', id)
      const { pause } = destination
      const isDone = pause === null || (pauseId !== null && pause.id !== pauseId)
      if (isDone) return accepted(null)
      const { rate = null } = command
      const faults = rateFaults(rate)
      if (faults.length > 0) return { accepted: false, faults }
      return accepted({
        ...{ type: 'destination_resumed', id, pauseId: pause.id, at },
        ...(rate !== null && { rate }),
      })
    }
    case 'start_replay':
    case 'pause_replay':
    case 'resume_replay':
    case 'cancel_replay':
    case 'finish_replay':
      return decideReplay(command, state)
    case 'acknowledge_problem': {
      const { id, at, by, size } = command
      return accepted({ type: 'problem_acknowledged', id, at, by, size })
    }
    case 'create_mail_alert':
    case 'update_mail_alert':
    case 'remove_mail_alert':
      return decideMailAlert(command, state)
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
