import { z } from 'zod'
import { callTypes } from '../core/call/analytics-call.ts'
import type { Outcome } from '../core/delivery/outcome.ts'
import { deliverToChoices, maxEvents } from '../core/settings/destination-options.ts'
import type { Destination, SealedSecret } from '../core/settings/settings.ts'
import type { SettingKind } from './setting-kind.ts'

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
})

/** A destination as it may be shown: of secrets only the fingerprint, and which key sealed it. */
const destinationSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    type: z.literal('Webhooks'),
    enabled: z.boolean(),
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

function destinationView(destination: Destination): DestinationView {
  const { id, name, type, enabled, sourceIds, sharedSecret, earlierSecret, options, urls } = destination
  return {
    id,
    name,
    type,
    enabled,
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
