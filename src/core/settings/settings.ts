import { z } from 'zod'
import type { AccessTokens } from '../access/tokens.ts'
import type { Acknowledgement } from '../problems/acknowledgement.ts'
import type { ReplayJob } from '../replay/replay-job.ts'
import type { Computations } from '../audience/computations.ts'
import type { DestinationOptions } from './destination-options.ts'
import type { TrackingPlans } from '../tracking-plan/tracking-plan.ts'
import type { SourceOptions } from './source-options.ts'
import { canonicalUrl } from '../delivery/endpoint-url.ts'
import type { MailAlerts } from '../operational/mail-alerts.ts'

/** A secret as it lies in the settings log: AES-256-GCM, every part base64url. Opened only where it is used. */
export const sealedSecret = z.object({
  keyId: z.string(),
  iv: z.string(),
  ciphertext: z.string(),
  tag: z.string(),
  /** Sealed for its place alone (secrets.ts). Absent on what development versions sealed. */
  bound: z.literal(true).optional(),
  /** Shown to people instead of the secret; keyed, so it cannot be guessed from outside. */
  fingerprint: z.string(),
})
export type SealedSecret = z.output<typeof sealedSecret>

/**
 * Where a secret is used, in one spelling. It is sealed for that place alone, so that a client that may write settings cannot
 * move it to where its text comes out: a shared secret into a header, or a header to another host. A header belongs to
 * its URL in whatever spelling, for an edit of the URLs keeps headers by that.
 */
export type SecretPlace = string

export const sharedSecretPlace = (destinationId: string): SecretPlace =>
  JSON.stringify(['shared-secret', destinationId])

export const headerPlace = (destinationId: string, url: string, name: string): SecretPlace =>
  JSON.stringify(['header', name.toLowerCase(), destinationId, canonicalUrl(url)])

/** The secret of OAuth2 goes to the token URL, so it belongs to that: it must not come out at another one. */
export const loginPlace = (
  { id, tokenUrl }: { id: string; tokenUrl: string | null },
  name: LoginName,
): SecretPlace =>
  JSON.stringify(
    name === 'oauthClientSecret'
      ? ['login', name, id, tokenUrl && canonicalUrl(tokenUrl)]
      : ['login', name, id],
  )

/** It goes to the origins of the destination's URLs, and must not come out at others. */
export const templateSecretPlace = (
  destinationId: string,
  { name, origins }: Pick<TemplateSecret, 'name' | 'origins'>,
): SecretPlace => JSON.stringify(['template-secret', name, destinationId, ...origins])

/** What may be shown of a certificate, whose text is kept encrypted. */
export const certificateFacts = z.object({
  subject: z.string(),
  issuer: z.string(),
  /** SHA-256 of the certificate, as OpenSSL writes it. */
  fingerprint: z.string(),
  /** Epoch ms. */
  expiresAt: z.number().int(),
})
export type CertificateFacts = z.output<typeof certificateFacts>

/** One or more certificates in PEM form; of a client, its own first. */
const sealedCertificates = sealedSecret.extend({ certificates: z.array(certificateFacts) })

/** What a destination's requests log in with, and whom they trust beside everybody's roots. */
export const loginSettings = z.object({
  clientCert: sealedCertificates.nullable(),
  /** In PEM form, of the first certificate of `clientCert`: there are both or none. */
  clientKey: sealedSecret.nullable(),
  ca: sealedCertificates.nullable(),
  /** Of OAuth2; the rest of that are options. */
  oauthClientSecret: sealedSecret.nullable(),
})
export type Login = z.output<typeof loginSettings>
export type LoginName = keyof Login
export const loginNames = Object.keys(loginSettings.shape) as LoginName[]

/** What `${secret.NAME}` stands for in the templates of a destination. */
export const templateSecret = z.object({
  name: z.string(),
  /** That requests went to when it was set. */
  origins: z.array(z.string()),
  value: sealedSecret,
})
export type TemplateSecret = z.output<typeof templateSecret>

/** Most destinations have this one. */
export const noLogin: Login = Object.freeze({
  clientCert: null,
  clientKey: null,
  ca: null,
  oauthClientSecret: null,
})

/** Its options stand beside the rest, as its events have them: there was one before there were rows. */
export interface Source extends SourceOptions {
  id: string
  name: string
  writeKey: string
  enabled: boolean
}

/**
 * A header of a URL. The expressions in the holes of its value stand beside it, so that what they are filled with is
 * known where the value cannot be opened; absent where it has none.
 */
const headerSettings = z.object({
  name: z.string(),
  value: sealedSecret,
  holes: z.array(z.string()).optional(),
})

/** A URL of a destination as an event carries it: whether it is gone is not a setting. The id stays when the list is edited. */
export const endpointSettings = z.object({
  id: z.string(),
  url: z.string(),
  headers: z.array(headerSettings),
})
export type EndpointSettings = z.output<typeof endpointSettings>

/** One URL of a destination. */
export interface Endpoint extends EndpointSettings {
  /** When the receiver last answered 410; null once the URL was changed or the destination enabled again. */
  goneAt: number | null
}

export interface Destination {
  id: string
  name: string
  type: 'Webhooks'
  sourceIds: string[]
  urls: Endpoint[]
  /** The newest: it signs X-Signature. */
  sharedSecret: SealedSecret | null
  /** Still active beside it, until receivers know the newest; never without one. */
  earlierSecret: SealedSecret | null
  login: Login
  templateSecrets: readonly TemplateSecret[]
  options: DestinationOptions
  enabled: boolean
  /** Its calls are held meanwhile: they finish without an attempt and are replayed after the pause. */
  pause: Pause | null
  /** Pauses that were ended, the oldest first: each has a replay of what it held. Those of the last 40 days. */
  endedPauses: EndedPause[]
}

export interface Pause {
  /** Names what was held in the ledger, so that a replay takes exactly that. */
  id: string
  /** Epoch ms. */
  since: number
  /** When it ends by itself, epoch ms; null for not. */
  until: number | null
}

export interface EndedPause {
  id: string
  since: number
  endedAt: number
  /** The most of what it held that is sent in a second; null: without a bound. */
  rate: number | null
}

export interface SettingsState {
  /** Events accepted so far, in the whole log. */
  version: number
  sources: ReadonlyMap<string, Source>
  /** As a limited token sees it: the built-in source is about all destinations. */
  hidesBuiltIn?: true
  destinations: ReadonlyMap<string, Destination>
  /** Audiences and computed traits, by id; deleted ones too. */
  computations: Computations
  /** Tokens of the admin API, by name; revoked ones too. */
  tokens: AccessTokens
  /** Replays by id, the oldest first; those that ended long ago are left out. */
  replays: ReadonlyMap<string, ReplayJob>
  /** Tracking plans, by id; removed ones too. */
  plans: TrackingPlans
  /** Of problems, by their ids: the newest. */
  acknowledgements: ReadonlyMap<string, Acknowledgement>
  /** Who gets operational events by mail, by id; removed ones too. */
  mailAlerts: MailAlerts
}

/** The state that decisions need: what is configured, and which endpoint ids were ever given out. */
export interface SettingsAggregate extends SettingsState {
  /** By destination id: the highest number of an endpoint id (`u1`, `u2`, …) so far. Ids are never reused. */
  endpointsMade: ReadonlyMap<string, number>
}

export const initialSettings: SettingsAggregate = {
  version: 0,
  sources: new Map(),
  destinations: new Map(),
  computations: new Map(),
  tokens: new Map(),
  replays: new Map(),
  plans: new Map(),
  acknowledgements: new Map(),
  mailAlerts: new Map(),
  endpointsMade: new Map(),
}
