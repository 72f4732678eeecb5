import { accepted, fault, faultIf, idFaults, nameFaults, refused, type Fault } from '../decision.ts'
import type { TrackingPlanCommand } from '../settings/commands.ts'
import type { Decision } from '../settings/events.ts'
import type { SettingsAggregate } from '../settings/settings.ts'
import { trackingPlanOf, type TrackingPlan } from './tracking-plan.ts'

/** Of a plan's events as JSON, in bytes of UTF-8: one event of the settings holds it, with room to spare. */
export const maxPlanBytes = 256 * 1_024
export const maxEvents = 1_000
export const maxEventLength = 200

export function decideTrackingPlan(command: TrackingPlanCommand, state: SettingsAggregate): Decision {
  if (command.type === 'create_plan') return decideCreate(command, state)
  const { id } = command
  const found = trackingPlanOf(state, id)
  if (!found) return refused('not_found', 'id', `plan ${JSON.stringify(id)} does not exist`)
  return command.type === 'update_plan' ? decideUpdate(command, found) : decideRemove(id, state)
}

function decideCreate(
  command: Extract<TrackingPlanCommand, { type: 'create_plan' }>,
  { plans }: SettingsAggregate,
): Decision {
  const { id, name, events, unknownEvents } = command
  const taken = `plan ${JSON.stringify(id)} exists already or did once, and ids are never reused`
  const faults = [
    ...idFaults(id),
    ...faultIf(plans.has(id), 'conflict', 'id', taken),
    ...nameFaults(name),
    ...eventsFaults(events),
  ]
  if (faults.length > 0) return { accepted: false, faults }
  return accepted({ type: 'plan_created', plan: { id, name, events, unknownEvents } })
}

function decideUpdate(
  command: Extract<TrackingPlanCommand, { type: 'update_plan' }>,
  found: TrackingPlan,
): Decision {
  const { id, name, events, unknownEvents } = command
  const isEmpty = name === undefined && events === undefined && unknownEvents === undefined
  const faults = [
    ...faultIf(isEmpty, 'usage', 'id', 'nothing to change: give a name, events or unknownEvents'),
    ...(name === undefined ? [] : nameFaults(name)),
    ...(events === undefined ? [] : eventsFaults(events)),
  ]
  if (faults.length > 0) return { accepted: false, faults }
  const edit = {
    ...(name !== undefined && name !== found.name && { name }),
    ...(events !== undefined && !isSame(events, found.events) && { events }),
    ...(unknownEvents !== undefined && unknownEvents !== found.unknownEvents && { unknownEvents }),
  }
  return accepted(Object.keys(edit).length === 0 ? null : { type: 'plan_updated', id, ...edit })
}

const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other)

function decideRemove(id: string, { sources }: SettingsAggregate): Decision {
  const pointing = [...sources.values()].filter(({ plan }) => plan === id).map((source) => source.id)
  if (pointing.length === 0) return accepted({ type: 'plan_removed', id })
  const named = pointing.map((each) => JSON.stringify(each)).join(', ')
  const message = `plan ${JSON.stringify(id)} is that of ${pointing.length === 1 ? 'source' : 'sources'} ${named}: take it away there first`
  return refused('conflict', 'id', message)
}

function eventsFaults(events: TrackingPlan['events']): Fault[] {
  const bytes = new TextEncoder().encode(JSON.stringify(events)).length
  const tooLarge = `the events are ${bytes} bytes of JSON, at most ${maxPlanBytes} are allowed: divide the plan`
  const names = Object.keys(events)
  const tooMany = `the plan has ${names.length} events, at most ${maxEvents} are allowed`
  return [
    ...faultIf(bytes > maxPlanBytes, 'usage', 'events', tooLarge),
    ...faultIf(names.length > maxEvents, 'usage', 'events', tooMany),
    ...names.flatMap((name) => {
      if (name !== '' && name.length <= maxEventLength && !/\p{Cc}/u.test(name)) return []
      const rule = `must be 1-${maxEventLength} characters without control characters`
      return [
        fault('usage', 'events', `the event name ${JSON.stringify(name.slice(0, maxEventLength))} ${rule}`),
      ]
    }),
  ]
}

/** A source may only point to a plan that there is. */
export function pointedPlanFaults(
  plan: string | null | undefined,
  state: Pick<SettingsAggregate, 'plans'>,
): Fault[] {
  const isMissing = typeof plan === 'string' && !trackingPlanOf(state, plan)
  return faultIf(isMissing, 'not_found', 'plan', `plan ${JSON.stringify(plan)} does not exist`)
}
