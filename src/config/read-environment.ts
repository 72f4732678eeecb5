import { readFileSync } from 'node:fs'
import { PostriderError } from '../errors.ts'
import { companyLoginProblems } from './company-login.ts'
import { loginProblems } from './kafka-security.ts'
import { formatDuration } from '../core/duration.ts'
import { mailProblems } from './mail.ts'
import { Complaint } from './variable.ts'
import { variableNames, variables } from './variables.ts'
import type { Variable } from './variable.ts'
import type { Values, VariableName } from './variables.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** An empty variable counts as one that is not set, as compose files write it. */
const textOf = (env: Environment, name: string): string | null => env[name]?.trim() || null

/**
 * A secret comes from its variable or from the file that `<NAME>_FILE` names, less the line's end. Undefined when it
 * cannot be had from there.
 */
function secretText(env: Environment, name: string, problems: string[]): string | null | undefined {
  const file = textOf(env, `${name}_FILE`)
  if (file === null) return textOf(env, name)
  if (textOf(env, name) !== null) {
    problems.push(`${name} and ${name}_FILE are both set; give one of them`)
    return undefined
  }
  try {
    return readFileSync(file, 'utf8').trim() || null
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    problems.push(`${name}_FILE is "${file}", which cannot be read (${code}); it takes the path of a file`)
    return undefined
  }
}

/** What a wrong variable had, without what could be a password. */
const shown = (text: string): string => JSON.stringify(text.replace(/\/\/[^/\s]*@/g, '//…@'))

/**
 * No retry can wait in a tier that is not shorter than the retry window. A line for each such tier that was asked for;
 * of the default ones they are left out.
 */
function fitTiers(
  values: Partial<Values>,
  isGiven: boolean,
  spell: (name: VariableName) => string,
): string[] {
  const { RETRY_TIERS: tiers, RETRY_WINDOW: windowMs } = values
  if (!tiers || windowMs === undefined) return []
  const fitting = tiers.filter(({ delayMs }) => delayMs < windowMs)
  const asked = isGiven ? tiers : fitting.length === 0 ? tiers.slice(0, 1) : []
  values.RETRY_TIERS = fitting
  return asked
    .filter(({ delayMs }) => delayMs >= windowMs)
    .map(
      ({ name }) =>
        `${spell('RETRY_TIERS')} has ${name}, and ${spell('RETRY_WINDOW')} is ${formatDuration(windowMs)}: a retry cannot wait that long; each tier has to be shorter than the window`,
    )
}

/** No address that webhooks are sent to could be connected to from here. A proxy makes the connections itself. */
function unreachable(
  { WEBHOOK_IP_FAMILY: family, WEBHOOK_SOURCE_ADDRESS: sources, WEBHOOK_PROXY: proxy }: Partial<Values>,
  spell: (name: VariableName) => string,
): string[] {
  if (proxy || !sources || !family || family === 'any') return []
  if (sources.some((source) => (source.includes(':') ? '6' : '4') === family)) return []
  return [
    `${spell('WEBHOOK_IP_FAMILY')} is ${family}, and ${spell('WEBHOOK_SOURCE_ADDRESS')} has no IPv${family} address: nothing could be sent`,
  ]
}

/**
 * Reads every variable. Throws PostriderError 'usage' with one line for each that is wrong: its name, what it
 * had (never for secrets) and what it takes. `spell` gives the name to use in those lines, for values that came
 * from a flag.
 */
export function readEnvironment(env: Environment, spell: (name: VariableName) => string): Values {
  const problems: string[] = []
  // Of a variable that is wrong there is no value; of one that is not set it is null.
  const values: Partial<Record<VariableName, unknown>> = {}
  for (const name of variableNames) {
    const { reader, secret, takes, default: preset = null } = variables[name] as Variable<unknown>
    const given = secret ? secretText(env, name, problems) : textOf(env, name)
    if (given === undefined) continue
    const text = given ?? preset
    try {
      values[name] = text === null ? null : reader(text)
    } catch (error) {
      if (!(error instanceof Complaint)) throw error
      const had = secret ? 'has a wrong value' : `is ${shown(text!)}`
      const complaint = error.message === '' ? '' : ` (${error.message})`
      problems.push(`${spell(name)} ${had}${complaint}; it takes ${takes}`)
    }
  }
  problems.push(...loginProblems(values as Partial<Values>, spell))
  problems.push(...companyLoginProblems(values as Partial<Values>, spell))
  problems.push(...mailProblems(values as Partial<Values>, spell))
  const isGiven = textOf(env, 'RETRY_TIERS') !== null
  problems.push(...fitTiers(values as Partial<Values>, isGiven, spell))
  problems.push(...unreachable(values as Partial<Values>, spell))
  if (problems.length > 0) throw new PostriderError('usage', problems.join('\n'))
  return values as Values
}
