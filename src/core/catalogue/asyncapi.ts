import type { CallType } from '../call/analytics-call.ts'
import { redactionOf, type Redaction } from '../call/redaction.ts'
import type { DestinationOptions } from '../settings/destination-options.ts'
import { parseRequestUrl } from '../shape/request-url.ts'
import type { ShapeMap } from './call-shape.ts'
import type { EventKey, SeenEvent } from './event-fold.ts'
import {
  fieldTrees,
  nameFieldOf,
  redactedTree,
  schemaOfField,
  titleOf,
  type DocumentObject,
} from './json-schema.ts'

/** What a document needs to know of a destination: no secret. */
export interface DocumentedDestination {
  id: string
  name: string
  urls: readonly { url: string; headers: readonly { name: string }[] }[]
  isSigned: boolean
  options: DestinationOptions
}

/**
 * An AsyncAPI 3.0 document of what this destination's URLs are sent, from the receiver's side. Queries of URLs are left out:
 * they may hold a secret.
 *
 * @param events those that it gets
 * @param since ISO; null: of all calls that are kept
 */
export function asyncApiDocument(
  destination: DocumentedDestination,
  events: readonly (EventKey & { event: SeenEvent })[],
  since: string | null,
): DocumentObject {
  const { options } = destination
  const redaction = redactionOf(options.drop)
  const calls = new Map<string, DocumentObject>()
  for (const { event, ...key } of events)
    calls.set(
      keyFor(key, calls),
      messageOf(key, chosenPayload(key.type, options) ?? payloadOf(key, event, redaction), options),
    )
  // A deletion request reaches every destination, whatever it was chosen to get.
  const deletion = chosenPayload('delete', options) ?? deletePayload
  calls.set('delete', messageOf({ type: 'delete', name: null }, deletion, options))
  const messages =
    options.batch === null ? calls : new Map([['batch', batchOf(calls, options, options.batch)]])
  const urls = destination.urls.map((url, index) => ({ key: `url${index + 1}`, ...partsOf(url.url), ...url }))
  return {
    asyncapi: '3.0.0',
    info: {
      title: `Webhooks of ${destination.name}`,
      version: '1.0.0',
      description: descriptionOf(destination.options, since),
    },
    defaultContentType: contentTypeOf(options),
    servers: Object.fromEntries(urls.map(({ key, host, protocol }) => [key, { host, protocol }])),
    channels: Object.fromEntries(
      urls.map(({ key, address, parameters }) => [
        key,
        {
          address,
          ...(parameters && { parameters }),
          servers: [ref('servers', key)],
          messages: Object.fromEntries(
            [...messages.keys()].map((name) => [name, ref('components/messages', name)]),
          ),
        },
      ]),
    ),
    operations: Object.fromEntries(
      urls.map(({ key }) => [
        `receiveAt${key[0]!.toUpperCase()}${key.slice(1)}`,
        {
          action: 'receive',
          channel: ref('channels', key),
          bindings: { http: { method: options.method, bindingVersion: '0.3.0' } },
          messages: [...messages.keys()].map((name) => ref(`channels/${key}/messages`, name)),
        },
      ]),
    ),
    components: {
      messages: Object.fromEntries(messages),
      schemas: { headers: headersOf(destination) },
    },
  }
}

const ref = (place: string, name: string) => ({ $ref: `#/${place}/${name}` })

interface AddressParts {
  host: string
  protocol: string
  address: string
  /** What stands in the holes of the path; null where it has none. */
  parameters: Record<string, DocumentObject> | null
}

function partsOf(text: string): AddressParts {
  const { base, path } = parseRequestUrl(text)!.url!
  const { host, protocol, pathname } = base
  const place = { host, protocol: protocol.slice(0, -1) }
  if (path === null) return { ...place, address: pathname, parameters: null }
  const parameters: Record<string, DocumentObject> = {}
  let address = ''
  for (const part of path.parts) {
    if (typeof part === 'string') address += part
    else {
      const name = `hole${Object.keys(parameters).length + 1}`
      if (!address.includes('?')) parameters[name] = { description: part.text }
      address += `{${name}}`
    }
  }
  return { ...place, address: address.split('?', 1)[0]!, parameters }
}

function contentTypeOf({ contentType, batch, batchFormat }: DestinationOptions): string {
  if (batch !== null && batchFormat === 'lines') return 'application/x-ndjson'
  return contentType === 'form' ? 'application/x-www-form-urlencoded' : 'application/json'
}

/** A request that holds several calls. */
const batchOf = (
  calls: ReadonlyMap<string, DocumentObject>,
  options: DestinationOptions,
  size: number,
): DocumentObject => ({
  name: 'batch',
  summary:
    options.batchFormat === 'lines' ? 'A JSON value in each line, one for each call.' : 'An array of calls.',
  contentType: contentTypeOf(options),
  headers: ref('components/schemas', 'headers'),
  payload: {
    type: 'array',
    minItems: 1,
    maxItems: size,
    items: { anyOf: [...calls.values()].map(({ payload }) => payload) },
  },
})

/** Where somebody chose what the body looks like, nothing is said of it but that. Null: it is that of the documents. */
function chosenPayload(type: CallType, options: DestinationOptions): DocumentObject | null {
  const template = options.body?.[type] ?? (type === 'delete' ? undefined : options.body?.all)
  if (template !== undefined) return { description: 'As the destination’s template has it.' }
  if (options.contentType === 'form') return { description: 'The keys of the body as the fields of a form.' }
  return options.format === 'full' && type !== 'delete'
    ? { type: 'object', description: 'The whole call.' }
    : null
}

/** Of what AsyncAPI allows in the names of components; each once. */
function keyFor(key: EventKey, taken: ReadonlyMap<string, unknown>): string {
  const words = titleOf(key).replace(/[^\w.-]+/g, '_')
  let name = words
  for (let number = 2; taken.has(name) || name === 'delete'; number++) name = `${words}-${number}`
  return name
}

function messageOf(key: EventKey, payload: DocumentObject, options: DestinationOptions): DocumentObject {
  return {
    name: titleOf(key),
    contentType: contentTypeOf(options),
    headers: ref('components/schemas', 'headers'),
    payload,
  }
}

function headersOf({ urls, isSigned, options }: DocumentedDestination): DocumentObject {
  const text = { type: 'string' }
  const properties: Record<string, DocumentObject> = {
    'User-Agent': text,
    'Content-Type': { const: contentTypeOf(options) },
    'Idempotency-Key': {
      ...text,
      description:
        options.batch === null
          ? 'The delivery’s id: the same at every attempt.'
          : 'The same for the same calls in the same order.',
    },
  }
  if (isSigned)
    properties['X-Signature'] = {
      ...text,
      pattern: '^[0-9a-f]{40}$',
      description: 'HMAC-SHA1 of the body’s bytes under the shared secret, in lowercase hex.',
    }
  if (options.standardWebhooks)
    for (const name of ['webhook-id', 'webhook-timestamp', 'webhook-signature']) properties[name] = text
  const required = Object.keys(properties)
  if (options.traceContext) properties.traceparent = text
  // Of their values nothing is said: most are secrets.
  for (const { headers } of urls) for (const { name } of headers) properties[name] ??= text
  return { type: 'object', properties, required }
}

const text = { type: 'string' }
const timestamp = { type: 'string', format: 'date-time' }

const deletePayload: DocumentObject = {
  type: 'object',
  properties: { type: { const: 'delete' }, userId: text, timestamp },
  required: ['type', 'userId', 'timestamp'],
}

/** The keys of docs/receivers.md, "Body", in that order. */
function payloadOf({ type, name }: EventKey, event: SeenEvent, redaction: Redaction | null): DocumentObject {
  const trees = fieldTrees(event)
  const map = (field: ShapeMap): DocumentObject => {
    const tree = trees[field]
    if (!tree) return { type: 'object' }
    const left = redactedTree(field, tree, redaction)
    // An absent map is `{}`.
    return left
      ? { ...schemaOfField(left, event.calls), type: 'object' }
      : { type: 'object', maxProperties: 0 }
  }
  const isLeft = (field: 'anonymousId' | 'name' | 'category') => !redaction?.fields.includes(field)
  const optional = (field: 'anonymousId' | 'name' | 'category', schema: DocumentObject = text) =>
    isLeft(field) ? { [field]: schema } : {}
  const named = name === null ? {} : { const: name }
  const ofType: Record<CallType, DocumentObject> = {
    track: { event: { ...text, ...named }, properties: map('properties') },
    page: {
      ...optional('name', { ...text, ...named }),
      ...optional('category'),
      properties: map('properties'),
    },
    screen: {
      ...optional('name', { ...text, ...named }),
      ...optional('category'),
      properties: map('properties'),
    },
    identify: { traits: map('traits') },
    group: { groupId: text, traits: map('traits') },
    alias: { 'Previous ID': text, 'User ID': text },
    delete: {},
  }
  const ids = type === 'alias' ? {} : { userId: text, ...optional('anonymousId') }
  const properties = {
    version: { const: 1 },
    type: { const: type },
    ...(type === 'alias' ? ofType.alias : ids),
    timestamp,
    ...(type === 'alias' ? {} : ofType[type]),
    context: map('context'),
    messageId: text,
  }
  const absent = ['userId', 'anonymousId', 'category', ...(name === null ? [nameFieldOf('page')] : [])]
  return {
    type: 'object',
    properties,
    required: Object.keys(properties).filter((key) => !absent.includes(key)),
  }
}

function descriptionOf({ where, consent }: DestinationOptions, since: string | null): string {
  return [
    `Events that were seen${since === null ? '' : ` since ${since}`}, and their fields.`,
    ...(where === null ? [] : [`Only calls for which this is true: ${where}`]),
    ...(consent === null ? [] : [`Not calls whose consent denies any of: ${consent.join(', ')}.`]),
  ].join('\n\n')
}
