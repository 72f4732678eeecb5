import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { includesRole, type Role } from '../../core/access/roles.ts'
import type { AnalyticsCall } from '../../core/call/analytics-call.ts'
import type { Outcome } from '../../core/delivery/outcome.ts'
import { optionsShape } from '../../core/settings/destination-options.ts'
import type {
  CertificateFacts,
  Destination,
  Pause,
  SealedSecret,
  SettingsState,
  SettingsAggregate,
} from '../../core/settings/settings.ts'
import { noFacts, type SettingKind, type ShownFacts } from '../settings/setting-operations.ts'
import type { SettingsWriter } from '../settings/writer.ts'
import { healthSchema, withoutTokenSchema } from '../statistics/health-schema.ts'
import type { DestinationHealth } from '../statistics/overview.ts'
import { shownWithoutToken } from '../statistics/processes.ts'

const shownSecret = z
  .object({
    fingerprint: z
      .string()
      .describe('In place of the secret, which is never shown. Changes with SECRETS_KEY.'),
    keyId: z.string().describe('The key of SECRETS_KEY that it is encrypted with.'),
  })
  .meta({ id: 'SecretFingerprint' })

const shownCertificates = shownSecret
  .extend({
    certificates: z.array(
      z.object({
        subject: z.string(),
        issuer: z.string(),
        fingerprint: z.string().describe('SHA-256.'),
        expiresAt: z.iso.datetime(),
      }),
    ),
  })
  .meta({ id: 'ShownCertificates' })

/** Random: names in the ledger what the pause holds. */
export const newPauseId = (): string => randomBytes(9).toString('base64url')

/** A destination as it may be shown: of secrets only the fingerprint, and which key sealed it. */
export const destinationSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    type: z.literal('Webhooks'),
    enabled: z.boolean(),
    pause: z
      .object({
        id: z.string().describe('Names in the ledger what it holds.'),
        since: z.iso.datetime(),
        until: z.iso.datetime().nullable().describe('When it ends by itself; null for not.'),
        keptUntil: z.iso
          .datetime()
          .nullable()
          .describe(
            'When Kafka begins to delete what is held; null without a limit, or where it is not known.',
          ),
      })
      .nullable()
      .describe('Set while its calls are held.'),
    health: healthSchema.optional().describe('With `health`.'),
    withoutToken: withoutTokenSchema.optional(),
    sourceIds: z.array(z.string()),
    sharedSecret: shownSecret.nullable().describe('Signs X-Signature.'),
    earlierSecret: shownSecret.nullable().describe('Still active beside it.'),
    clientCert: shownCertificates.nullable().describe('What its requests identify themselves with over TLS.'),
    clientKey: shownSecret.nullable().describe('The key of that certificate.'),
    ca: shownCertificates.nullable().describe('Whom its requests trust beside all others.'),
    oauthClientSecret: shownSecret.nullable().describe('Of `oauthClientId`.'),
    templateSecrets: z
      .array(z.object({ name: z.string(), ...shownSecret.shape }))
      .describe('What `${secret.NAME}` stands for in its body, headers and URLs.'),
    ...optionsShape,
    urls: z.array(
      z.object({
        number: z.number().int().describe('From 1.'),
        id: z.string(),
        url: z.string(),
        headers: z.array(z.object({ name: z.string(), ...shownSecret.shape })),
        goneAt: z.iso.datetime().nullable().describe('Since when it answers 410; enabling tries it again.'),
      }),
    ),
  })
  .meta({ id: 'Destination' })

export type DestinationView = z.output<typeof destinationSchema>

function destinationView(
  destination: Destination,
  _state: SettingsState,
  facts: ShownFacts = noFacts,
): DestinationView {
  const { id, name, type, enabled, pause, sourceIds, sharedSecret, earlierSecret, login, options } =
    destination
  return {
    id,
    name,
    type,
    enabled,
    pause: pause && pauseView(pause, facts),
    ...(facts.healths && healthShown(facts.healths.get(id))),
    sourceIds,
    sharedSecret: sharedSecret && shownOf(sharedSecret),
    earlierSecret: earlierSecret && shownOf(earlierSecret),
    clientCert: login.clientCert && certificatesOf(login.clientCert),
    clientKey: login.clientKey && shownOf(login.clientKey),
    ca: login.ca && certificatesOf(login.ca),
    oauthClientSecret: login.oauthClientSecret && shownOf(login.oauthClientSecret),
    templateSecrets: destination.templateSecrets.map(({ name, value }) => ({ name, ...shownOf(value) })),
    ...options,
    urls: destination.urls.map((url, index) => ({
      number: index + 1,
      id: url.id,
      url: url.url,
      headers: url.headers.map((header) => ({ name: header.name, ...shownOf(header.value) })),
      goneAt: url.goneAt === null ? null : new Date(url.goneAt).toISOString(),
    })),
  }
}

/** With `health`. */
const healthShown = (found: DestinationHealth | undefined) =>
  found && { health: found.all, withoutToken: found.withoutToken && shownWithoutToken(found.withoutToken) }

function pauseView({ id, since, until }: Pause, { heldKeptMs }: ShownFacts) {
  const iso = (at: number | null) => (at === null ? null : new Date(at).toISOString())
  const keptUntil = heldKeptMs === null ? null : Math.min(since + heldKeptMs, latestDate)
  return { id, since: iso(since)!, until: iso(until), keptUntil: iso(keptUntil) }
}

/** The end of the year 9999, epoch ms: a topic may keep its records longer than dates can say. */
const latestDate = 253_402_300_799_999

const shownOf = ({ fingerprint, keyId }: SealedSecret) => ({ fingerprint, keyId })

const certificatesOf = (sealed: SealedSecret & { certificates: CertificateFacts[] }) => ({
  ...shownOf(sealed),
  certificates: sealed.certificates.map((each) => ({
    ...each,
    expiresAt: new Date(Math.min(each.expiresAt, latestDate)).toISOString(),
  })),
})

export const destinationKind = {
  one: 'destination',
  schema: destinationSchema,
  all: ({ destinations }) => destinations,
  view: destinationView,
} as const satisfies SettingKind<Destination, DestinationView>

export interface SampleTerms {
  /** Default: one that every destination can get. */
  call?: AnalyticsCall | undefined
  /** Nothing is sent. */
  dryRun?: boolean
}

/** A request without the values of static headers. */
export interface ShownRequest {
  method: string
  /** As it is asked for, its holes filled. */
  url: string
  headers: { name: string; value: string }[]
  body: string
}

/** What became of a sample call at one URL. */
export interface SampleResult {
  /** From 1. */
  number: number
  url: string
  request: ShownRequest
  /** Null where nothing was sent. */
  outcome: Outcome | null
}

export const sampleView = ({ number, url, request, outcome }: SampleResult) => ({
  number,
  url,
  request,
  outcome: outcome?.kind ?? null,
  status: outcome?.status ?? null,
  durationMs: outcome === null ? null : Math.round(outcome.durationMs),
  detail: outcome?.detail ?? null,
  response: outcome?.body ? Buffer.from(outcome.body).toString() : null,
})

/** White space is no part of a URL that can be set: what a reader exports cannot be applied by mistake. */
const hidden = '[not shown to a reader]'

/**
 * A destination's URL as it is shown to a role. Queries often hold a token of the receiver, which a reader must not have:
 * names are kept, values are not, and what has no name is taken for a value.
 */
export function urlFor(role: Role, url: string): string {
  const end = url.search(/[?#]/)
  if (includesRole(role, 'operator') || end < 0) return url
  const [query, ...fragment] = url.slice(end).split('#')
  const pairs = query!
    .slice(1)
    .split('&')
    .map((pair) => (pair === '' ? '' : pair.replace(/^([^=]*=)?.*$/s, `$1${hidden}`)))
  return (
    url.slice(0, end) +
    (query!.startsWith('?') ? `?${pairs.join('&')}` : '') +
    (fragment.join('#') === '' ? '' : `#${hidden}`)
  )
}

/** A template of a body may hold a key of the receiver, too: readers see which types have one. */
export function destinationFor(role: Role, destination: Destination): Destination {
  if (includesRole(role, 'operator')) return destination
  const urls = destination.urls.map((each) => ({ ...each, url: urlFor(role, each.url) }))
  const { options } = destination
  const body = options.body && Object.fromEntries(Object.keys(options.body).map((type) => [type, hidden]))
  const oauthTokenUrl = options.oauthTokenUrl && urlFor(role, options.oauthTokenUrl)
  return { ...destination, urls, options: { ...options, body, oauthTokenUrl } }
}

/** The settings that an operation works with for a caller of that role: a reader finds URLs as a reader may see them. */
export const settingsFor = (role: Role, settings: SettingsWriter): SettingsWriter =>
  includesRole(role, 'operator') ? settings : settingsForReaders(settings)

const settingsForReaders = (settings: SettingsWriter): SettingsWriter => ({
  get state() {
    return stateForReaders(settings.state)
  },
  rules: settings.rules,
  authorAfter: (version) => settings.authorAfter(version),
  catchUp: (signal) => settings.catchUp(signal),
  execute: (command) => settings.execute(command),
  perform: (command, options) => settings.perform(command, options),
})

/** Of the newest settings: there can be 100,000 destinations, and an operation asks more than once. */
let newest: { of: SettingsAggregate; shown: SettingsAggregate } | null = null

function stateForReaders(state: SettingsAggregate): SettingsAggregate {
  if (newest?.of === state) return newest.shown
  const shown = [...state.destinations].map(([id, each]) => [id, destinationFor('reader', each)] as const)
  newest = { of: state, shown: { ...state, destinations: new Map(shown) } }
  return newest.shown
}
