// Who is told of operational events: destinations of the built-in source, and mail.
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { builtInSourceId } from '../../core/call/built-in-source.ts'
import { alertKindNames, alertKinds } from '../../core/operational/alert-kinds.ts'
import type { Destination } from '../../core/settings/settings.ts'
import { templateSecretFaults } from '../../core/settings/template-secrets.ts'
import { RequestRefused } from '../check.ts'
import { creationOf, decided, destinationCreate } from '../destinations/operations.ts'
import { operation, type Operation } from '../operation.ts'
import type { ConsoleServices } from '../services.ts'
import { idText, settingIn } from '../settings/setting-operations.ts'
import { destinationKind, sampleView } from '../destinations/destinations.ts'
import { testMail } from './mail.ts'
import { alertDestination, testCall, type AlertGiven } from './presets.ts'

const shownAlert = z
  .object({
    id: z.string().describe('Of the destination.'),
    name: z.string(),
    enabled: z.boolean(),
    hosts: z.array(z.string()).describe('Of its URLs, which may hold a secret.'),
    events: z.array(z.string()).nullable().describe('The events that it gets; null for all.'),
  })
  .meta({ id: 'Alert' })

export const alertsSchema = z
  .object({
    destinations: z
      .array(shownAlert)
      .describe('All that get operational events, in the order of their creation.'),
    mail: z
      .object({
        server: z.string(),
        from: z.string(),
        to: z.array(z.string()),
        waiting: z
          .number()
          .int()
          .nullable()
          .describe('Mails that this console still sends; null where it sends none.'),
      })
      .nullable()
      .describe('Null where this process has no MAIL_SMTP_URL.'),
  })
  .meta({ id: 'Alerts' })

const maxSecretLength = 2_048
const given = {
  url: z.string().max(maxSecretLength).optional().describe('For slack and teams: where they take messages.'),
  key: z
    .string()
    .min(1)
    .max(256)
    .optional()
    .describe('For pagerduty: the integration key of its Events API v2.'),
}

const alertCreate = z
  .strictObject({
    kind: z.enum(alertKindNames),
    id: z
      .string()
      .optional()
      .describe(
        `Of the destination; unless given, the kind, with a number behind it where that is taken. ${idText}`,
      ),
    ...given,
  })
  .meta({ id: 'AlertCreate' })

const alertTest = z
  .strictObject({
    kind: z
      .enum([...alertKindNames, 'mail'])
      .optional()
      .describe('One that is not saved yet, or mail.'),
    id: z.string().optional().describe('In place of `kind`: a destination that gets operational events.'),
    ...given,
  })
  .meta({ id: 'AlertTest' })

export const alertAnswersSchema = z
  .object({
    succeeded: z.boolean(),
    answers: z.array(
      z.object({
        to: z.string().describe('The host, or the mail server.'),
        succeeded: z.boolean(),
        status: z.number().int().nullable().describe('The HTTP status; null where none came.'),
        answer: z.string().describe('What the other side said, or why it said nothing.'),
      }),
    ),
  })
  .meta({ id: 'AlertAnswers' })

const isTold = ({ sourceIds }: Pick<Destination, 'sourceIds'>): boolean => sourceIds.includes(builtInSourceId)

export const alertOperations: Operation[] = [
  operation({
    id: 'listAlerts',
    route: 'GET /alerts',
    command: 'alerts list',
    role: 'reader',
    forLimited: 'nothing',
    summary: 'Who is told of operational events',
    success: { status: 200, description: 'Destinations, and mail.', schema: alertsSchema },
    handle(_, { settings, mailer, mailsWaiting }) {
      const destinations = [...settings.state.destinations.values()]
        .filter(isTold)
        .map(({ id, name, enabled, urls, options }) => ({
          ...{ id, name, enabled, hosts: urls.map(({ url }) => hostOf(url)), events: options.events },
        }))
      const mail = mailer && {
        ...{ server: mailer.server, from: mailer.from, to: [...mailer.to], waiting: mailsWaiting() },
      }
      return Promise.resolve({ status: 200, body: { destinations, mail } })
    },
  }),
  operation({
    id: 'createAlert',
    route: 'POST /alerts',
    command: 'alerts create',
    role: 'admin',
    summary: 'Send operational events to Slack, Microsoft Teams or PagerDuty',
    description:
      'Creates a destination of the source `postrider` with the template that the service understands.',
    body: alertCreate,
    refusals: [409],
    success: { status: 201, description: 'The destination.', schema: shownAlert },
    async handle({ body: { kind, id: asked, ...rest } }, services) {
      const id = asked ?? freeId(kind, services)
      const body = creationBody(kind, id, rest)
      const { command, check } = creationOf(body, services)
      await services.settings.perform(command, { check })
      return {
        status: 201,
        headers: { Location: `/api/v1/destinations/${id}` },
        body: {
          ...{ id, name: body.name, enabled: true, hosts: body.urls.map(({ url }) => hostOf(url)) },
          events: body.events ?? null,
        },
      }
    },
  }),
  operation({
    id: 'testAlert',
    route: 'POST /alerts/test',
    command: 'alerts test',
    role: 'admin',
    summary: 'Send one test message, from this console, and show what the other side answers',
    description:
      'To a destination that gets operational events, to one that is not saved yet, or by mail. Nothing is kept of it.',
    body: alertTest,
    refusals: [404, 409],
    success: { status: 200, description: 'The answers.', schema: alertAnswersSchema },
    async handle({ body: { kind, id, ...rest }, gone }, services) {
      if ((kind === undefined) === (id === undefined))
        throw wrong('kind', 'give it, or the id of a destination')
      const answers =
        kind === 'mail'
          ? [await mailed(services, gone)]
          : await posted(kind === undefined ? saved(id!, services) : drafted(kind, rest, services), services)
      return { status: 200, body: { succeeded: answers.every(({ succeeded }) => succeeded), answers } }
    },
  }),
]

const wrong = (field: string, message: string) =>
  new RequestRefused('invalid_request', `${field}: ${message}`, [{ field, message }])

/** Ids are never used again. */
function freeId(kind: string, { settings }: Pick<ConsoleServices, 'settings'>): string {
  const { destinations } = settings.state
  let id = kind
  for (let number = 2; destinations.has(id); number++) id = `${kind}-${number}`
  return id
}

const hostOf = (url: string): string => URL.parse(url)?.host ?? '(unknown)'

function creationBody(kind: keyof typeof alertKinds, id: string, rest: AlertGiven) {
  const found = alertDestination(kind, rest)
  const { needs, label } = alertKinds[kind]
  const [keyFault] = rest.key === undefined ? [] : templateSecretFaults(rest.key)
  if (keyFault !== undefined) throw wrong('key', keyFault)
  if (found) return destinationCreate.parse({ id, ...found })
  throw wrong(needs, `${kind} needs it, and nothing else: ${label}`)
}

function saved(id: string, { settings }: ConsoleServices): Destination {
  const found = settingIn(destinationKind, settings.state, id)
  if (isTold(found)) return found
  throw wrong('id', `destination ${JSON.stringify(id)} gets no operational events`)
}

/** Under an id that none has, so that one that is there already is no hindrance. */
function drafted(kind: keyof typeof alertKinds, rest: AlertGiven, services: ConsoleServices): Destination {
  const id = `test-${randomUUID()}`
  const { command, check } = creationOf(creationBody(kind, id, rest), services)
  return decided(command, check, services)!.destinations.get(id)!
}

async function posted(destination: Destination, { sendSample, now }: ConsoleServices) {
  const call = testCall(now(), `test-${randomUUID()}`)
  const results = await sendSample(destination, { call })
  return results.map(sampleView).map(({ url, outcome, status, detail, response }) => ({
    to: hostOf(url),
    succeeded: outcome === 'success',
    status,
    answer: [detail, response].filter((each) => each !== null && each !== '').join(': ') || 'taken',
  }))
}

async function mailed({ mailer }: ConsoleServices, gone: AbortSignal) {
  if (mailer === null)
    throw wrong('kind', 'this console has no mail server: set MAIL_SMTP_URL, MAIL_FROM and MAIL_TO')
  const { outcome, detail, refusedFor = [] } = await mailer.send(testMail(`test-${randomUUID()}`), gone)
  const refused = refusedFor.length === 0 ? '' : `; refused: ${refusedFor.join(', ')}`
  return {
    ...{ to: mailer.server, succeeded: outcome === 'taken' && refused === '', status: null },
    answer: `${detail}${refused}`,
  }
}
