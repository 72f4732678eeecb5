import { z } from 'zod'
import { outcomeKinds } from '../../../core/delivery/outcome.ts'
import { maxHeadersPerUrl } from '../../../core/delivery/static-headers.ts'
import { optionsShape } from '../../../core/settings/destination-options.ts'
import { maxUrls } from '../../../core/settings/destination-rules.ts'
import { idText } from '../setting-operations.ts'

const urlText = 'http or https, absolute, without credentials.'
const secretText = '1-256 bytes. Kept encrypted and never shown again.'
const anyKey = z
  .boolean()
  .default(false)
  .describe(
    'Encrypt under the first key of SECRETS_KEY even where the settings hold secrets that it does not open.',
  )

const maxSources = 1_000
/** Each can be named by its fingerprint once; there are two at most. */
const maxRemoved = 10

const optionsGiven = z.object(optionsShape).partial()

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
    ...optionsGiven.shape,
    enabled: z.boolean().default(true),
    anyKey,
  })
  .meta({ id: 'DestinationCreate' })

export const destinationUpdate = z
  .strictObject({
    name: z.string().optional().describe('For people.'),
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
    ...optionsGiven.shape,
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
