import { readFileSync } from 'node:fs'
import { PostriderError } from '../errors.ts'
import { kafkaSecurityProblems } from './kafka-security.ts'
import { noComplaint } from './readers.ts'
import { variableNames, variables } from './variables.ts'
import type { Variable } from './variable.ts'
import type { Values, VariableName } from './variables.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** An empty variable counts as one that is not set, as compose files write it. */
const textOf = (env: Environment, name: string): string | null => env[name]?.trim() || null

/** A secret comes from its variable or from the file that `<NAME>_FILE` names, less the line's end. */
function secretText(env: Environment, name: string, problems: string[]): string | null {
  const file = textOf(env, `${name}_FILE`)
  if (file === null) return textOf(env, name)
  if (textOf(env, name) !== null) {
    problems.push(`${name} and ${name}_FILE are both set; give one of them`)
    return null
  }
  try {
    return readFileSync(file, 'utf8').trim() || null
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    problems.push(`${name}_FILE is "${file}", which cannot be read (${code}); it takes the path of a file`)
    return null
  }
}

/** What a wrong variable had, without what could be a password. */
const shown = (text: string): string => JSON.stringify(text.replace(/\/\/[^/\s]*@/g, '//…@'))

/**
 * Reads every variable. Throws PostriderError 'usage' with one line for each that is wrong: its name, what it
 * had (never for secrets) and what it takes. `spell` gives the name to use in those lines, for values that came
 * from a flag.
 */
export function readEnvironment(env: Environment, spell: (name: VariableName) => string): Values {
  const problems: string[] = []
  const values: Partial<Record<VariableName, unknown>> = {}
  for (const name of variableNames) {
    const { reader, secret, takes, default: preset } = variables[name] as Variable<unknown>
    const text = (secret ? secretText(env, name, problems) : textOf(env, name)) ?? preset
    if (text === null) {
      values[name] = null
      continue
    }
    const result = reader.safeParse(text)
    if (result.success) {
      values[name] = result.data
      continue
    }
    const issue = result.error.issues[0]
    const complaint = issue?.code === 'custom' && issue.message !== noComplaint ? ` (${issue.message})` : ''
    problems.push(
      `${spell(name)} ${secret ? 'has a wrong value' : `is ${shown(text)}`}${complaint}; it takes ${takes}`,
    )
  }
  problems.push(...incomplete(env, values, spell))
  if (problems.length > 0) throw new PostriderError('usage', problems.join('\n'))
  return values as Values
}

/** Logins are given whole or not at all; half of one would only show as a refused connection. */
function incomplete(
  env: Environment,
  values: Partial<Record<VariableName, unknown>>,
  spell: (name: VariableName) => string,
): string[] {
  const registry: VariableName[] = ['SCHEMA_REGISTRY_USERNAME', 'SCHEMA_REGISTRY_PASSWORD']
  const isSet = (name: VariableName) =>
    (values[name] ?? null) !== null || textOf(env, name) !== null || textOf(env, `${name}_FILE`) !== null
  return [
    ...kafkaSecurityProblems(isSet, (name) => (values as Partial<Values>)[name], spell),
    ...(registry.some(isSet)
      ? registry
          .filter((name) => !isSet(name))
          .map((name) => `${spell(name)} is not set; it takes ${variables[name].takes}`)
      : []),
  ]
}
