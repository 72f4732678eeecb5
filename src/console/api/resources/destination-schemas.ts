import { z } from 'zod'
import { callTypes } from '../../../core/call/analytics-call.ts'
import { outcomeKinds } from '../../../core/delivery/outcome.ts'
import { maxHeadersPerUrl } from '../../../core/delivery/static-headers.ts'
import { deliverToChoices, maxEvents } from '../../../core/settings/destination-options.ts'
import { maxUrls } from '../../../core/settings/destination-rules.ts'
import { idText } from '../setting-operations.ts'

const shownSecret = z
  .object({
    fingerprint: z
      .string()
      .describe('In place of the secret, which is never shown. Changes with SECRETS_KEY.'),
    keyId: z.string().describe('The key of SECRETS_KEY that it is encrypted with.'),
  })
  .meta({ id: 'SecretFingerprint' })

/** What can be chosen: as it is shown, and, each left out, as it is given. */
const options = z.object({
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

export const destinationSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    type: z.literal('Webhooks'),
    enabled: z.boolean(),
    sourceIds: z.array(z.string()),
    sharedSecret: shownSecret.nullable().describe('Signs X-Signature.'),
    earlierSecret: shownSecret.nullable().describe('Still active beside it.'),
    ...options.shape,
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

const urlText = 'http or https, absolute, without credentials.'
const secretText = '1-256 bytes. Kept encrypted and never shown again.'
const anyKey = z
  .boolean()
  .optional()
  .describe(
    'Encrypt under the first key of SECRETS_KEY even where the settings hold secrets that it does not open.',
  )

const maxSources = 1_000
/** Each can be named by its fingerprint once; there are two at most. */
const maxRemoved = 10

const sourceIds = z.array(z.string()).max(maxSources)

export const destinationCreate = z
  .strictObject({
    id: z.string().describe(idText),
    name: z.string().describe('For people.'),
    sourceIds: sourceIds.describe('The sources whose calls it gets.'),
    urls: z
      .array(
        z.strictObject({
          url: z.string().describe(urlText),
          headers: z
            .record(z.string(), z.string())
            .meta({ maxProperties: maxHeadersPerUrl })
            .optional()
            .describe('Static headers. Values are kept encrypted.'),
        }),
      )
      .max(maxUrls)
      .describe('1-5. One that takes a call is enough, unless `deliverTo` is `every`.'),
    sharedSecret: z.string().nullable().optional().describe(secretText),
    ...options.partial().shape,
    enabled: z.boolean().default(true),
    anyKey,
  })
  .meta({ id: 'DestinationCreate' })

export const destinationUpdate = z
  .strictObject({
    name: z.string().optional(),
    sourceIds: sourceIds.optional().describe('The whole new list.'),
    urls: z
      .array(
        z.strictObject({
          url: z.string().describe(urlText),
          headers: z
            .record(z.string(), z.string().nullable())
            // All that there are can be taken away, and as many be set.
            .meta({ maxProperties: 2 * maxHeadersPerUrl })
            .optional()
            .describe('Headers to set; null takes one away; others stay as they are.'),
        }),
      )
      .max(maxUrls)
      .optional()
      .describe(
        'The whole new list. A URL that stays keeps its id and headers, a new one has none but those given.',
      ),
    sharedSecret: z
      .string()
      .nullable()
      .optional()
      .describe('Replaces all that there are; null takes them away.'),
    addSecret: z
      .string()
      .optional()
      .describe('Becomes the newest, which signs X-Signature; the one before stays active beside it.'),
    removeSecrets: z.array(z.string()).max(maxRemoved).optional().describe('Fingerprints.'),
    ...options.partial().shape,
    anyKey,
  })
  .meta({ id: 'DestinationUpdate' })

export const sampleOutcomes = z
  .object({
    succeeded: z.boolean().describe('Whether every URL took it.'),
    data: z.array(
      z.object({
        number: z.number().int().describe('The URL, from 1.'),
        url: z.string(),
        outcome: z.enum(outcomeKinds),
        status: z.number().int().nullable().describe('The HTTP status; null when none came.'),
        durationMs: z.number().int(),
        detail: z.string().nullable(),
      }),
    ),
  })
  .meta({ id: 'SampleOutcomes' })
