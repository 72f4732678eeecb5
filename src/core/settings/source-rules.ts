import { builtInSourceId, isBuiltIn } from '../call/built-in-source.ts'
import { accepted, idFaults, nameFaults, refused, fault, faultIf, type Fault } from '../decision.ts'
import type { SettingsCommand } from './commands.ts'
import type { Decision } from './events.ts'
import type { SettingsAggregate } from './settings.ts'
import { pointedPlanFaults } from '../tracking-plan/plan-rules.ts'
import { chosenSourceOptions, givenSourceOptions, sourceOptionsFaults } from './source-options.ts'

type Create = Extract<SettingsCommand, { type: 'create_source' }>
type Update = Extract<SettingsCommand, { type: 'update_source' }>

export const builtInFault = `source "${builtInSourceId}" is built in, for operational events: it cannot be created or changed`

export function decideSourceCreate(command: Create, state: SettingsAggregate): Decision {
  const { id, name, writeKey, enabled } = command
  const isTaken = state.sources.has(id)
  const faults = [
    ...idFaults(id),
    ...faultIf(id === builtInSourceId && !isTaken, 'conflict', 'id', builtInFault),
    ...faultIf(isTaken, 'conflict', 'id', `source "${id}" exists already, and ids are never reused`),
    ...nameFaults(name),
    ...writeKeyFaults(writeKey, id, state),
    ...sourceOptionsFaults(command),
    ...pointedPlanFaults(command.plan, state),
  ]
  if (faults.length > 0) return { accepted: false, faults }
  const source = { id, name, writeKey, ...chosenSourceOptions(command), enabled }
  return accepted({ type: 'source_created', source })
}

export function decideSourceUpdate(command: Update, state: SettingsAggregate): Decision {
  const { id, name, writeKey } = command
  const options = givenSourceOptions(command)
  if (isBuiltIn(id, state)) return refused('conflict', 'id', builtInFault)
  if (!state.sources.has(id)) return refused('not_found', 'id', `source "${id}" does not exist`)
  const isEmpty = name === undefined && writeKey === undefined && Object.keys(options).length === 0
  const faults = [
    ...faultIf(isEmpty, 'usage', 'id', 'nothing to change: give a name, a write key or an option'),
    ...(name === undefined ? [] : nameFaults(name)),
    ...(writeKey === undefined ? [] : writeKeyFaults(writeKey, id, state)),
    ...sourceOptionsFaults(options),
    ...pointedPlanFaults(options.plan, state),
  ]
  if (faults.length > 0) return { accepted: false, faults }
  return accepted({
    type: 'source_updated',
    id,
    ...(name === undefined ? {} : { name }),
    ...(writeKey === undefined ? {} : { writeKey }),
    ...options,
  })
}

/** A write key travels as the user name of Basic auth (RFC 7617: no colon) and in URLs. */
function writeKeyFaults(writeKey: string, sourceId: string, state: SettingsAggregate): Fault[] {
  if (!/^[!-9;-~]{1,128}$/.test(writeKey))
    return [
      fault('usage', 'writeKey', 'the write key must be 1-128 visible ASCII characters without a colon'),
    ]
  for (const source of state.sources.values()) {
    if (source.writeKey === writeKey && source.id !== sourceId)
      return [fault('conflict', 'writeKey', `the write key is in use by source "${source.id}"`)]
  }
  return []
}
