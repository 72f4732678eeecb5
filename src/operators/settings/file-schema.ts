// A settings file: plans, sources, destinations, audiences and computed traits, each with what the admin API takes to create
// it, so that whatever is added there can stand in a file, too. Secrets are referred to, and never in it.
import { z } from 'zod'
import type { WantedSecret, WantedSettings } from '../../core/apply/wanted-settings.ts'
import { maxHeadersPerUrl } from '../../core/delivery/static-headers.ts'
import { maxUrls } from '../../core/settings/destination-rules.ts'
import { defaultSourceOptions, editSourceOptions } from '../../core/settings/source-options.ts'
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

const destination = destinationCreate
  .omit({ anyKey: true })
  .extend({
    sharedSecret: reference.nullable().optional(),
    earlierSecret: reference.nullable().optional(),
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
  })
  .describe('Each thing whole: what it does not give has its default. What is not in it is left alone.')
  .meta({ id: 'SettingsFile' })

export type SettingsFile = z.output<typeof settingsFile>
/** As it is written. */
export type GivenSettingsFile = z.input<typeof settingsFile>

export const referenceTo = (variable: string): string => `\${${variable}}`

/** The variables that a file refers to, each with its place, such as `destinations.2.sharedSecret`. */
export function variablesIn({ destinations }: SettingsFile): { field: string; variable: string }[] {
  const references = destinations.flatMap(({ sharedSecret, earlierSecret, urls }, index) =>
    [
      ...Object.entries({ sharedSecret, earlierSecret }).map(([field, text]) => ({ field, text })),
      ...urls.flatMap(({ headers = {} }, at) =>
        Object.entries(headers).map(([name, text]) => ({ field: `urls.${at}.headers.${name}`, text })),
      ),
    ].map(({ field, text }) => ({ field: `destinations.${index}.${field}`, text })),
  )
  return references.flatMap(({ field, text }) => (text ? [{ field, variable: variableOf(text) }] : []))
}

const variableOf = (text: string): string => text.slice(2, -1)

/** @param given the secret in a variable; null when that is not set */
export function wantedSettings(
  file: SettingsFile,
  given: (variable: string) => WantedSecret['given'],
): WantedSettings {
  const secret = (text: string): WantedSecret => ({
    variable: variableOf(text),
    given: given(variableOf(text)),
  })
  return {
    plans: file.plans,
    sources: file.sources.map(({ id, name, enabled, writeKey = null, ...options }) => ({
      ...{ id, name, enabled, writeKey },
      ...editSourceOptions(defaultSourceOptions, options),
      spareWriteKey: newWriteKey(),
    })),
    destinations: file.destinations.map(
      ({ id, name, enabled, sourceIds, urls, sharedSecret, earlierSecret, ...options }) => ({
        ...{ id, name, enabled, sourceIds, options },
        urls: urls.map(({ url, headers = {} }) => ({
          url,
          headers: Object.entries(headers).map(([name, text]) => ({ name, value: secret(text) })),
        })),
        sharedSecret: sharedSecret ? secret(sharedSecret) : null,
        earlierSecret: earlierSecret ? secret(earlierSecret) : null,
      }),
    ),
    audiences: file.audiences,
    traits: file.traits,
  }
}
