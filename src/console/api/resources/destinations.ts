import { z } from 'zod'
import { callTypes } from '../../../core/call/analytics-call.ts'
import {
  deliverToChoices,
  givenOptions,
  maxEvents,
  type OptionsEdit,
} from '../../../core/settings/destination-options.ts'
import { outcomeKinds } from '../../../core/delivery/outcome.ts'
import type { HeaderEdit } from '../../../core/settings/commands.ts'
import { maxUrls } from '../../../core/settings/destination-rules.ts'
import { evolve } from '../../../core/settings/events.ts'
import { initialSettings } from '../../../core/settings/settings.ts'
import { maxHeadersPerUrl } from '../../../core/delivery/static-headers.ts'
import { destinationIn, destinationView } from '../../destinations.ts'
import type { SettingsWriter } from '../../settings-writer.ts'
import { sealerFor, type Sealer } from '../../sealing-key.ts'
import { operation, type ApiAnswer, type Operation } from '../operation.ts'
import { page, pageOf, pageQuery } from '../paging.ts'
import { created } from './sources.ts'
import { checkTag, requestKey, tagOf } from '../tags.ts'

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

const destinationSchema = z
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

const createBody = z
  .strictObject({
    id: z.string().describe('1-64 of a-z, 0-9, "_" and "-"; never changed or reused'),
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

const updateBody = z
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

const sampleSchema = z
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

const params = z.object({ id: z.string() })
const tag = 'Destinations'
const success = { status: 200, description: 'The destination.', schema: destinationSchema, hasTag: true }

export const destinationOperations: Operation[] = [
  operation({
    id: 'listDestinations',
    method: 'GET',
    path: '/destinations',
    tag,
    summary: 'All destinations, in the order of their creation',
    query: pageQuery,
    success: { status: 200, description: 'A page of them.', schema: pageOf(destinationSchema) },
    handle: async ({ query }, { settings }) =>
      page([...settings.state.destinations.values()], query, destinationView),
  }),
  operation({
    id: 'createDestination',
    method: 'POST',
    path: '/destinations',
    tag,
    summary: 'Add a destination',
    body: createBody,
    isIdempotent: true,
    success: {
      ...success,
      status: 201,
      description: 'The destination as it was created.',
      hasLocation: true,
    },
    refusals: [409, 422],
    async handle({ body, idempotencyKey }, { settings, secrets }) {
      const { id, name, sourceIds, urls, sharedSecret = null, enabled } = body
      const sealer = sealerFor(settings, secrets, { destinationId: id, anyKey: body.anyKey })
      const command = {
        type: 'create_destination',
        id,
        name,
        sourceIds,
        urls: urls.map(({ url }) => url),
        headers: headerEdits(urls, sealer),
        sharedSecret: sharedSecret === null ? null : sealer.newSecret(sharedSecret),
        options: optionsEdit(body),
        enabled,
      } as const
      const asked = {
        ...command,
        sharedSecret: command.sharedSecret?.fingerprint,
        headers: command.headers.map(({ value, ...header }) => ({
          ...header,
          value: value?.fingerprint,
        })),
      }
      const { event, repeated } = await settings.perform(command, {
        request: requestKey('createDestination', idempotencyKey, asked),
        check: (state) => sealer.check(state),
      })
      const destination = evolve(initialSettings, event!).destinations.get(id)!
      return created(`/destinations/${id}`, destination, destinationView(destination), repeated)
    },
  }),
  operation({
    id: 'showDestination',
    method: 'GET',
    path: '/destinations/{id}',
    tag,
    summary: 'One destination, and whether its URLs are gone',
    params,
    success,
    refusals: [404],
    handle: async ({ params: { id } }, { settings }) => answer(id, settings),
  }),
  operation({
    id: 'updateDestination',
    method: 'PATCH',
    path: '/destinations/{id}',
    tag,
    summary: 'Change what is given, and nothing else',
    params,
    body: updateBody,
    hasPrecondition: true,
    success,
    refusals: [404, 409],
    async handle({ params: { id }, body, ifMatch }, { settings, secrets }) {
      const { name, sourceIds, urls, sharedSecret, addSecret, removeSecrets } = body
      const sealer = sealerFor(settings, secrets, { destinationId: id, anyKey: body.anyKey })
      await settings.perform(
        {
          type: 'update_destination',
          id,
          name,
          sourceIds,
          urls: urls?.map(({ url }) => url),
          headers: urls && headerEdits(urls, sealer),
          ...(sharedSecret !== undefined && {
            sharedSecret: sharedSecret === null ? null : sealer.newSecret(sharedSecret),
          }),
          ...(addSecret !== undefined && { addSecret: sealer.newSecret(addSecret) }),
          removeSecrets,
          options: optionsEdit(body),
        },
        {
          check: (state) => {
            checkTag(ifMatch, state.destinations.get(id))
            sealer.check(state)
          },
        },
      )
      return answer(id, settings)
    },
  }),
  ...(['enable', 'disable'] as const).map((turn) =>
    operation({
      id: `${turn}Destination`,
      method: 'POST',
      path: `/destinations/{id}/${turn}`,
      tag,
      summary: turn === 'enable' ? 'Send to it again, also to URLs that were gone' : 'Send it nothing',
      params,
      hasPrecondition: true,
      success,
      refusals: [404, 409],
      async handle({ params: { id }, ifMatch }, { settings }) {
        await settings.perform(
          { type: `${turn}_destination`, id },
          { check: ({ destinations }) => checkTag(ifMatch, destinations.get(id)) },
        )
        return answer(id, settings)
      },
    }),
  ),
  operation({
    id: 'testDestination',
    method: 'POST',
    path: '/destinations/{id}/test',
    tag,
    summary: 'Send one sample call to each URL, once, enabled or not',
    params,
    success: { status: 200, description: 'The outcome at each URL.', schema: sampleSchema },
    refusals: [404],
    async handle({ params: { id } }, { settings, sendSample }) {
      const results = await sendSample(destinationIn(settings.state, id))
      const data = results.map(({ number, url, outcome: { kind, status, durationMs, detail } }) => ({
        number,
        url,
        outcome: kind,
        status,
        durationMs: Math.round(durationMs),
        detail,
      }))
      return { status: 200, body: { succeeded: data.every(({ outcome }) => outcome === 'success'), data } }
    },
  }),
]

function answer(id: string, { state }: Pick<SettingsWriter, 'state'>): ApiAnswer {
  const destination = destinationIn(state, id)
  return { status: 200, headers: { ETag: tagOf(destination) }, body: destinationView(destination) }
}

function headerEdits(
  urls: readonly { headers?: Record<string, string | null> | undefined }[],
  sealer: Sealer,
): HeaderEdit[] {
  return urls.flatMap(({ headers = {} }, index) =>
    Object.entries(headers).map(([name, value]) => ({
      urlNumber: index + 1,
      name,
      value: value === null ? null : sealer.newSecret(value),
    })),
  )
}

function optionsEdit({ standardWebhooks, types, events, deliverTo }: OptionsEdit): OptionsEdit | undefined {
  const edit = givenOptions({ standardWebhooks, types, events, deliverTo })
  return Object.keys(edit).length > 0 ? edit : undefined
}
