import { z } from 'zod'
import { tokenAfter, tokenEvents, type AccessToken, type TokenEvent } from '../access/tokens.ts'
import {
  computationAfter,
  computationEvents,
  type Computation,
  type ComputationKind,
} from '../audience/computations.ts'
import { mailAlertAfter, mailAlertEvents, type MailAlert } from '../operational/mail-alerts.ts'
import {
  acknowledgementEvents,
  forgottenAcknowledgements,
  type Acknowledgement,
} from '../problems/acknowledgement.ts'
import type { ReplayJob } from '../replay/replay-job.ts'
import { forgottenBy, replayAfter, replayEvents } from '../replay/replay-events.ts'
import { defaultOptions, editOptions, optionsOfEvent } from './destination-options.ts'
import type { DecisionOf } from '../decision.ts'
import { trackingPlanAfter, trackingPlanEvents, type TrackingPlan } from '../tracking-plan/tracking-plan.ts'
import { editedLogin } from './login.ts'
import { withResealed } from './secrets.ts'
import { defaultSourceOptions, editSourceOptions, sourceOptionsOfEvent } from './source-options.ts'
import {
  endpointSettings,
  loginSettings,
  noLogin,
  sealedSecret,
  templateSecret,
  type Destination,
  type Endpoint,
  type EndpointSettings,
  type SettingsAggregate,
  type SettingsState,
  type Source,
} from './settings.ts'

const sourceSettings = z.object({
  id: z.string(),
  name: z.string(),
  writeKey: z.string(),
  ...sourceOptionsOfEvent.shape,
  enabled: z.boolean(),
})

/** What is absent stays as it is. */
const loginOfEvent = loginSettings.partial()

const destinationSettings = z.object({
  id: z.string(),
  name: z.string(),
  type: z.literal('Webhooks'),
  sourceIds: z.array(z.string()),
  urls: z.array(endpointSettings),
  sharedSecret: sealedSecret.nullable(),
  login: loginOfEvent.optional(),
  templateSecrets: z.array(templateSecret).optional(),
  options: optionsOfEvent.optional(),
  enabled: z.boolean(),
})
export type DestinationSettings = z.output<typeof destinationSettings>

const head = { id: z.string() }
/** Epoch ms. */
const at = z.number().int()

const sourceEvents = [
  z.object({ type: z.literal('source_created'), source: sourceSettings }),
  z.object({
    type: z.literal('source_updated'),
    ...head,
    name: z.string().optional(),
    writeKey: z.string().optional(),
    ...sourceOptionsOfEvent.shape,
  }),
  z.object({ type: z.literal('source_enabled'), ...head }),
  z.object({ type: z.literal('source_disabled'), ...head }),
] as const

const destinationEvents = [
  z.object({ type: z.literal('destination_created'), destination: destinationSettings }),
  z.object({
    type: z.literal('destination_updated'),
    ...head,
    name: z.string().optional(),
    sourceIds: z.array(z.string()).optional(),
    urls: z.array(endpointSettings).optional(),
    /** Null takes all secrets away. */
    sharedSecret: sealedSecret.nullable().optional(),
    /** Stays active beside `sharedSecret`, which is there too; absent: that one replaced all. */
    earlierSecret: sealedSecret.optional(),
    login: loginOfEvent.optional(),
    /** All of them. */
    templateSecrets: z.array(templateSecret).optional(),
    options: optionsOfEvent.optional(),
  }),
  z.object({ type: z.literal('destination_enabled'), ...head }),
  z.object({ type: z.literal('destination_disabled'), ...head }),
  /** The same secrets under another key. */
  z.object({
    type: z.literal('secrets_resealed'),
    ...head,
    sharedSecret: sealedSecret.optional(),
    earlierSecret: sealedSecret.optional(),
    login: loginOfEvent.optional(),
    templateSecrets: z.array(templateSecret).optional(),
    headers: z.array(z.object({ urlId: z.string(), name: z.string(), value: sealedSecret })),
  }),
  /** `until` is null for a pause without an end. */
  z.object({ type: z.literal('destination_paused'), ...head, pauseId: z.string(), at, until: at.nullable() }),
  /** `rate`: of the replay of what it held, a second. */
  z.object({
    type: z.literal('destination_resumed'),
    ...head,
    pauseId: z.string(),
    at,
    rate: z.number().optional(),
  }),
  /** A receiver answered 410. */
  z.object({ type: z.literal('endpoint_gone'), ...head, urlId: z.string(), at }),
] as const

const singleEvents = [
  ...sourceEvents,
  ...destinationEvents,
  ...computationEvents,
  ...replayEvents,
  ...trackingPlanEvents,
  ...acknowledgementEvents,
  ...mailAlertEvents,
] as const

/** What can be done together with others, as one event that counts as a whole or not at all. */
export type SingleEvent = z.output<(typeof singleEvents)[number]>
type DestinationChange = Exclude<
  z.output<(typeof destinationEvents)[number]>,
  { type: 'destination_created' }
>

/**
 * What can have happened to the settings, as the log has it. Kept for ever, so a type's fields are only ever added, as
 * optional. An update holds what was changed and nothing else: two writers that change different fields both keep theirs.
 * Fields that a newer version added are left out; a type that it added cannot be read.
 */
export const settingsEvents = [
  ...singleEvents,
  ...tokenEvents,
  z.object({
    type: z.literal('settings_applied'),
    events: z.array(z.discriminatedUnion('type', singleEvents)),
  }),
] as const
export type SettingsEvent = z.output<(typeof settingsEvents)[number]>

export type Decision = DecisionOf<SettingsEvent>

/** Which aggregate an event belongs to: the key of its record. */
export function aggregateOf(event: SettingsEvent): {
  aggregate:
    | 'source'
    | 'destination'
    | 'token'
    | 'replay'
    | 'plan'
    | 'problem'
    | 'mail_alert'
    | 'settings'
    | ComputationKind
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
    case 'token_created':
    case 'token_revoked':
      return { aggregate: 'token', id: event.id }
    case 'plan_created':
      return { aggregate: 'plan', id: event.plan.id }
    case 'plan_updated':
    case 'plan_removed':
      return { aggregate: 'plan', id: event.id }
    case 'problem_acknowledged':
      return { aggregate: 'problem', id: event.id }
    case 'mail_alert_created':
    case 'mail_alert_updated':
    case 'mail_alert_removed':
      return { aggregate: 'mail_alert', id: event.id }
    case 'settings_applied':
      return { aggregate: 'settings', id: 'settings' }
    case 'replay_started':
      return { aggregate: 'replay', id: event.replay.id }
    case 'replay_paused':
    case 'replay_resumed':
    case 'replay_cancelled':
    case 'replay_finished':
      return { aggregate: 'replay', id: event.id }
    default:
      return { aggregate: 'destination', id: event.id }
  }
}

/** The events that one stands for, in their order. Each changes one thing. */
export const partsOf = (event: SettingsEvent): readonly (SingleEvent | TokenEvent)[] =>
  event.type === 'settings_applied' ? event.events : [event]

export type SettingsChange =
  | { of: 'sources'; value: Source }
  | { of: 'destinations'; value: Destination }
  | { of: 'computations'; value: Computation }
  | { of: 'tokens'; value: AccessToken }
  | { of: 'replays'; value: ReplayJob }
  | { of: 'plans'; value: TrackingPlan }
  | { of: 'acknowledgements'; value: Acknowledgement }
  | { of: 'mailAlerts'; value: MailAlert }

/** The state after an accepted event. Throws as `changeBy`. */
export function evolve(state: SettingsAggregate, event: SettingsEvent): SettingsAggregate {
  return { ...partsOf(event).reduce(evolveOne, state), version: state.version + 1 }
}

function evolveOne(state: SettingsAggregate, event: SingleEvent | TokenEvent): SettingsAggregate {
  const { of, value } = changeBy(state, event)
  const next = { ...state, [of]: new Map<string, unknown>(state[of]).set(value.id, value) }
  if (of === 'replays')
    for (const id of forgottenBy(value, next.replays)) (next.replays as Map<string, ReplayJob>).delete(id)
  if (of === 'acknowledgements')
    for (const id of forgottenAcknowledgements(next.acknowledgements))
      (next.acknowledgements as Map<string, Acknowledgement>).delete(id)
  if (of !== 'destinations') return next
  const made = endpointsMadeBy(value, state)
  return { ...next, endpointsMade: new Map(state.endpointsMade).set(value.id, made) }
}

/**
 * What an accepted event changes. Total over every event that `decide` makes on the same state; throws for an event
 * of something that does not exist, which no writer of ours can have written.
 */
export function changeBy(state: SettingsState, event: SingleEvent | TokenEvent): SettingsChange {
  if ('kind' in event) return { of: 'computations', value: computationAfter(state.computations, event) }
  switch (event.type) {
    case 'source_created':
      return { of: 'sources', value: newSource(event.source) }
    case 'source_updated': {
      const source = existing(state.sources, event.id, event.type)
      const { name = source.name, writeKey = source.writeKey } = event
      return { of: 'sources', value: editSourceOptions({ ...source, name, writeKey }, event) }
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
        pause: null,
        endedPauses: [],
        login: editedLogin(noLogin, destination.login ?? {}),
        templateSecrets: destination.templateSecrets ?? noTemplateSecrets,
        options: editOptions(defaultOptions, destination.options ?? {}),
      }
      return { of: 'destinations', value }
    }
    case 'plan_created':
    case 'plan_updated':
    case 'plan_removed':
      return { of: 'plans', value: trackingPlanAfter(state.plans, event) }
    case 'token_created':
    case 'token_revoked':
      return { of: 'tokens', value: tokenAfter(state.tokens, event) }
    case 'replay_started':
    case 'replay_paused':
    case 'replay_resumed':
    case 'replay_cancelled':
    case 'replay_finished':
      return { of: 'replays', value: replayAfter(state.replays, event) }
    case 'problem_acknowledged': {
      const { id, at, by, size } = event
      return { of: 'acknowledgements', value: { id, at, by, size } }
    }
    case 'mail_alert_created':
    case 'mail_alert_updated':
    case 'mail_alert_removed':
      return { of: 'mailAlerts', value: mailAlertAfter(state.mailAlerts, event) }
    default: {
      const destination = existing(state.destinations, event.id, event.type)
      return { of: 'destinations', value: changedDestination(destination, event) }
    }
  }
}

const newSource = ({ id, name, writeKey, enabled, ...options }: z.output<typeof sourceSettings>): Source => ({
  ...{ id, name, writeKey },
  ...editSourceOptions(defaultSourceOptions, options),
  enabled,
})

/** The same one for all that have none. */
const noTemplateSecrets: Destination['templateSecrets'] = []

/** Long after the ledger has forgotten what they held. */
const endedPausesKeptMs = 40 * 86_400_000

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
        login: editedLogin(destination.login, event.login ?? {}),
        templateSecrets: event.templateSecrets ?? destination.templateSecrets,
        options: editOptions(destination.options, event.options ?? {}),
      }
    case 'secrets_resealed':
      return withResealed(destination, event)
    case 'destination_enabled':
      return { ...destination, enabled: true, urls: notGone(urls) }
    case 'destination_disabled':
      return { ...destination, enabled: false }
    case 'destination_paused':
      return { ...destination, pause: { id: event.pauseId, since: event.at, until: event.until } }
    case 'destination_resumed': {
      const { pause, endedPauses } = destination
      if (pause?.id !== event.pauseId) throw new Error(`${event.type} names another pause`)
      const { rate = null } = event
      const ended = { id: pause.id, since: pause.since, endedAt: event.at, rate }
      const recent = endedPauses.filter(({ endedAt }) => endedAt > event.at - endedPausesKeptMs)
      return { ...destination, pause: null, endedPauses: [...recent, ended] }
    }
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
