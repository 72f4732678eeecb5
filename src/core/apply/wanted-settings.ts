import type { ComputationKind } from '../audience/computations.ts'
import { canonicalUrl } from '../delivery/endpoint-url.ts'
import type {
  NewCertificates,
  NewSecret,
  HeaderEdit,
  LoginEdit,
  SecretPair,
  TemplateSecretEdit,
} from '../settings/commands.ts'
import type { OptionsEdit } from '../settings/destination-options.ts'
import { changeBy, endpointsMadeBy, type SingleEvent } from '../settings/events.ts'
import { fault, type Fault } from '../decision.ts'
import type { MailAlertFields } from '../operational/mail-alerts.ts'
import type { TrackingPlan } from '../tracking-plan/tracking-plan.ts'
import { activeSecrets } from '../settings/secrets.ts'
import { isForOrigins } from '../settings/template-secrets.ts'
import {
  loginNames,
  type Destination,
  type LoginName,
  type SealedSecret,
  type SettingsAggregate,
  type Source,
} from '../settings/settings.ts'

/** A secret that a settings file refers to. */
export interface WantedSecret {
  /** The name of the variable that holds it. */
  variable: string
  /** Null when the variable is not set: then the secret that lies in its place stays. */
  given: GivenSecret | null
}

export interface GivenSecret {
  /** False also where that cannot be known, for a key is missing. */
  equals(sealed: SealedSecret): boolean
  /** Asked only for one that is to be written. Throws what a Sealer does. */
  make(): NewSecret | NewCertificates
}

/** Without a write key the one that there is stays, or a new source gets `spareWriteKey`. */
export type WantedSource = Omit<Source, 'writeKey'> & {
  writeKey: string | null
  spareWriteKey: string
}

export interface WantedUrl {
  url: string
  headers: { name: string; value: WantedSecret }[]
}

export interface WantedDestination {
  id: string
  name: string
  enabled: boolean
  sourceIds: string[]
  urls: WantedUrl[]
  sharedSecret: WantedSecret | null
  earlierSecret: WantedSecret | null
  login: Record<LoginName, WantedSecret | null>
  templateSecrets: { name: string; value: WantedSecret }[]
  /** What is not given is the default. */
  options: OptionsEdit
}

export interface WantedComputation {
  id: string
  name: string
  sourceId: string
}

/** As it is created. */
export type WantedTrackingPlan = Pick<TrackingPlan, 'id' | 'name' | 'events' | 'unknownEvents'>

/** As it is created. */
export type WantedMailAlert = { id: string } & MailAlertFields

/** What a settings file says: each of them whole. What it does not name is left alone, or disabled where that is asked for. */
export interface WantedSettings {
  plans: WantedTrackingPlan[]
  sources: WantedSource[]
  destinations: WantedDestination[]
  audiences: WantedComputation[]
  traits: WantedComputation[]
  mailAlerts: WantedMailAlert[]
}

/** The lists of a settings file, by the kind of what is in them. */
export const computationLists = { audiences: 'audience', traits: 'trait' } as const satisfies Record<
  string,
  ComputationKind
>

export interface ApplyCommand {
  type: 'apply_settings'
  wanted: WantedSettings
  /** Disables sources, destinations and alerts by mail that are not named. */
  prune: boolean
}

/** What was looked at on the way. */
export interface SecretNotes {
  /** `field` as the file names it, below the destination. */
  faults: Fault[]
  /** Variables that are not set, and whose secrets stay. */
  kept: string[]
}

/** Stands in for a missing one, which is a fault already, so that no rule refuses the destination for that as well. */
const missing: NewSecret = {
  text: '-',
  fingerprint: '',
  seal: () => ({ keyId: '', iv: '', ciphertext: '', tag: '', fingerprint: '' }),
}

const isNotSet = (field: string, variable: string): Fault =>
  fault('usage', field, `${variable} is not set, and there is no such secret yet that could stay`)

/** Undefined when both are as they are to be. */
export function pairFor(
  { sharedSecret, earlierSecret }: WantedDestination,
  current: Destination | undefined,
  notes: SecretNotes,
): SecretPair | undefined {
  const active = current ? activeSecrets(current) : []
  const find = (field: 'sharedSecret' | 'earlierSecret', wanted: WantedSecret | null) => {
    if (wanted === null) return null
    const { variable, given } = wanted
    if (given) return active.find((sealed) => given.equals(sealed)) ?? given.make()
    const stays = current?.[field]
    if (stays) notes.kept.push(variable)
    else notes.faults.push(isNotSet(field, variable))
    return stays ?? missing
  }
  const pair = {
    sharedSecret: find('sharedSecret', sharedSecret),
    earlierSecret: find('earlierSecret', earlierSecret),
  }
  const isSame =
    pair.sharedSecret === (current?.sharedSecret ?? null) &&
    pair.earlierSecret === (current?.earlierSecret ?? null)
  return isSame ? undefined : pair
}

/** Undefined when all is as it is to be. */
export function loginEditFor(
  { login, options }: WantedDestination,
  current: Destination | undefined,
  notes: SecretNotes,
): LoginEdit | undefined {
  const isPair = (name: LoginName) => name === 'clientCert' || name === 'clientKey'
  const isSameIn = (name: LoginName) => {
    const [wanted, there] = [login[name], current?.login[name] ?? null]
    if (wanted === null) return there === null
    // It is bound to its token URL.
    const isMoved = name === 'oauthClientSecret' && options.oauthTokenUrl !== current?.options.oauthTokenUrl
    return there !== null && (wanted.given === null || (wanted.given.equals(there) && !isMoved))
  }
  const edit: Record<string, NewSecret | null> = {}
  for (const name of loginNames) {
    const wanted = login[name]
    if (wanted !== null && wanted.given === null) {
      if (current?.login[name]) notes.kept.push(wanted.variable)
      else notes.faults.push(isNotSet(name, wanted.variable))
    }
    // A certificate and its key are set together.
    const isAsWanted = isPair(name) ? loginNames.filter(isPair).every(isSameIn) : isSameIn(name)
    if (!isAsWanted && wanted?.given !== null) edit[name] = wanted?.given.make() ?? null
  }
  return Object.keys(edit).length > 0 ? (edit as LoginEdit) : undefined
}

/** Secrets of templates to set and to take away. */
export function templateSecretEditsFor(
  { urls, templateSecrets }: WantedDestination,
  current: Destination | undefined,
  notes: SecretNotes,
): TemplateSecretEdit[] {
  const there = new Map((current?.templateSecrets ?? []).map((secret) => [secret.name, secret]))
  const edits = templateSecrets.flatMap(({ name, value: { variable, given } }): TemplateSecretEdit[] => {
    const found = there.get(name)
    there.delete(name)
    if (given === null) {
      if (found) notes.kept.push(variable)
      else notes.faults.push(isNotSet(`templateSecrets.${name}`, variable))
      return found ? [] : [{ name, value: missing }]
    }
    // It is bound to its hosts.
    return found && given.equals(found.value) && isForOrigins(found, urls)
      ? []
      : [{ name, value: given.make() }]
  })
  return [...edits, ...[...there.keys()].map((name) => ({ name, value: null }))]
}

/** Headers to set and to take away. */
export function headerEditsFor(
  { urls }: WantedDestination,
  current: Destination | undefined,
  notes: SecretNotes,
): HeaderEdit[] {
  return urls.flatMap(({ url, headers }, index) => {
    const kept = current?.urls.find((endpoint) => canonicalUrl(endpoint.url) === canonicalUrl(url))
    const there = new Map((kept?.headers ?? []).map((header) => [header.name.toLowerCase(), header]))
    const edits = headers.flatMap(({ name, value: { variable, given } }): HeaderEdit[] => {
      const found = there.get(name.toLowerCase())
      there.delete(name.toLowerCase())
      if (given === null) {
        if (found) notes.kept.push(variable)
        else notes.faults.push(isNotSet(`urls.${index}.headers.${name}`, variable))
        return []
      }
      if (found && isSame(found, name, given.equals)) return []
      return [{ urlNumber: index + 1, name, value: given.make() }]
    })
    const removed = [...there.values()].map(({ name }) => ({ urlNumber: index + 1, name, value: null }))
    return [...edits, ...removed]
  })
}

const isSame = (
  found: { name: string; value: SealedSecret },
  name: string,
  equals: (sealed: SealedSecret) => boolean,
): boolean => found.name === name && equals(found.value)

/** Settings that are changed step by step, to decide each step on what those before it lead to. */
export class SettingsDraft {
  readonly #maps
  readonly state: SettingsAggregate

  /** Copies once, however many steps follow. */
  constructor(from: SettingsAggregate) {
    this.#maps = {
      sources: new Map<string, unknown>(from.sources),
      destinations: new Map<string, unknown>(from.destinations),
      computations: new Map<string, unknown>(from.computations),
      tokens: new Map<string, unknown>(from.tokens),
      replays: new Map<string, unknown>(from.replays),
      plans: new Map<string, unknown>(from.plans),
      acknowledgements: new Map<string, unknown>(from.acknowledgements),
      mailAlerts: new Map<string, unknown>(from.mailAlerts),
      endpointsMade: new Map(from.endpointsMade),
    }
    this.state = { version: from.version, ...this.#maps } as SettingsAggregate
  }

  add(event: SingleEvent): void {
    const { of, value } = changeBy(this.state, event)
    this.#maps[of].set(value.id, value)
    if (of === 'destinations') this.#maps.endpointsMade.set(value.id, endpointsMadeBy(value, this.state))
  }

  /** Stands in for a source that was refused, so that what refers to it is not refused for that as well. */
  addPlaceholder(source: Source): void {
    if (!this.state.sources.has(source.id)) this.#maps.sources.set(source.id, source)
  }
}
