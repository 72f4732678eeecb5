import { z } from 'zod'
import { canBeLeftOut, errorSchema } from '../operators/check.ts'
import { roleOf, type Operation } from '../operators/operation.ts'

export const apiPrefix = '/api/v1'

type Json = Record<string, unknown>

/** What every request can get beside its own. */
const common: Record<number, string> = {
  400: 'Something is wrong with the request; the wrong fields are named, up to a hundred.',
  401: 'The token is missing, wrong or revoked.',
  403: 'The token has a role that may not do this; the message names the one that may.',
  500: 'A bug, or a key of SECRETS_KEY that is missing.',
  503: 'Kafka or the schema registry is away, or the console is starting or stopping. Send it again later.',
}
const own: Record<number, string> = {
  404: 'There is none of this id.',
  409: 'It clashes with what there is, or If-Match names a version that has passed. Read it again and decide again.',
  408: 'The body comes in too slowly.',
  413: 'The body is too large.',
  415: 'The Content-Type is not one that is taken here.',
  422: 'The Idempotency-Key came with another request before.',
  429: 'Too many of these are running. Send it again later.',
}

/** The OpenAPI 3.1 document of the operations, made from the schemas that check their requests. */
export function apiDocument(operations: readonly Operation[], version: string): Json {
  const components: Json = {}
  const error = jsonSchema(errorSchema, 'output', components)
  const paths: Record<string, Json> = {}
  for (const operation of operations)
    (paths[apiPrefix + operation.path] ??= {})[operation.method.toLowerCase()] = operationObject(
      operation,
      error,
      components,
    )
  return {
    openapi: '3.1.1',
    info: {
      title: 'Postrider admin API',
      version,
      description:
        'Sources, destinations, audiences, computed traits, dead letters, statistics and the life of calls of a Postrider deployment. Each operation names the role (`x-role`) that it takes: `reader`, `operator` or `admin`, each of which includes those before it. Lists are ' +
        '`{data, next}`; errors are `{code, message, fields}`.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    security: [{ token: [] }, { session: [] }],
    tags: [...new Set(operations.map(tagOf))].map((name) => ({ name })),
    paths,
    components: {
      schemas: components,
      securitySchemes: {
        token: {
          type: 'http',
          scheme: 'bearer',
          description: 'ADMIN_TOKEN of the console, or a token that was created with it.',
        },
        session: {
          type: 'apiKey',
          in: 'cookie',
          name: 'postrider_session',
          description:
            'For browsers: the cookie of `POST /session`, whose name ends with what tells deployments apart. Unsafe methods take it ' +
            'from the console’s own page only, and with a JSON Content-Type.',
        },
      },
    },
  }
}

/** The first part of its path: `/dead-letters/{id}` is one of `Dead letters`. */
function tagOf({ path }: Operation): string {
  const name = path.split('/')[1]!.replaceAll('-', ' ')
  return name[0]!.toUpperCase() + name.slice(1)
}

function operationObject(operation: Operation, error: Json, components: Json): Json {
  const { id, summary, description, success, progress, isStream = false } = operation
  const takesBody = operation.body !== undefined || operation.streams !== undefined
  const refusals = [
    ...(operation.refusals ?? []),
    ...(operation.path.includes('{') ? [404] : []),
    ...(operation.limit ? [429] : []),
    ...(operation.isIdempotent ? [409, 422] : []),
    ...(operation.hasPrecondition ? [409] : []),
    ...(takesBody ? [408, 413, 415] : []),
  ]
  const refused = (text: string) => ({
    description: text,
    content: { 'application/json': { schema: error } },
  })
  return {
    operationId: id,
    tags: [tagOf(operation)],
    summary,
    description: [
      description,
      operation.isOpen ? 'Takes no token.' : `Takes a token with the role \`${roleOf(operation)}\`.`,
    ]
      .filter(Boolean)
      .join(' '),
    ...(operation.isOpen ? { security: [] } : { 'x-role': roleOf(operation) }),
    ...withParameters(operation, components),
    ...(takesBody && { requestBody: requestBody(operation, components) }),
    responses: {
      [success.status]: {
        description: success.description,
        ...answerHeaders(operation),
        content: {
          [isStream ? 'application/x-ndjson' : 'application/json']: {
            schema: jsonSchema(success.schema, 'output', components),
          },
          ...(progress && {
            'application/x-ndjson': {
              schema: {
                description: 'A line each: progress, and at the end the result or an error.',
                oneOf: [
                  only('progress', jsonSchema(progress, 'output', components)),
                  only('result', jsonSchema(success.schema, 'output', components)),
                  only('error', error),
                ],
              },
            },
          }),
        },
      },
      ...Object.fromEntries(Object.entries(common).map(([status, text]) => [status, refused(text)])),
      ...Object.fromEntries(refusals.map((status) => [status, refused(own[status]!)])),
    },
  }
}

function withParameters(operation: Operation, components: Json): { parameters?: Json[] } {
  const parameters = [
    ...parametersOf('path', operation.params, components),
    ...parametersOf('query', operation.query, components).map((each) => withRole(each, operation)),
    ...(operation.isIdempotent
      ? [
          header(
            'Idempotency-Key',
            'Of 1-255 visible ASCII characters. The same request with the same key is done once, and gets the same ' +
              'answer again, whichever console it comes to.',
          ),
        ]
      : []),
    ...(operation.hasPrecondition
      ? [header('If-Match', 'The ETag of an earlier answer: refused if it was changed since.')]
      : []),
  ]
  return parameters.length > 0 ? { parameters } : {}
}

const header = (name: string, description: string): Json => ({
  name,
  in: 'header',
  required: false,
  description,
  schema: { type: 'string' },
})

function parametersOf(place: 'path' | 'query', schema: z.ZodObject | undefined, components: Json): Json[] {
  if (!schema) return []
  const { properties, required = [] } = jsonSchema(schema, 'input', components) as {
    properties: Record<string, Json>
    required?: string[]
  }
  return Object.entries(properties).map(([name, { description, ...rest }]) => ({
    name,
    in: place,
    required: required.includes(name),
    ...(description !== undefined && { description }),
    schema: rest,
  }))
}

/** As an operation names its role. */
function withRole(parameter: Json, { queryRoles = {} }: Operation): Json {
  const role = queryRoles[String(parameter.name)]
  if (role === undefined) return parameter
  const text = `Takes a token with the role \`${role}\`.`
  return {
    ...parameter,
    description: [parameter.description, text].filter(Boolean).join(' '),
    'x-role': role,
  }
}

function requestBody(operation: Operation, components: Json): Json {
  const { body, streams = {} } = operation
  const content = body
    ? { 'application/json': { schema: jsonSchema(body, 'input', components) } }
    : Object.fromEntries(
        Object.entries(streams).map(([type, { description, line }]) => [
          type,
          { schema: { description, ...jsonSchema(line, 'input', components) } },
        ]),
      )
  return { required: !canBeLeftOut(operation), content }
}

function answerHeaders({ success, isIdempotent }: Operation): { headers?: Json } {
  const named = (description: string) => ({ description, schema: { type: 'string' } })
  const headers = {
    ...(success.hasTag && { ETag: named('Its version, for If-Match.') }),
    ...(success.status === 201 && { Location: named('Where it is.') }),
    ...(isIdempotent && { 'Idempotent-Replayed': named('`true`: it had been done before.') }),
  }
  return Object.keys(headers).length > 0 ? { headers } : {}
}

const only = (name: string, schema: Json): Json => ({
  type: 'object',
  properties: { [name]: schema },
  required: [name],
  additionalProperties: false,
})

/** A schema in JSON Schema; what has a name goes to the components, and is referred to. */
function jsonSchema(schema: z.ZodType, io: 'input' | 'output', components: Json): Json {
  const text = JSON.stringify(z.toJSONSchema(schema, { io, target: 'draft-2020-12' }))
  const {
    $schema: _,
    $defs,
    ...rest
  } = JSON.parse(text.replaceAll('"#/$defs/', '"#/components/schemas/')) as Json
  Object.assign(components, $defs)
  return rest
}
