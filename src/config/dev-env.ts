import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseEnv } from 'node:util'
import { PostriderError, messageOf } from '../errors.ts'
import type { Environment } from './read-environment.ts'

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
