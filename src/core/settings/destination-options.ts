import { z } from 'zod'
import { callTypes } from '../call/analytics-call.ts'
import { maxEventNameLength, maxEvents } from '../call/filter.ts'
import { compileExpression, maxExpressionLength } from '../expression/call-expression.ts'
import { dropFaults, maxDropPathLength, maxDropPaths } from '../call/redaction.ts'
import type { RetryPolicy } from '../delivery/disposition.ts'
import { maxOwnTiers, scheduleFaults, tierFaults, windowFaults } from '../delivery/own-schedule.ts'
import { maxUrlLength, urlFaults } from '../delivery/endpoint-url.ts'
import { maxProxyLength, ownProxyFaults } from '../delivery/proxy-url.ts'
import { maxAttemptCount, parseRate } from '../pacing/token-bucket.ts'
import { maxBodyTemplateLength } from '../shape/body-template.ts'
import { leastBatchBytes, longestBatchWaitMs, mostBatchBytes, mostBatched } from '../shape/batch.ts'
import { bodyFaults } from '../shape/shape.ts'
import { parseByteSize } from '../byte-size.ts'
import { parseDuration } from '../duration.ts'
import { faultIf, type Fault } from '../decision.ts'
import {
  defaultOrderLimit,
  defaultOrderWait,
  mostOrderLimit,
  orders,
  orderWaitFaults,
} from '../ordering/strict-terms.ts'
import { option, optionSet, type OptionsEditOf, type OptionValues } from './option-rows.ts'

export const mostInFlight = 10_000
const maxConsentCategories = 50
const maxConsentLength = 100
const maxDurationLength = 20
/** Of an id, a scope and an audience each. */
const maxOAuthText = 1_000

export const deliverToChoices = ['any', 'every'] as const
export type DeliverTo = (typeof deliverToChoices)[number]

const methods = ['POST', 'PUT', 'PATCH'] as const
export type RequestMethod = (typeof methods)[number]
const formats = ['documents', 'full'] as const
const contentTypes = ['json', 'form'] as const
/** How a client says to a token endpoint who it is, as OpenID Connect Core 1.0 (9) names it. */
const oauthClientAuths = ['client_secret_basic', 'client_secret_post'] as const
export type OAuthClientAuth = (typeof oauthClientAuths)[number]
const batchFormats = ['array', 'lines'] as const
export type ContentType = (typeof contentTypes)[number]
/** What a template of a body can be for. */
export const bodyTypes = ['all', ...callTypes] as const

export const maxRateForm = `a whole number from 1 to ${maxAttemptCount} and "/s" or "/m", such as 100/s`

const texts = z.array(z.string())

/**
 * What can be chosen for a destination beside where it lies, a row each. The log, the admin API, the flags of commands and
 * the page's form are made of it. The fallback is how most destinations work.
 */
export const destinationOptions = {
  standardWebhooks: option(
    z.boolean(),
    false,
    'Standard Webhooks headers',
    'Send webhook-id, webhook-timestamp and webhook-signature too (standardwebhooks.com).',
  ),
  types: option(
    z.array(z.enum(callTypes)).nullable(),
    null,
    'Call types',
    'Only these call types; null for all.',
    z.array(z.enum(callTypes)).max(callTypes.length).nullable(),
  ),
  events: option(
    texts.nullable(),
    null,
    'Events',
    'Only track calls of these events, written exactly so; null for all.',
    texts.max(maxEvents).nullable(),
  ),
  consent: option(
    texts.nullable(),
    null,
    'Consent',
    'Not calls whose `context.consent` denies any of these categories; null for whatever they deny.',
    z
      .array(z.string().regex(/^[^,]*$/))
      .max(maxConsentCategories)
      .nullable(),
  ),
  deliverTo: option(
    z.enum(deliverToChoices),
    'any',
    'Deliver to',
    'any: one URL that takes a call is enough. every: each gets it, with retries of its own.',
  ),
  maxRate: option(
    z.string().nullable(),
    null,
    'Rate limit',
    'Attempts of all forwarders at all of its URLs: `100/s` or `6/m`; null for no limit.',
  ),
  maxInFlight: option(
    z.number().nullable(),
    null,
    'Requests in flight',
    'Requests in flight of all forwarders to all of its URLs; null for no limit.',
    z.number().int().min(1).max(mostInFlight).nullable(),
  ),
  where: option(
    z.string().nullable(),
    null,
    'Condition',
    'Only calls for which this CEL expression is true; null for all.',
    z.string().max(maxExpressionLength).nullable(),
  ),
  drop: option(
    texts.nullable(),
    null,
    'Left out of the body',
    'Paths that are left out of the body before it is signed, such as `context.ip`; null for none.',
    z.array(z.string().max(maxDropPathLength)).max(maxDropPaths).nullable(),
  ),
  traceContext: option(z.boolean(), false, 'Trace context', 'Send the `traceparent` that a call came with.'),
  method: option(z.enum(methods), 'POST', 'Method', 'The method of its requests.'),
  format: option(
    z.enum(formats),
    'documents',
    'Format',
    'documents: the body as receivers have it from docs/receivers.md. full: the whole call, with `integrations` and all of its times.',
  ),
  body: option(
    z.record(z.string(), z.string()).nullable(),
    null,
    'Body',
    'A JSON template, whose texts may have holes such as `${call.event}`, by call type or for `all`; null for the body of the format.',
    z
      .partialRecord(z.enum(bodyTypes), z.string().max(maxBodyTemplateLength))
      .meta({ maxProperties: bodyTypes.length })
      .nullable(),
  ),
  contentType: option(
    z.enum(contentTypes),
    'json',
    'Content type',
    'form: the body’s keys as the fields of a form.',
  ),
  batch: option(
    z.number().nullable(),
    null,
    'Calls in a request',
    'The most calls of one request, which holds them as a JSON array or as lines; null for one call in each.',
    z.number().int().min(2).max(mostBatched).nullable(),
  ),
  batchBytes: option(
    z.string(),
    '500KB',
    'Bytes of a batch',
    'A request with several calls has a body of at most this, such as `500KB` or `2MB`.',
  ),
  batchWait: option(
    z.string(),
    '1s',
    'Wait for a batch',
    'So long a call waits for others at most, such as `250ms` or `5s`.',
  ),
  batchFormat: option(
    z.enum(batchFormats),
    'array',
    'Format of a batch',
    'array: a JSON array of bodies. lines: a body in each line (application/x-ndjson).',
  ),
  proxy: option(
    z.string().nullable(),
    null,
    'Proxy',
    'The forward proxy that requests go through: its http or https URL, or `none` to go without one; null for that of `WEBHOOK_PROXY`.',
    z.string().max(maxProxyLength).nullable(),
  ),
  retryWindow: option(
    z.string().nullable(),
    null,
    'Retry window',
    'For how long a call is retried, such as `30m`, at most the deployment’s; null for `RETRY_WINDOW`.',
    z.string().max(maxDurationLength).nullable(),
  ),
  retryTiers: option(
    texts.nullable(),
    null,
    'Retry tiers',
    'Which of the deployment’s tiers retries wait in, such as `10s,1m`, in ascending order; `none` for no second attempt; null for all.',
    z
      .array(
        z
          .string()
          .max(maxDurationLength)
          .regex(/^[^,]*$/),
      )
      .max(maxOwnTiers)
      .nullable(),
  ),
  oauthTokenUrl: option(
    z.string().nullable(),
    null,
    'OAuth2 token URL',
    'Where requests get their token from, by the grant `client_credentials`; with `oauthClientId` and `oauthClientSecret`. Null for no OAuth2, and clears all of it.',
    z.string().max(maxUrlLength).nullable(),
  ),
  oauthClientId: option(
    z.string().nullable(),
    null,
    'OAuth2 client id',
    'As the token endpoint knows the destination; null for none.',
    z.string().max(maxOAuthText).nullable(),
  ),
  oauthScope: option(
    z.string().nullable(),
    null,
    'OAuth2 scope',
    'What a token is asked for, between spaces; null for what the token endpoint gives by itself.',
    z.string().max(maxOAuthText).nullable(),
  ),
  oauthAudience: option(
    z.string().nullable(),
    null,
    'OAuth2 audience',
    'For token endpoints that ask for one; null for none.',
    z.string().max(maxOAuthText).nullable(),
  ),
  oauthClientAuth: option(
    z.enum(oauthClientAuths),
    'client_secret_basic',
    'OAuth2 client login',
    'client_secret_basic: client id and secret go to the token URL in an Authorization header. client_secret_post: in the form.',
  ),
  order: option(
    z.enum(orders),
    'first',
    'Order',
    'first: first attempts of a user’s calls are in order. strict: a user’s call waits until the one before it has ended, however long that is retried.',
  ),
  orderLimit: option(
    z.number(),
    defaultOrderLimit,
    'Calls that wait',
    'With strict order, how many calls of a user wait behind one that fails, at most.',
    z.number().int().min(1).max(mostOrderLimit),
  ),
  orderWait: option(
    z.string(),
    defaultOrderWait,
    'Time that they wait',
    'With strict order, for how long a call that fails is waited for, such as `1h`.',
    z.string().max(maxDurationLength),
  ),
}

type Options = typeof destinationOptions
export type OptionName = keyof Options
export type DestinationOptions = OptionValues<Options>
export type OptionsEdit = OptionsEditOf<Options>

export const {
  names: optionNames,
  defaults: defaultOptions,
  ofEvent: optionsOfEvent,
  shape: optionsShape,
  given: givenOptions,
  edited: editOptions,
} = optionSet(destinationOptions)

const oauthTexts = ['oauthClientId', 'oauthScope', 'oauthAudience'] as const

const { batchBytes, batchWait, batchFormat, oauthClientAuth } = defaultOptions

/** What belongs to OAuth2, or to batches, goes with them. */
export const withDependents = (edit: OptionsEdit): OptionsEdit => ({
  ...edit,
  ...(edit.oauthTokenUrl === null && {
    ...{ oauthClientId: null, oauthScope: null, oauthAudience: null, oauthClientAuth },
  }),
  ...(edit.batch === null && { batchBytes, batchWait, batchFormat }),
})

/** What is wrong with an edit in itself; `optionsConflicts` looks at what it leads to. */
export function optionsFaults(edit: OptionsEdit): Fault[] {
  const { types, events, consent, maxRate, maxInFlight, where, drop, body, proxy } = edit
  const { batch, batchBytes, batchWait, retryWindow, retryTiers, orderLimit, orderWait } = edit
  const faults: Fault[] = []
  const usage = (field: string, message: string) => faults.push({ code: 'usage', field, message })
  if (types) {
    if (types.length === 0) usage('types', 'at least one call type is needed')
    for (const type of new Set(types)) {
      if (!callTypes.includes(type))
        usage('types', `call type ${JSON.stringify(type)} is none of ${callTypes.join(', ')}`)
      if (types.indexOf(type) !== types.lastIndexOf(type))
        usage('types', `call type "${type}" is named twice`)
    }
  }
  if (events)
    faults.push(...namesFaults('events', ['event', 'events'], events, maxEvents, maxEventNameLength))
  if (consent)
    faults.push(
      ...namesFaults('consent', ['category', 'categories'], consent, maxConsentCategories, maxConsentLength),
    )
  if (typeof maxRate === 'string' && parseRate(maxRate, maxAttemptCount) === null)
    usage('maxRate', `${JSON.stringify(maxRate)} is no rate: it takes ${maxRateForm}`)
  if (typeof maxInFlight === 'number' && !isWithin(maxInFlight, 1, mostInFlight))
    usage('maxInFlight', `${maxInFlight} is not a whole number from 1 to ${mostInFlight}`)
  const fault = typeof where === 'string' ? compileExpression(where).fault : null
  if (fault !== null) usage('where', `the expression cannot be used: ${fault}${expressionHint(fault)}`)
  if (drop) for (const phrase of dropFaults(drop)) usage('drop', phrase)
  for (const [type, text] of Object.entries(body ?? {})) {
    if (!(bodyTypes as readonly string[]).includes(type))
      usage('body', `${JSON.stringify(type)} is none of ${bodyTypes.join(', ')}`)
    for (const phrase of bodyFaults(text)) usage('body', `the body for ${type} ${phrase}`)
  }
  if (body && Object.keys(body).length === 0) usage('body', 'at least one template is needed')
  if (typeof batch === 'number' && !isWithin(batch, 2, mostBatched))
    usage('batch', `${batch} is not a whole number from 2 to ${mostBatched}`)
  if (batchBytes !== undefined && !isWithin(parseByteSize(batchBytes) ?? 0, leastBatchBytes, mostBatchBytes))
    usage('batchBytes', `${JSON.stringify(batchBytes)} is no size from 1KB to 5MB, such as 500KB`)
  if (batchWait !== undefined && !isWithin(parseDuration(batchWait) ?? 0, 1, longestBatchWaitMs))
    usage('batchWait', `${JSON.stringify(batchWait)} is no duration from 1ms to 10s, such as 1s`)
  if (typeof proxy === 'string')
    for (const phrase of ownProxyFaults(proxy)) usage('proxy', `the proxy ${phrase}`)
  if (typeof retryWindow === 'string')
    for (const phrase of windowFaults(retryWindow)) usage('retryWindow', phrase)
  if (retryTiers) for (const phrase of tierFaults(retryTiers)) usage('retryTiers', phrase)
  if (typeof edit.oauthTokenUrl === 'string')
    for (const phrase of urlFaults(edit.oauthTokenUrl)) usage('oauthTokenUrl', `the token URL ${phrase}`)
  for (const field of oauthTexts) {
    const text = edit[field]
    if (typeof text === 'string' && !/^[\x20-\x7e]{1,1000}$/.test(text))
      usage(field, `the ${destinationOptions[field].label} is not 1-${maxOAuthText} characters of ASCII`)
  }
  if (orderLimit !== undefined && !isWithin(orderLimit, 1, mostOrderLimit))
    usage('orderLimit', `${orderLimit} is not a whole number from 1 to ${mostOrderLimit}`)
  if (orderWait !== undefined) for (const phrase of orderWaitFaults(orderWait)) usage('orderWait', phrase)
  return faults
}

/** What is wrong with a list of names: `maxNames` of them at most, each of at most `maxLength` characters. */
function namesFaults(
  field: string,
  [one, many]: readonly [one: string, many: string],
  names: readonly string[],
  maxNames: number,
  maxLength: number,
): Fault[] {
  const messages: string[] = []
  if (names.length === 0) messages.push(`at least one ${one} is needed`)
  if (names.length > maxNames)
    messages.push(`${names.length} ${many} are given, at most ${maxNames} are allowed`)
  names.forEach((name, index) => {
    if (name === '' || name.length > maxLength)
      messages.push(`${one} ${index + 1} is ${name.length} characters long, 1-${maxLength} are allowed`)
    if (names.indexOf(name) < index) messages.push(`${one} ${JSON.stringify(name)} is named twice`)
  })
  return messages.map((message) => ({ code: 'usage', field, message }))
}

/** For what people write first; the faults are those of the library. */
function expressionHint(fault: string): string {
  const name = /: Unknown variable: (\w+)/.exec(fault)?.[1]
  if (name !== undefined) return `; write call.${name}`
  return /: Unexpected character: =/.test(fault) ? '; write == to compare' : ''
}

const isWithin = (value: number, min: number, max: number): boolean =>
  Number.isInteger(value) && value >= min && value <= max

/** What options must go together with. */
export interface OutsideOptions {
  isSigned: boolean
  /** Its URLs, or their headers, have holes. */
  hasHoles: boolean
  /** Of OAuth2. */
  hasClientSecret: boolean
  /** A URL has a static header of that name. */
  hasAuthorization: boolean
}

function oauthConflicts(
  code: Fault['code'],
  { oauthTokenUrl, oauthClientId, oauthScope, oauthAudience, oauthClientAuth: auth }: DestinationOptions,
  { hasClientSecret, hasAuthorization }: Pick<OutsideOptions, 'hasClientSecret' | 'hasAuthorization'>,
): Fault[] {
  if (oauthTokenUrl === null) {
    const isAny =
      hasClientSecret ||
      auth !== oauthClientAuth ||
      [oauthClientId, oauthScope, oauthAudience].some((each) => each !== null)
    return faultIf(isAny, code, 'oauthTokenUrl', 'a token URL is needed for what else is set of OAuth2')
  }
  const twice =
    'OAuth2 makes the Authorization header, and a URL has one of its own: remove that header first'
  return [
    ...faultIf(oauthClientId === null, code, 'oauthClientId', 'a token URL needs a client id'),
    ...faultIf(!hasClientSecret, code, 'oauthClientSecret', 'a token URL needs a client secret'),
    ...faultIf(hasAuthorization, code, 'oauthTokenUrl', twice),
  ]
}

/** What does not go together in the whole of a destination, as it would be. */
export function optionsConflicts(
  code: Fault['code'],
  options: DestinationOptions,
  { isSigned, hasHoles, hasClientSecret, hasAuthorization }: OutsideOptions,
): Fault[] {
  const { standardWebhooks, types, events, contentType, body, batch, traceContext, order, deliverTo } =
    options
  const unsigned = 'Standard Webhooks are signed, and the destination has no shared secret to sign with'
  const untyped = 'events are names of track calls, which are not among the types that are sent'
  const everywhere = 'strict order needs one delivery for all URLs: deliver to any'
  const isBatched = batch !== null
  const ofOneCall = (what: string) => `a request of several calls has no ${what}, which is of one call`
  return [
    ...oauthConflicts(code, options, { hasClientSecret, hasAuthorization }),
    ...faultIf(order === 'strict' && deliverTo === 'every', code, 'order', everywhere),
    ...faultIf(
      order === 'strict' && isBatched,
      code,
      'order',
      'strict order sends each call alone: it goes without batches',
    ),
    ...faultIf(standardWebhooks && !isSigned, code, 'standardWebhooks', unsigned),
    ...faultIf(events !== null && types?.includes('track') === false, code, 'events', untyped),
    ...faultIf(isBatched && contentType === 'form', code, 'batch', 'a form holds one call'),
    ...faultIf(isBatched && hasHoles, code, 'batch', ofOneCall('hole in its URL or in a header')),
    ...faultIf(isBatched && traceContext, code, 'batch', ofOneCall('trace context')),
    ...Object.entries(contentType === 'form' ? (body ?? {}) : {})
      .filter(([, text]) => !text.trimStart().startsWith('{'))
      .map(([type]): Fault => ({
        code,
        field: 'body',
        message: `the body for ${type} is no object, and a form is made of one`,
      })),
  ]
}

/**
 * What is wrong with the schedule that an edit leads to, where it changes that. What stands already may have been set by a
 * process with other tiers.
 *
 * @param deployment null where it is not known
 */
export function ownScheduleFaults(
  edit: OptionsEdit,
  current: DestinationOptions,
  deployment: RetryPolicy | null,
): Fault[] {
  const isChanged = edit.retryWindow !== undefined || edit.retryTiers !== undefined
  const { retryWindow, retryTiers } = editOptions(current, edit)
  if (!isChanged || !deployment) return []
  // Each is told what is wrong with it in itself.
  if (retryWindow !== null && windowFaults(retryWindow).length > 0) return []
  if (retryTiers !== null && tierFaults(retryTiers).length > 0) return []
  return scheduleFaults({ retryWindow, retryTiers }, deployment).map(({ field, message }): Fault => ({
    code: 'usage',
    field,
    message,
  }))
}
