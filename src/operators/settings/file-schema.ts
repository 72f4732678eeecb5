// A settings file: plans, sources, destinations, audiences, computed traits and alerts by mail, each with what the admin API takes to create
// it, so that whatever is added there can stand in a file, too. Secrets are referred to, and never in it.
import { z } from 'zod'
import type { WantedDestination, WantedSecret, WantedSettings } from '../../core/apply/wanted-settings.ts'
import { maxHeadersPerUrl } from '../../core/delivery/static-headers.ts'
import { givenOptions } from '../../core/settings/destination-options.ts'
import { maxMailAlerts } from '../../core/operational/mail-alerts.ts'
import { maxUrls } from '../../core/settings/destination-rules.ts'
import { maxTemplateSecrets } from '../../core/settings/template-secrets.ts'
import { defaultSourceOptions, editSourceOptions } from '../../core/settings/source-options.ts'
import { loginNames, type LoginName } from '../../core/settings/settings.ts'
import { mailAlertInFile } from '../alerts/mail-alerts.ts'
import { computationCreate } from '../audiences/operations.ts'
import { planCreate } from '../plans/plans.ts'
import { destinationCreate } from '../destinations/operations.ts'
import { sourceCreate, newWriteKey } from '../sources/sources.ts'

/** Of each kind: more do not fit into one event of the settings in any case. */
const maxOfKind = 10_000

/** Begins the names of the variables that an export refers to, and of those that a command takes from its environment. */
export const secretPrefix = 'POSTRIDER_SECRET_'

const reference = z
  .string()
  .regex(
    /^\$\{[A-Za-z_]\w{0,127}\}$/,
    'must refer to a variable, such as ${POSTRIDER_SECRET_CRM}: secrets do not stand in the file',
  )
  .describe('`${NAME}`: the secret is the value of this variable, or stays as it is where that is not set.')

/** Of the parts of a login, each with what it is in the variable. */
const loginReferences = Object.fromEntries(
  loginNames.map((name) => [name, reference.nullable().optional()]),
) as Record<LoginName, z.ZodOptional<z.ZodNullable<typeof reference>>>

const destination = destinationCreate
  .omit({ anyKey: true })
  .extend({
    sharedSecret: reference.nullable().optional(),
    earlierSecret: reference.nullable().optional(),
    ...loginReferences,
    templateSecrets: z
      .record(z.string(), reference)
      .meta({ maxProperties: maxTemplateSecrets })
      .optional()
      .describe('All that it has.'),
    urls: z
      .array(
        z.strictObject({
          url: z.string(),
          headers: z
            .record(z.string(), reference)
            .meta({ maxProperties: maxHeadersPerUrl })
            .optional()
            .describe('All that it has.'),
        }),
      )
      .max(maxUrls),
  })
  .meta({ id: 'DestinationInFile' })

const listOf = <T extends z.ZodType>(item: T) => z.array(item).max(maxOfKind).default([])

export const settingsFile = z
  .strictObject({
    plans: listOf(planCreate),
    sources: listOf(sourceCreate),
    destinations: listOf(destination),
    audiences: listOf(computationCreate),
    traits: listOf(computationCreate),
    mailAlerts: z.array(mailAlertInFile).max(maxMailAlerts).default([]),
  })
  .describe('Each thing whole: what it does not give has its default. What is not in it is left alone.')
  .meta({ id: 'SettingsFile' })

export type SettingsFile = z.output<typeof settingsFile>
/** As it is written. */
export type GivenSettingsFile = z.input<typeof settingsFile>

export const referenceTo = (variable: string): string => `\${${variable}}`

const plainSecrets = ['sharedSecret', 'earlierSecret', ...loginNames] as const

/** The variables that a file refers to, each with its place, such as `destinations.2.sharedSecret`. */
export function variablesIn({ destinations }: SettingsFile): { field: string; variable: string }[] {
  const references = destinations.flatMap(({ urls, templateSecrets = {}, ...destination }, index) =>
    [
      ...plainSecrets.map((field) => ({ field, text: destination[field] })),
      ...Object.entries(templateSecrets).map(([name, text]) => ({ field: `templateSecrets.${name}`, text })),
      ...urls.flatMap(({ headers = {} }, at) =>
        Object.entries(headers).map(([name, text]) => ({ field: `urls.${at}.headers.${name}`, text })),
      ),
    ].map(({ field, text }) => ({ field: `destinations.${index}.${field}`, text })),
  )
  return references.flatMap(({ field, text }) => (text ? [{ field, variable: variableOf(text) }] : []))
}

const variableOf = (text: string): string => text.slice(2, -1)

/** What variables hold; null for one that is not set. */
export interface GivenVariables {
  secret(variable: string): WantedSecret['given']
  /** Of this destination, whose place in the file that is. */
  login(
    names: { [N in LoginName]?: string },
    of: { id: string; place: string },
  ): Record<LoginName, WantedSecret['given']>
}

export function wantedSettings(file: SettingsFile, given: GivenVariables): WantedSettings {
  const secret = (text: string): WantedSecret => ({
    variable: variableOf(text),
    given: given.secret(variableOf(text)),
  })
  const loginOf = (destination: SettingsFile['destinations'][number], place: string) => {
    const texts = loginNames.flatMap((name) => {
      const text = destination[name]
      return text ? [[name, variableOf(text)] as const] : []
    })
    const names: { [N in LoginName]?: string } = Object.fromEntries(texts)
    const found = given.login(names, { id: destination.id, place })
    return Object.fromEntries(
      loginNames.map((name) => [name, names[name] ? { variable: names[name], given: found[name] } : null]),
    ) as WantedDestination['login']
  }
  return {
    plans: file.plans,
    sources: file.sources.map(({ id, name, enabled, writeKey = null, ...options }) => ({
      ...{ id, name, enabled, writeKey },
      ...editSourceOptions(defaultSourceOptions, options),
      spareWriteKey: newWriteKey(),
    })),
    destinations: file.destinations.map((destination, index) => {
      const { id, name, enabled, sourceIds, urls, sharedSecret, earlierSecret, ...options } = destination
      const { templateSecrets = {} } = destination
      return {
        ...{ id, name, enabled, sourceIds, options: givenOptions(options) },
        login: loginOf(destination, `destinations.${index}`),
        urls: urls.map(({ url, headers = {} }) => ({
          url,
          headers: Object.entries(headers).map(([name, text]) => ({ name, value: secret(text) })),
        })),
        sharedSecret: sharedSecret ? secret(sharedSecret) : null,
        earlierSecret: earlierSecret ? secret(earlierSecret) : null,
        templateSecrets: Object.entries(templateSecrets).map(([name, text]) => ({
          name,
          value: secret(text),
        })),
      }
    }),
    audiences: file.audiences,
    traits: file.traits,
    mailAlerts: file.mailAlerts,
  }
}
