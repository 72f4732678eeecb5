// Who is told of operational events: destinations of the built-in source, and addresses by mail.
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { builtInSourceId } from '../../core/call/built-in-source.ts'
import { alertKindNames, alertKinds, type AlertKind } from '../../core/operational/alert-kinds.ts'
import { mailAlertsIn, maxMailAlerts, type MailAlert } from '../../core/operational/mail-alerts.ts'
import type { Destination } from '../../core/settings/settings.ts'
import { templateSecretFaults } from '../../core/settings/template-secrets.ts'
import { Unrenderable } from '../../core/shape/text-template.ts'
import { RequestRefused } from '../check.ts'
import { creationOf, decided, destinationCreate } from '../destinations/operations.ts'
import { operation, type Operation } from '../operation.ts'
import type { ConsoleServices } from '../services.ts'
import { idParams, idText, settingIn, type SettingKind } from '../settings/setting-operations.ts'
import { destinationKind, sampleView } from '../destinations/destinations.ts'
import { testMail } from './mail.ts'
import {
  defaultMailName,
  mailAlertName,
  mailAlertUpdate,
  mailedEvents,
  mailRecipients,
} from './mail-alerts.ts'
import { alertDestination, testCall, type AlertGiven } from './presets.ts'

export const alertSchema = z
  .object({
    id: z.string().describe('Of the destination, or of the alert by mail.'),
    name: z.string(),
    enabled: z.boolean(),
    hosts: z.array(z.string()).describe('Of its URLs, which may hold a secret; none by mail.'),
    events: z.array(z.string()).nullable().describe('The events that it gets; null for all.'),
    to: z.array(z.string()).nullable().describe('By mail: the addresses. Null of a destination.'),
  })
  .meta({ id: 'Alert' })

export const alertsSchema = z
  .object({
    destinations: z
      .array(alertSchema)
      .describe('All that get operational events, in the order of their creation.'),
    mails: z
      .array(alertSchema)
      .max(maxMailAlerts)
      .describe('All that get them by mail, in the order of their creation.'),
    mail: z
      .object({
        server: z.string(),
        from: z.string(),
        to: z.array(z.string()).describe('Of MAIL_TO, beside `mails`.'),
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

const kinds = z.enum([...alertKindNames, 'mail'])

const alertCreate = z
  .strictObject({
    kind: kinds,
    id: z
      .string()
      .optional()
      .describe(
        `Of the destination, or of the alert by mail; unless given, the kind, with a number behind it where that is taken. ${idText}`,
      ),
    ...given,
    to: mailRecipients.optional(),
    events: mailedEvents.optional(),
    name: mailAlertName.optional(),
  })
  .meta({ id: 'AlertCreate' })

const alertTest = z
  .strictObject({
    kind: kinds.optional().describe('One that is not saved yet. Of mail without `to`: those of MAIL_TO.'),
    id: z
      .string()
      .optional()
      .describe(
        'In place of `kind`: a destination that gets operational events. With the kind mail: an alert by mail.',
      ),
    ...given,
    to: mailRecipients.optional(),
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

const mailKind: Pick<SettingKind<MailAlert, unknown>, 'one' | 'all' | 'isListed'> = {
  one: 'alert',
  all: ({ mailAlerts }) => mailAlerts,
  isListed: ({ removed }) => !removed,
}

const mailView = ({ id, name, enabled, events, to }: MailAlert): z.output<typeof alertSchema> => ({
  ...{ id, name, enabled, hosts: [] },
  ...{ events: events && [...events], to: [...to] },
})

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
          ...{
            id,
            name,
            enabled,
            hosts: urls.map(({ url }) => hostOf(url)),
            events: options.events,
            to: null,
          },
        }))
      const mail = mailer && {
        ...{ server: mailer.server, from: mailer.from, to: [...mailer.to], waiting: mailsWaiting() },
      }
      const mails = mailAlertsIn(settings.state).map(mailView)
      return Promise.resolve({ status: 200, body: { destinations, mails, mail } })
    },
  }),
  operation({
    id: 'createAlert',
    route: 'POST /alerts',
    command: 'alerts create',
    role: 'admin',
    summary: 'Send operational events to Slack, Microsoft Teams or PagerDuty, or by mail',
    description:
      'Creates a destination of the source `postrider` with the template that the service understands; for mail, an alert of its own, which consoles with MAIL_SMTP_URL send.',
    body: alertCreate,
    refusals: [409],
    success: { status: 201, description: 'The destination, or the alert by mail.', schema: alertSchema },
    async handle({ body }, services) {
      if (body.kind === 'mail') return createMailAlert(body, services)
      const { kind, id: asked, ...rest } = withoutMail(body)
      const id = asked ?? freeId(kind, services.settings.state.destinations)
      const made = creationBody(kind, id, rest)
      const { command, check } = creationOf(made, services)
      await services.settings.perform(command, { check })
      return {
        status: 201,
        headers: { Location: `/api/v1/destinations/${id}` },
        body: {
          ...{ id, name: made.name, enabled: true, hosts: made.urls.map(({ url }) => hostOf(url)) },
          ...{ events: made.events ?? null, to: null },
        },
      }
    },
  }),
  operation({
    id: 'updateMailAlert',
    route: 'PATCH /alerts/mail/{id}',
    command: 'alerts update',
    role: 'admin',
    summary: 'Change who gets operational events by mail',
    description:
      'Changes what is given, and nothing else: `to` are all addresses that it has afterwards. Other alerts are changed as the destinations that they are.',
    params: idParams,
    body: mailAlertUpdate,
    refusals: [404],
    success: { status: 200, description: 'The alert.', schema: alertSchema },
    async handle({ params: { id }, body }, { settings }) {
      await settings.perform({ type: 'update_mail_alert', id, ...body })
      return { status: 200, body: mailView(settingIn(mailKind, settings.state, id)) }
    },
  }),
  operation({
    id: 'removeMailAlert',
    route: 'DELETE /alerts/mail/{id}',
    command: 'alerts remove',
    role: 'admin',
    summary: 'Send no more operational events to these addresses; the id cannot be used again',
    description: 'Of an alert by mail. What waits to be mailed to it is not sent.',
    params: idParams,
    refusals: [404],
    success: {
      status: 200,
      description: 'It is gone.',
      schema: z.object({ id: z.string(), removed: z.literal(true) }).meta({ id: 'MailAlertRemoved' }),
    },
    async handle({ params: { id } }, { settings }) {
      await settings.perform({ type: 'remove_mail_alert', id })
      return { status: 200, body: { id, removed: true } }
    },
  }),
  operation({
    id: 'testAlert',
    route: 'POST /alerts/test',
    command: 'alerts test',
    role: 'admin',
    summary: 'Send one test message, from this console, and show what the other side answers',
    description:
      'To a destination that gets operational events, by mail, or to one that is not saved yet. Nothing is kept of it.',
    body: alertTest,
    refusals: [404, 409],
    success: { status: 200, description: 'The answers.', schema: alertAnswersSchema },
    async handle({ body, gone }, services) {
      const answers =
        body.kind === 'mail'
          ? [await mailed(recipientsOf(body, services), services, gone)]
          : await posted(destinationOf(withoutMail(body), services), services)
      return { status: 200, body: { succeeded: answers.every(({ succeeded }) => succeeded), answers } }
    },
  }),
]

const wrong = (field: string, message: string) =>
  new RequestRefused('invalid_request', `${field}: ${message}`, [{ field, message }])

/** What is for mail is refused for the other kinds. */
function withoutMail<T extends { to?: unknown; events?: unknown; name?: unknown }>(body: T) {
  const { to, events, name, ...rest } = body
  const field = Object.entries({ to, events, name }).find(([, value]) => value !== undefined)?.[0]
  if (field !== undefined)
    throw wrong(field, 'it is for mail; another alert is a destination with all of its settings')
  return rest as Omit<T, 'to' | 'events' | 'name' | 'kind'> & {
    kind: Exclude<T extends { kind?: infer K } ? K : never, 'mail'>
  }
}

async function createMailAlert(body: z.output<typeof alertCreate>, { settings }: ConsoleServices) {
  const { to, url, key, events = null, name = defaultMailName } = body
  const other = url === undefined ? (key === undefined ? null : 'key') : 'url'
  if (other !== null) throw wrong(other, 'mail takes addresses, in to')
  if (to === undefined) throw wrong('to', 'mail needs at least one address')
  const id = body.id ?? freeId('mail', settings.state.mailAlerts)
  await settings.perform({ type: 'create_mail_alert', id, name, to, events, enabled: true })
  return { status: 201, body: mailView(settingIn(mailKind, settings.state, id)) }
}

/** Ids are never used again. */
function freeId(kind: string, taken: ReadonlyMap<string, unknown>): string {
  let id = kind
  for (let number = 2; taken.has(id); number++) id = `${kind}-${number}`
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

function destinationOf(
  { kind, id, ...rest }: AlertGiven & { kind?: AlertKind | undefined; id?: string | undefined },
  services: ConsoleServices,
): Destination {
  if ((kind === undefined) === (id === undefined)) throw wrong('kind', 'give it, or the id of a destination')
  return kind === undefined ? saved(id!, services) : drafted(kind, rest, services)
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
  const results = await sendSample(destination, { call }).catch((error: unknown) => {
    if (!(error instanceof Unrenderable)) throw error
    throw wrong('id', `no request can be made of the test message: ${error.message}`)
  })
  return results.map(sampleView).map(({ url, outcome, status, detail, response }) => ({
    to: hostOf(url),
    succeeded: outcome === 'success',
    status,
    answer: [detail, response].filter((each) => each !== null && each !== '').join(': ') || 'taken',
  }))
}

/** One that is saved, one that is not, or those of MAIL_TO. */
function recipientsOf(
  { id, to }: z.output<typeof alertTest>,
  { settings, mailer }: ConsoleServices,
): readonly string[] {
  if (id !== undefined && to !== undefined) throw wrong('to', 'give it, or the id of an alert by mail')
  if (to?.length === 0) throw wrong('to', 'at least one address is needed')
  return id === undefined ? (to ?? mailer?.to ?? []) : settingIn(mailKind, settings.state, id).to
}

async function mailed(to: readonly string[], { mailer }: ConsoleServices, gone: AbortSignal) {
  if (mailer === null) throw wrong('kind', 'this console has no mail server: set MAIL_SMTP_URL and MAIL_FROM')
  if (to.length === 0) throw wrong('to', 'give addresses, or the id of an alert by mail: MAIL_TO is not set')
  const mail = testMail(`test-${randomUUID()}`)
  const { outcome, detail, refusedFor = [] } = await mailer.send(mail, to, gone)
  const refused = refusedFor.length === 0 ? '' : `; refused: ${refusedFor.join(', ')}`
  return {
    ...{ to: mailer.server, succeeded: outcome === 'taken' && refused === '', status: null },
    answer: `${detail}${refused}`,
  }
}
