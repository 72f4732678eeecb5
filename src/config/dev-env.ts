import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { isDeepStrictEqual, parseEnv } from 'node:util'
import { PostriderError, messageOf } from '../errors.ts'
import type { Environment } from './read-environment.ts'
import type { Variable } from './variable.ts'
import { clusterVariables, variableNames, variables, type VariableName } from './variables.ts'

/** The checkout that `folder` lies in: the nearest folder above whose package is Postrider; null outside of one. */
export function checkoutOf(folder: string): string | null {
  for (let at = folder; ; at = dirname(at)) {
    const file = join(at, 'package.json')
    if (existsSync(file)) {
      return /"name"\s*:\s*"postrider"/.test(readFileSync(file, 'utf8')) ? at : null
    }
    if (at === dirname(at)) return null
  }
}

/** Where `dev` leaves what other commands in the same checkout need to find its Kafka. */
export const devEnvFile = (checkout: string): string => join(checkout, '.postrider', 'dev.env')

/** What a running `dev` left for commands in the same checkout; empty when there is none. */
export function readDevEnv(folder: string): Environment {
  const checkout = checkoutOf(folder)
  if (checkout === null || !existsSync(devEnvFile(checkout))) return {}
  try {
    return parseEnv(readFileSync(devEnvFile(checkout), 'utf8'))
  } catch (error) {
    throw new PostriderError('usage', `${devEnvFile(checkout)} cannot be read: ${messageOf(error)}`)
  }
}

/**
 * What a process takes of the settings that `dev` left, beside those that it was given: all or nothing. They allow
 * loopback and hold keys, so a part takes them only when it is given nothing of a cluster, and a command only for the
 * cluster and the deployment on it that they name.
 */
export function usableDevEnv(
  left: Environment,
  given: Environment,
  process: 'part' | 'command',
): Environment {
  const isSet = (name: VariableName) =>
    Boolean(given[name]?.trim() || (variables[name].secret && given[`${name}_FILE`]?.trim()))
  const isElsewhere = (name: VariableName) =>
    // Secrets name no cluster, and `dev` leaves none of a cluster's.
    process === 'part' || (!variables[name].secret && !isSame(name, given[name], left[name]))
  const isOther = clusterVariables.some((name) => isSet(name) && isElsewhere(name))
  return isOther ? {} : left
}

/** Which settings a process works with because `dev` left them: those that it was not given and that are no default. */
export function takenFrom(left: Environment, given: Environment): VariableName[] {
  const taken = layered(given, left)
  return variableNames.filter(
    (name) =>
      left[name] && taken[name] === left[name] && !given[name] && !isSame(name, left[name], undefined),
  )
}

/** Whether two texts mean the same; one that is not set means the default. */
function isSame(name: VariableName, text: string | undefined, other: string | undefined): boolean {
  const { default: preset = '', reader } = variables[name] as Variable<unknown>
  const meant = (written: string | undefined): unknown => {
    const value = written?.trim() || preset
    if (value === '' || name.endsWith('_FILE')) return value && resolve(value)
    try {
      return reader(value)
    } catch {
      return value
    }
  }
  return isDeepStrictEqual(meant(text), meant(other))
}

/**
 * Lays environments over one another, the first above the others. A secret's variable and its `_FILE` are one
 * setting: whichever an upper layer sets hides both below. Empty counts as not set.
 */
export function layered(...layers: Environment[]): Record<string, string> {
  const merged: Record<string, string> = {}
  for (const layer of layers.toReversed()) {
    for (const [name, text] of Object.entries(layer)) {
      if (!text) continue
      delete merged[name.endsWith('_FILE') ? name.slice(0, -5) : `${name}_FILE`]
      merged[name] = text
    }
  }
  return merged
}
