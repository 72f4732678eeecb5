import { z } from 'zod'
import { faultIf, type Fault } from '../decision.ts'
import { planModes } from '../tracking-plan/tracking-plan.ts'
import { maxQuotaCount, parseRate } from '../pacing/token-bucket.ts'
import { option, optionSet, type OptionsEditOf, type OptionValues } from './option-rows.ts'

const isQuota = (rate: string): boolean => parseRate(rate, maxQuotaCount) !== null

const ipChoices = ['keep', 'truncate', 'drop'] as const
const botChoices = ['keep', 'flag', 'drop'] as const

/**
 * What can be chosen for a source beside its name and write key, a row each, as for destinations: the log, the admin API,
 * the flags of commands, settings files and the page's forms are made of it. The fallback is how most sources work.
 */
export const sourceOptions = {
  maxRate: option(
    z.string().refine(isQuota, 'no rate').nullable(),
    null,
    'Quota',
    'Calls that each collector takes of it, a second or a minute: `200/s`, `600/m`. What exceeds it is answered 429; null for no quota.',
    z.string().nullable(),
  ),
  ip: option(
    z.enum(ipChoices),
    'keep',
    'IP addresses',
    'What is done to `context.ip` of its calls. truncate: 203.0.113.77 becomes 203.0.113.0, and of IPv6 the first 48 bits are left. drop: it is left out.',
  ),
  bots: option(
    z.enum(botChoices),
    'keep',
    'Bots',
    'What is done to calls of bots on the routes of browsers. flag: they get `context.bot: true`. drop: they are answered, and not written.',
  ),
  plan: option(
    z.string().nullable(),
    null,
    'Tracking plan',
    'The id of the plan that its calls are checked by; null for none.',
  ),
  planMode: option(
    z.enum(planModes),
    'report',
    'On violations',
    'What is done about calls that violate the plan. report: they are counted. block: they become dead letters, too.',
  ),
}

type Options = typeof sourceOptions
export type SourceOptionName = keyof Options
export type SourceOptions = OptionValues<Options>
export type SourceOptionsEdit = OptionsEditOf<Options>

export const {
  names: sourceOptionNames,
  defaults: defaultSourceOptions,
  ofEvent: sourceOptionsOfEvent,
  shape: sourceOptionsShape,
  given: givenSourceOptions,
  edited: editSourceOptions,
} = optionSet(sourceOptions)

/**
 * What of an edit is no default: all that the event of a new source carries. Earlier versions take no null there for a
 * source without a quota.
 */
export function chosenSourceOptions(edit: SourceOptionsEdit): SourceOptionsEdit {
  const given = Object.entries(givenSourceOptions(edit))
  return Object.fromEntries(
    given.filter(([name, value]) => value !== defaultSourceOptions[name as SourceOptionName]),
  )
}

export function sourceOptionsFaults({ maxRate }: SourceOptionsEdit): Fault[] {
  const rule = 'must be calls a second or a minute, such as 200/s or 600/m, from 1 to 100,000,000'
  const isWrong = typeof maxRate === 'string' && !isQuota(maxRate)
  return faultIf(isWrong, 'usage', 'maxRate', `the quota ${JSON.stringify(maxRate)} ${rule}`)
}
