import { z } from 'zod'
import { accepted, fault, faultIf, idFaults, nameFaults, refused, type Fault } from '../decision.ts'
import type { Decision } from '../settings/events.ts'
import type { SettingsAggregate } from '../settings/settings.ts'
import { operationalEventNames } from './operational-event.ts'

/** Somebody who gets operational events by mail. */
export interface MailAlert {
  id: string
  name: string
  /** Addresses. */
  to: readonly string[]
  /** Names of the events that it gets; null for all. */
  events: readonly string[] | null
  enabled: boolean
  /** Removed ones are kept, without their addresses: ids are never reused. */
  removed: boolean
}

export type MailAlerts = ReadonlyMap<string, MailAlert>
/** What of one can be set. */
export type MailAlertFields = Pick<MailAlert, 'name' | 'to' | 'events' | 'enabled'>

/** That are there at the same time. */
export const maxMailAlerts = 20
export const maxMailRecipients = 20
/** Of RFC 5321. */
const maxAddressLength = 254

const noAddress = (given: unknown): string =>
  `${JSON.stringify(String(given).slice(0, 100))} is no mail address`

/** As a browser checks it: no second address, no name and no header fits into one. */
export const mailAddress = z
  .email({
    pattern: z.regexes.html5Email,
    error: ({ input }) => noAddress(input),
  })
  .max(maxAddressLength)

const fields = {
  name: z.string(),
  to: z.array(z.string()),
  events: z.array(z.string()).nullable(),
  enabled: z.boolean(),
}

/** What can have happened to one. */
export const mailAlertEvents = [
  z.object({ type: z.literal('mail_alert_created'), id: z.string(), ...fields }),
  z.object({ type: z.literal('mail_alert_updated'), id: z.string(), ...z.object(fields).partial().shape }),
  z.object({ type: z.literal('mail_alert_removed'), id: z.string() }),
] as const
export type MailAlertEvent = z.output<(typeof mailAlertEvents)[number]>

export type MailAlertCommand =
  | ({ type: 'create_mail_alert'; id: string } & MailAlertFields)
  | ({ type: 'update_mail_alert'; id: string } & {
      [F in keyof MailAlertFields]?: MailAlertFields[F] | undefined
    })
  | { type: 'remove_mail_alert'; id: string }

/** The one of this id, unless it was removed. */
export function mailAlertOf({ mailAlerts }: { mailAlerts: MailAlerts }, id: string): MailAlert | undefined {
  const found = mailAlerts.get(id)
  return found?.removed ? undefined : found
}

/** Those that are there, the oldest first. */
export const mailAlertsIn = ({ mailAlerts }: { mailAlerts: MailAlerts }): MailAlert[] =>
  [...mailAlerts.values()].filter(({ removed }) => !removed)

/** The one that the event is about, after it. Throws for what no writer of ours can have written. */
export function mailAlertAfter(all: MailAlerts, event: MailAlertEvent): MailAlert {
  if (event.type === 'mail_alert_created') {
    const { type: _, ...made } = event
    return { ...made, removed: false }
  }
  const found = all.get(event.id)
  if (!found) throw new Error(`${event.type} names alert "${event.id}", which does not exist`)
  if (event.type === 'mail_alert_removed') return { ...found, to: [], removed: true }
  const { name, to, events, enabled } = event
  return {
    ...found,
    name: name ?? found.name,
    to: to ?? found.to,
    events: events === undefined ? found.events : events,
    enabled: enabled ?? found.enabled,
  }
}

export function decideMailAlert(command: MailAlertCommand, state: SettingsAggregate): Decision {
  const { id } = command
  if (command.type === 'create_mail_alert') return decideCreate(command, state)
  const found = mailAlertOf(state, id)
  if (!found) return refused('not_found', 'id', `alert ${JSON.stringify(id)} by mail does not exist`)
  if (command.type === 'remove_mail_alert') return accepted({ type: 'mail_alert_removed', id })
  const given = Object.entries(command).filter(
    ([field, value]) => field !== 'type' && field !== 'id' && value !== undefined,
  )
  const faults = [
    ...faultIf(given.length === 0, 'usage', 'id', 'nothing to change: give a name, to, events or enabled'),
    ...fieldFaults(command),
  ]
  if (faults.length > 0) return { accepted: false, faults }
  const edit = Object.fromEntries(
    given.filter(
      ([field, value]) => JSON.stringify(value) !== JSON.stringify(found[field as keyof MailAlert]),
    ),
  )
  return accepted(Object.keys(edit).length === 0 ? null : { type: 'mail_alert_updated', id, ...edit })
}

function decideCreate(
  { id, name, to, events, enabled }: Extract<MailAlertCommand, { type: 'create_mail_alert' }>,
  state: SettingsAggregate,
): Decision {
  const count = mailAlertsIn(state).length
  const faults = [
    ...idFaults(id),
    ...faultIf(
      state.mailAlerts.has(id),
      'conflict',
      'id',
      `alert ${JSON.stringify(id)} by mail exists already or did once, and ids are never reused`,
    ),
    ...faultIf(
      count >= maxMailAlerts,
      'conflict',
      'id',
      `there are ${count} alerts by mail, the most that are allowed: remove one first`,
    ),
    ...fieldFaults({ name, to, events }),
  ]
  if (faults.length > 0) return { accepted: false, faults }
  return accepted({
    type: 'mail_alert_created',
    ...{ id, name, to: [...to], events: events && [...events], enabled },
  })
}

function fieldFaults({
  name,
  to,
  events,
}: { [F in keyof MailAlertFields]?: MailAlertFields[F] | undefined }): Fault[] {
  const known: readonly string[] = operationalEventNames
  const unknown = (events ?? []).filter((event) => !known.includes(event))
  return [
    ...(name === undefined ? [] : nameFaults(name)),
    ...(to === undefined ? [] : recipientFaults(to)),
    ...faultIf(events?.length === 0, 'usage', 'events', 'at least one event is needed; null stands for all'),
    ...unknown.map((event) =>
      fault('usage', 'events', `${JSON.stringify(event)} is none; there are ${known.join(', ')}`),
    ),
  ]
}

function recipientFaults(to: readonly string[]): Fault[] {
  const usage = (message: string): Fault[] => [fault('usage', 'to', message)]
  if (to.length === 0) return usage('at least one address is needed')
  if (to.length > maxMailRecipients)
    return usage(`${to.length} addresses are given, at most ${maxMailRecipients} are allowed`)
  return to.flatMap((address, index) => {
    if (!mailAddress.safeParse(address).success) return usage(noAddress(address))
    return to.indexOf(address) < index ? usage(`${address} is named twice`) : []
  })
}
