import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { callTypes } from '../core/call/analytics-call.ts'
import { maxExpressionLength } from '../core/expression/call-expression.ts'
import { maxDropPathLength, maxDropPaths } from '../core/call/redaction.ts'
import type { Outcome } from '../core/delivery/outcome.ts'
import { deliverToChoices, maxEvents, mostInFlight } from '../core/settings/destination-options.ts'
import type { Destination, Pause, SealedSecret, SettingsState } from '../core/settings/settings.ts'
import type { SettingKind, ShownFacts } from './setting-kind.ts'

const shownSecret = z
  .object({
    fingerprint: z
      .string()
      .describe('In place of the secret, which is never shown. Changes with SECRETS_KEY.'),
    keyId: z.string().describe('The key of SECRETS_KEY that it is encrypted with.'),
  })
  .meta({ id: 'SecretFingerprint' })

/** What can be chosen: as it is shown, and, each left out, as it is given. */
export const destinationOptions = z.object({
  standardWebhooks: z.boolean().describe('Send webhook-id, webhook-timestamp and webhook-signature too.'),
  types: z
    .array(z.enum(callTypes))
    .max(callTypes.length)
    .nullable()
    .describe('Only these call types; null for all.'),
  events: z
    .array(z.string())
    .max(maxEvents)
    .nullable()
    .describe('Only track calls of these events; null for all.'),
  deliverTo: z
    .enum(deliverToChoices)
    .describe('any: one URL that takes a call is enough. every: each gets it.'),
  maxRate: z
    .string()
    .nullable()
    .describe('Attempts of all forwarders at all of its URLs: `100/s` or `6/m`; null for no limit.'),
  maxInFlight: z
    .number()
    .int()
    .min(1)
    .max(mostInFlight)
    .nullable()
    .describe('Requests in flight of all forwarders to all of its URLs; null for no limit.'),
  where: z
    .string()
    .max(maxExpressionLength)
    .nullable()
    .describe('Only calls for which this CEL expression is true; null for all.'),
  drop: z
    .array(z.string().max(maxDropPathLength))
    .max(maxDropPaths)
    .nullable()
    .describe('Paths that are left out of the body, such as `context.ip`; null for none.'),
  traceContext: z.boolean().describe('Send the `traceparent` that a call came with.'),
})

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
    sourceIds: z.array(z.string()),
    sharedSecret: shownSecret.nullable().describe('Signs X-Signature.'),
    earlierSecret: shownSecret.nullable().describe('Still active beside it.'),
    ...destinationOptions.shape,
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
  facts: ShownFacts = { heldKeptMs: null },
): DestinationView {
  const { id, name, type, enabled, pause, sourceIds, sharedSecret, earlierSecret, options, urls } =
    destination
  return {
    id,
    name,
    type,
    enabled,
    pause: pause && pauseView(pause, facts),
    sourceIds,
    sharedSecret: sharedSecret && shownOf(sharedSecret),
    earlierSecret: earlierSecret && shownOf(earlierSecret),
    ...options,
    urls: urls.map((url, index) => ({
      number: index + 1,
      id: url.id,
      url: url.url,
      headers: url.headers.map((header) => ({ name: header.name, ...shownOf(header.value) })),
      goneAt: url.goneAt === null ? null : new Date(url.goneAt).toISOString(),
    })),
  }
}

function pauseView({ id, since, until }: Pause, { heldKeptMs }: ShownFacts) {
  const iso = (at: number | null) => (at === null ? null : new Date(at).toISOString())
  const keptUntil = heldKeptMs === null ? null : Math.min(since + heldKeptMs, latestDate)
  return { id, since: iso(since)!, until: iso(until), keptUntil: iso(keptUntil) }
}

/** The end of the year 9999, epoch ms: a topic may keep its records longer than dates can say. */
const latestDate = 253_402_300_799_999

const shownOf = ({ fingerprint, keyId }: SealedSecret) => ({ fingerprint, keyId })

export const destinationKind = {
  one: 'destination',
  schema: destinationSchema,
  all: ({ destinations }) => destinations,
  view: destinationView,
} as const satisfies SettingKind<Destination, DestinationView>

/** What became of a sample call at one URL. */
export interface SampleResult {
  /** From 1. */
  number: number
  url: string
  outcome: Outcome
}

export const sampleView = ({ number, url, outcome }: SampleResult) => ({
  number,
  url,
  outcome: outcome.kind,
  status: outcome.status,
  durationMs: Math.round(outcome.durationMs),
  detail: outcome.detail,
})
