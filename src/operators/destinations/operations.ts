import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { includesRole } from '../../core/access/roles.ts'
import { RequestRefused, wrongField } from '../check.ts'
import { longReads, operation, type Operation, type ApiAnswer } from '../operation.ts'
import type { ConsoleServices } from '../services.ts'
import { checkTag, tagOf } from '../schemas.ts'
import { maxMessageIdLength, type AnalyticsCall } from '../../core/call/analytics-call.ts'
import { checkCall } from '../../core/call/check-call.ts'
import { readTrackingCall } from '../../core/call/tracking-call.ts'
import { Unrenderable } from '../../core/shape/text-template.ts'
import { parseTimestamp } from '../../core/timestamp.ts'
import { outcomeKinds } from '../../core/delivery/outcome.ts'
import { maxHeadersPerUrl } from '../../core/delivery/static-headers.ts'
import { parseDuration } from '../../core/duration.ts'
import { maxReplayRate } from '../../core/replay/replay-rules.ts'
import { rateOf } from '../../core/pacing/token-bucket.ts'
import type { HeaderEdit, SettingsCommand, TemplateSecretEdit } from '../../core/settings/commands.ts'
import { optionsShape, givenOptions, type OptionsEdit } from '../../core/settings/destination-options.ts'
import { maxUrls } from '../../core/settings/destination-rules.ts'
import { maxPemBytes } from '../../core/settings/login.ts'
import { maxTemplateSecretLength, maxTemplateSecrets } from '../../core/settings/template-secrets.ts'
import type { Destination, LoginName, SettingsAggregate } from '../../core/settings/settings.ts'
import { decide } from '../../core/settings/decide.ts'
import { evolve } from '../../core/settings/events.ts'
import { SettingsRefused } from '../settings/writer.ts'
import { contentsOf } from '../why/describe.ts'
import { callsAt, callsQuery, destinationCallsSchema } from './calls.ts'
import { previewOf, previewSchema, shownRequest } from './preview.ts'
import { loginEdit } from '../settings/login.ts'
import { sealerFor, type Sealer } from '../settings/secrets.ts'
import { idText, settingIn, idParams, settingOperations, shownFacts } from '../settings/setting-operations.ts'
import { destinationKind, sampleView, newPauseId } from './destinations.ts'

const urlText = 'http or https, absolute, without credentials.'
const secretText = '1-256 bytes. Kept encrypted and never shown again.'
const anyKey = z
  .boolean()
  .default(false)
  .describe(
    'Encrypt under the first key of SECRETS_KEY even where the settings hold secrets that it does not open.',
  )

const pem = z.string().max(maxPemBytes)

/** What a login is given as. */
const loginGiven: Record<LoginName, z.ZodOptional<z.ZodNullable<z.ZodString>>> = {
  clientCert: pem
    .nullable()
    .optional()
    .describe(
      'What its requests identify themselves with over TLS: a certificate in PEM form, and those between it and its root. Set with `clientKey`; null takes both away. Kept encrypted and never shown again.',
    ),
  clientKey: pem
    .nullable()
    .optional()
    .describe(
      'The key of `clientCert` in PEM form, without a passphrase. Kept encrypted and never shown again.',
    ),
  ca: pem
    .nullable()
    .optional()
    .describe(
      'Certificates of authorities in PEM form that its requests trust beside all others. Kept encrypted.',
    ),
  oauthClientSecret: z
    .string()
    .nullable()
    .optional()
    .describe('Of `oauthClientId`, 1-1,024 bytes. Kept encrypted and never shown again.'),
}

const templateSecretText = z.string().max(maxTemplateSecretLength)

const maxSources = 1_000
/** A call of the tracking API has half of them. */
const maxCallFields = 50
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
    ...loginGiven,
    templateSecrets: z
      .record(z.string(), templateSecretText)
      .meta({ maxProperties: maxTemplateSecrets })
      .optional()
      .describe(
        'What `${secret.NAME}` stands for in its body, headers and URLs, by the name: one line of printable ASCII. Kept encrypted and never shown again.',
      ),
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
    ...loginGiven,
    templateSecrets: z
      .record(z.string(), templateSecretText.nullable())
      // All that there are can be taken away, and as many be set.
      .meta({ maxProperties: 2 * maxTemplateSecrets })
      .optional()
      .describe('Secrets of its templates to set; null takes one away; others stay as they are.'),
    ...optionsGiven.shape,
    anyKey,
  })
  .meta({ id: 'DestinationUpdate' })

const sampleShape = {
  call: z
    .record(z.string(), z.unknown())
    .meta({ maxProperties: maxCallFields })
    .optional()
    .describe('A call as SDKs send it, with its `type`; without, a `track` call of ours.'),
  messageId: z
    .string()
    .max(maxMessageIdLength)
    .optional()
    .describe('In place of `call`: one that came in. Found as `GET /messages/{id}` finds it.'),
  dryRun: z.boolean().default(false).describe('Send nothing, and show the requests.'),
}
const sampleTerms = z.strictObject(sampleShape).meta({ id: 'SampleTerms' })

const newSampleTerms = z
  .strictObject({ ...destinationCreate.shape, ...sampleShape })
  .meta({ id: 'NewDestinationTest' })

export const sampleOutcomes = z
  .object({
    succeeded: z.boolean().describe('Whether every URL took it; of a dry run, true.'),
    data: z.array(
      z.object({
        number: z.number().int().describe('The URL, from 1.'),
        url: z.string(),
        request: shownRequest,
        outcome: z.enum(outcomeKinds).nullable().describe('Null where nothing was sent.'),
        status: z.number().int().nullable().describe('The HTTP status; null when none came.'),
        durationMs: z.number().int().nullable(),
        detail: z.string().nullable(),
        response: z
          .string()
          .nullable()
          .describe('The first 4 KB of the body of a response that was no success; null without one.'),
      }),
    ),
  })
  .meta({ id: 'SampleOutcomes' })

/** Also of what creates one. */
const updateFlags = {
  sourceIds: 'source',
  urls: null,
  sharedSecret: null,
  addSecret: null,
  removeSecrets: null,
  clientCert: null,
  clientKey: null,
  ca: null,
  oauthClientSecret: null,
  templateSecrets: null,
  enabled: '!disabled',
} as const

export const destinationOperations: Operation[] = [
  ...settingOperations({
    ...destinationKind,
    name: 'Destination',
    isVersioned: true,
    facts: 'health',
    flags: updateFlags,
    createBody: destinationCreate,
    updateBody: destinationUpdate,
    texts: {
      show: { summary: 'One destination, and whether its URLs are gone' },
      update: { summary: 'Change what is given, and nothing else' },
      enable: { summary: 'Send to it again, also to URLs that were gone' },
      disable: { summary: 'Send it nothing' },
    },
    create: creationOf,
    update: changeOf,
  }),
  operation({
    id: 'previewDestination',
    route: 'POST /destinations/{id}/preview',
    command: 'destinations preview',
    flags: updateFlags,
    role: 'operator',
    forLimited: 'part',
    summary: 'What a change does to the requests of the newest ten calls; nothing is changed or sent',
    description:
      'Takes what a change of the destination takes; nothing of it shows the requests as they are. The calls are the newest ones that it would get, of the last few thousand records.',
    limit: longReads,
    params: idParams,
    body: destinationUpdate,
    success: { status: 200, description: 'The requests before and after it.', schema: previewSchema },
    async handle({ params: { id }, body, gone }, services) {
      const destination = settingIn(destinationKind, services.settings.state, id)
      const { command, check } = changeOf(id, body, services)
      const after = isChange(body) ? decided(command, check, services)?.destinations.get(id) : null
      return { status: 200, body: await previewOf(destination, after ?? destination, services, gone) }
    },
  }),
  operation({
    id: 'listDestinationCalls',
    route: 'GET /destinations/{id}/calls',
    command: 'destinations calls',
    role: 'reader',
    forLimited: 'part',
    summary: 'Which of its calls wait, are held or were left out',
    description:
      'What waits: the 200 that are due first, of the first 20,000 records of the retry tiers. What is held: of the newest ' +
      'few thousand calls those that it would have got since its pause began, and before them up to 100 retries that came ' +
      'due meanwhile, of the newest 20,000 records of the retry tiers; at most 200 in all. What was skipped: of the newest few thousand calls ten that its settings, as they are ' +
      'now, leave out. Calls that a deletion request covers are not listed among those that are held or were skipped.',
    limit: longReads,
    params: idParams,
    query: callsQuery,
    success: { status: 200, description: 'Some of them.', schema: destinationCallsSchema },
    async handle({ params: { id }, query, caller, gone }, services) {
      const destination = settingIn(destinationKind, services.settings.state, id)
      if (query.reason !== undefined && query.step !== 'skipped')
        throw wrongField('reason', 'goes with step skipped')
      const hidesEvents = !includesRole(caller.role, 'operator')
      return { status: 200, body: await callsAt(destination, query, hidesEvents, services, gone) }
    },
  }),
  operation({
    id: 'testDestination',
    route: 'POST /destinations/{id}/test',
    command: 'destinations test',
    role: 'operator',
    forLimited: 'part',
    summary: 'Send one sample call to each URL, once, enabled or not, from the console and with its settings',
    params: idParams,
    body: sampleTerms,
    success: { status: 200, description: 'The outcome at each URL.', schema: sampleOutcomes },
    async handle({ params: { id }, body, gone }, services) {
      const destination = settingIn(destinationKind, services.settings.state, id)
      return { status: 200, body: await tested(destination, body, services, gone) }
    },
  }),
  operation({
    id: 'testNewDestination',
    route: 'POST /destinations/test',
    command: null,
    role: 'admin',
    summary: 'Send one sample call to each URL of a destination that is not created yet',
    description:
      'Takes what the creation of the destination takes, beside what a test takes. Nothing is kept of it.',
    body: newSampleTerms,
    refusals: [404, 409],
    success: { status: 200, description: 'The outcome at each URL.', schema: sampleOutcomes },
    async handle({ body: { call, messageId, dryRun, ...body }, gone }, services) {
      const { command, check } = creationOf(body, services)
      const destination = decided(command, check, services)?.destinations.get(body.id)
      return { status: 200, body: await tested(destination!, { call, messageId, dryRun }, services, gone) }
    },
  }),
]

const isChange = ({ anyKey: _, ...body }: z.output<typeof destinationUpdate>): boolean =>
  Object.values(body).some((value) => value !== undefined)

/** What the settings would be after a command, which is not performed; null where it changes nothing. Throws what refuses it. */
export function decided(
  command: SettingsCommand,
  check: (state: SettingsAggregate) => void,
  { settings: { state, rules } }: ConsoleServices,
): SettingsAggregate | null {
  check(state)
  const decision = decide(command, state, rules)
  if (!decision.accepted) throw new SettingsRefused(decision.faults)
  return decision.event && evolve(state, decision.event)
}

async function tested(
  destination: Destination,
  { call: given, messageId, dryRun }: z.output<typeof sampleTerms>,
  { sendSample, messages, now }: ConsoleServices,
  gone: AbortSignal,
): Promise<z.output<typeof sampleOutcomes>> {
  if (given && messageId !== undefined) throw refusedCall('give it, or the messageId of one, not both')
  const text =
    messageId === undefined
      ? given && JSON.stringify(given)
      : (await contentsOf(messageId, null, await messages(), { signal: gone })).text
  const call = text === undefined ? undefined : callOf(text, destination, now())
  const results = await sendSample(destination, { call, dryRun }).catch((error: unknown) => {
    if (!(error instanceof Unrenderable)) throw error
    throw refusedCall(`no request can be made of it: ${error.message}`)
  })
  const data = results.map(sampleView)
  return { succeeded: dryRun || data.every(({ outcome }) => outcome === 'success'), data }
}

/** What a body of `createDestination` asks for. */
export function creationOf(
  body: z.output<typeof destinationCreate>,
  { settings, secrets, now }: ConsoleServices,
) {
  const { id, name, sourceIds, urls, sharedSecret = null, enabled, anyKey } = body
  const sealer = sealerFor(settings, secrets, { destinationId: id, anyKey })
  const command = {
    type: 'create_destination',
    id,
    name,
    sourceIds,
    urls: urls.map(({ url }) => url),
    headers: headerEdits(urls, sealer),
    sharedSecret: sharedSecret === null ? null : sealer.newSecret(sharedSecret),
    login: loginEdit(body, sealer, now()),
    templateSecrets: templateSecretEdits(body, sealer),
    options: optionsEdit(body),
    enabled,
  } as const
  const asked = {
    ...command,
    sharedSecret: command.sharedSecret?.fingerprint,
    login: Object.entries(command.login ?? {}).map(([name, value]) => [name, value?.fingerprint]),
    templateSecrets: command.templateSecrets?.map(({ name, value }) => ({ name, value: value?.fingerprint })),
    headers: command.headers.map(({ value, ...header }) => ({ ...header, value: value?.fingerprint })),
  }
  return { command, asked, check: sealer.check }
}

/** What a body of `updateDestination` asks for. */
function changeOf(
  id: string,
  body: z.output<typeof destinationUpdate>,
  { settings, secrets, now }: ConsoleServices,
) {
  const { name, sourceIds, urls, sharedSecret, addSecret, removeSecrets, anyKey } = body
  const sealer = sealerFor(settings, secrets, { destinationId: id, anyKey })
  const command = {
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
    login: loginEdit(body, sealer, now()),
    templateSecrets: templateSecretEdits(body, sealer),
    options: optionsEdit(body),
  } as const
  return { command, check: sealer.check }
}

const refusedCall = (message: string): RequestRefused =>
  new RequestRefused('invalid_request', `call: ${message}`, [{ field: 'call', message }])

/** What a sender gives, as the forwarder would read it. */
function callOf(given: string, { sourceIds }: Destination, now: number): AnalyticsCall {
  const read = readTrackingCall(given, {
    sourceId: sourceIds[0] ?? '',
    receivedAt: now,
    newMessageId: () => `test-${randomUUID()}`,
  })
  if (read.fault !== null) throw refusedCall(read.fault.message)
  const { call, fault } = checkCall(read.call)
  if (fault !== null) throw refusedCall(fault)
  return call
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

/** Undefined where none is given. */
function templateSecretEdits(
  { templateSecrets = {} }: { templateSecrets?: Record<string, string | null> | undefined },
  sealer: Sealer,
): TemplateSecretEdit[] | undefined {
  const edits = Object.entries(templateSecrets).map(([name, text]) => ({
    name,
    value: text === null ? null : sealer.newSecret(text),
  }))
  return edits.length > 0 ? edits : undefined
}

/** The options among the fields of a body. */
function optionsEdit(body: OptionsEdit): OptionsEdit | undefined {
  const edit = givenOptions({ ...body, maxRate: body.maxRate && rateOf(body.maxRate) })
  return Object.keys(edit).length > 0 ? edit : undefined
}

const pauseBody = z
  .strictObject({
    for: z
      .string()
      .max(20)
      .optional()
      .describe('How long, such as `30m`, `2h` or `1d`; without, until it is resumed.'),
    until: z
      .string()
      .max(40)
      .optional()
      .describe('When it ends by itself, as an ISO 8601 time; instead of `for`.'),
  })
  .meta({ id: 'DestinationPause' })

const resumeBody = z
  .strictObject({
    rate: z
      .number()
      .positive()
      .max(maxReplayRate)
      .optional()
      .describe('Maximum number per second of what was held; new calls are sent beside it.'),
  })
  .meta({ id: 'DestinationResume' })

const success = { status: 200, description: 'The destination.', schema: destinationKind.schema, hasTag: true }

export const pauseOperations: Operation[] = [
  operation({
    id: 'pauseDestination',
    route: 'POST /destinations/{id}/pause',
    command: 'destinations pause',
    role: 'operator',
    forLimited: 'part',
    summary: 'Hold its calls, for a while or until it is resumed',
    description:
      'Nothing is attempted meanwhile: calls and retries that come due are held, and are sent after the pause. One that ' +
      'is paused already stays so under the same pause, with this end.',
    params: idParams,
    body: pauseBody,
    hasPrecondition: true,
    success,
    handle({ params: { id }, body, ifMatch }, services) {
      const at = services.now()
      const command = {
        type: 'pause_destination',
        id,
        pauseId: newPauseId(),
        at,
        until: endOf(body, at),
      } as const
      return change(command, ifMatch, services).catch((error: unknown) => {
        throw body.for === undefined ? error : asGiven(error)
      })
    },
  }),
  operation({
    id: 'resumeDestination',
    route: 'POST /destinations/{id}/resume',
    command: 'destinations resume',
    role: 'operator',
    forLimited: 'part',
    summary: 'End its pause',
    description: 'What was held is sent by a replay, the oldest first, and new calls at once beside it.',
    params: idParams,
    body: resumeBody,
    hasPrecondition: true,
    success,
    handle({ params: { id }, body: { rate = null }, ifMatch }, services) {
      const command = { type: 'resume_destination', id, pauseId: null, at: services.now(), rate } as const
      return change(command, ifMatch, services)
    },
  }),
]

async function change(
  command: Extract<SettingsCommand, { type: 'pause_destination' | 'resume_destination' }>,
  ifMatch: string | null,
  services: ConsoleServices,
): Promise<ApiAnswer> {
  const { id } = command
  const { settings } = services
  await settings.perform(command, { check: ({ destinations }) => checkTag(ifMatch, destinations.get(id)) })
  const { state } = settings
  const found = settingIn(destinationKind, state, id)
  return {
    status: 200,
    headers: { ETag: tagOf(found) },
    body: destinationKind.view(found, state, await shownFacts([found], services)),
  }
}

/** With the end of a pause called as it was given. */
const asGiven = (error: unknown): unknown =>
  error instanceof SettingsRefused
    ? new SettingsRefused(
        error.faults.map((each) => (each.field === 'until' ? { ...each, field: 'for' } : each)),
      )
    : error

/** In epoch ms; null for a pause without an end. */
function endOf({ for: lasts, until }: z.output<typeof pauseBody>, at: number): number | null {
  const faults: { field: string; message: string }[] = []
  const forMs = lasts === undefined ? null : parseDuration(lasts)
  const untilAt = until === undefined ? null : parseTimestamp(until)
  if (lasts !== undefined && forMs === null)
    faults.push({ field: 'for', message: 'must be a duration such as 30m, 2h or 1d' })
  if (until !== undefined && untilAt === null)
    faults.push({ field: 'until', message: 'must be an ISO 8601 time such as 2026-01-31T12:00:00Z' })
  if (lasts !== undefined && until !== undefined)
    faults.push({ field: 'until', message: 'give `for` or `until`, not both' })
  if (faults.length > 0)
    throw new RequestRefused(
      'invalid_request',
      faults.map((each) => `${each.field}: ${each.message}`).join('; '),
      faults,
    )
  return forMs === null ? untilAt : at + forMs
}
