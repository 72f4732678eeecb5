// Flags and arguments that several commands take.
import { readFileSync, statSync } from 'node:fs'
import { InvalidArgumentError, Option } from 'commander'
import { parseMoment } from '../core/duration.ts'
import { PostriderError, messageOf } from '../errors.ts'
import { pathOf } from './io.ts'

/** A flag that sets an environment variable's setting. Another flag of the same name, such as a destination's, does not. */
export class SettingOption extends Option {}

export interface JsonFlag {
  json?: true
}

/** Wrong usage: exit code 2. */
export const usageError = (message: string, options?: { cause: unknown }): PostriderError =>
  new PostriderError('usage', message, options)

/** What is in a file, less the end of its line. Throws `usage`. */
export function contentOf(file: string, flag: string): string {
  try {
    return readFileSync(pathOf(file), 'utf8').replace(/\r?\n$/, '')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw usageError(`${flag} ${file} cannot be read (${code})`)
  }
}

/** A flag was given what it does not take. */
export const flagError = (flag: string, text: string, takes: string): PostriderError =>
  usageError(`${flag} is ${JSON.stringify(text)}; it takes ${takes}`)

/** A rate per second, as `50` or `50/s`. Throws PostriderError 'usage'. */
export function rateIn(text: string): number {
  const rate = Number(/^(\d{1,6}(?:\.\d{1,3})?)(?:\/s)?$/.exec(text)?.[1] ?? 0)
  if (rate > 0) return rate
  throw flagError('--rate', text, 'a number per second, such as 50 or 50/s')
}

export const repeatable = (flags: string, description: string): Option =>
  new Option(flags, description).argParser((value: string, before: string[] | false = []) => {
    // The flag that takes all of it away was given first.
    if (before === false)
      throw new InvalidArgumentError(`It cannot be used with --no-${flags.split(/[ -]+/)[1]}.`)
    return [...before, value]
  })

/**
 * What a flag that can be repeated was given, each time one name or several, separated by commas: for names without a
 * comma. Null without the flag. Throws PostriderError 'usage' for an empty name, and for one that is not `known`.
 */
export function namesOf<T extends string>(
  flag: string,
  given: readonly string[] | undefined,
  known?: readonly T[],
): T[] | null {
  if (given === undefined) return null
  const names = given.flatMap((text) => text.split(',').map((name) => name.trim()))
  if (names.includes('')) throw usageError(`${flag} has an empty name; separate names by commas`)
  const wrong = known && names.find((name) => !known.includes(name as T))
  if (known && wrong !== undefined) throw flagError(flag, wrong, known.join(', '))
  return [...new Set(names)] as T[]
}

/** `--since` and `--until` in epoch milliseconds; null where they are not given. Throws PostriderError 'usage'. */
export function readPeriod(
  options: { since?: string; until?: string },
  now: number,
): { since: number | null; until: number | null } {
  const since = readMoment('--since', options.since, now)
  const until = readMoment('--until', options.until, now)
  if (since !== null && until !== null && since >= until)
    throw usageError('--since is not before --until; nothing can lie between them')
  return { since, until }
}

function readMoment(flag: string, text: string | undefined, now: number): number | null {
  if (text === undefined) return null
  const at = parseMoment(text, now)
  if (at !== null) return at
  throw flagError(flag, text, 'an ISO time such as 2026-01-31T12:00:00Z, or a duration such as 2h')
}

/** The size of a file in bytes. Throws `usage` for what cannot be read; `needs` is the file that is meant. */
export function sizeOf(file: string, needs: string): number {
  try {
    const stats = statSync(pathOf(file))
    if (stats.isDirectory()) throw usageError(`${file} is a folder; give ${needs}`)
    return stats.size
  } catch (error) {
    if (error instanceof PostriderError) throw error
    throw usageError(`cannot read ${file}: ${messageOf(error)}`, { cause: error })
  }
}
