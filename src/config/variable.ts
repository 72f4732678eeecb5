import { address, whole } from './readers.ts'
import type { Reader } from './readers.ts'

export interface Variable<T> {
  reader: Reader<T>
  /** As one would write it in the environment; the value is null when there is none. */
  default?: string | undefined
  takes: string
  meaning: string
  /** Never shown; can also be given as the path of a file, in `<NAME>_FILE`. */
  secret?: true
}

/** `value` is only a type: with a default the value is always there, without one it may be null. */
export function variable<T, const D extends string | undefined = undefined>(
  reader: Reader<T>,
  rest: Omit<Variable<T>, 'reader' | 'default'> & { default?: D },
): Variable<T> & { value?: D extends string ? T : T | null } {
  return { reader, ...rest }
}

export const partitions = (preset: string, topic: string) =>
  variable(whole(1, 10_000), {
    default: preset,
    takes: 'a whole number from 1 to 10000',
    meaning: `Partitions of ${topic} when \`setup\` creates it.`,
  })

export const port = (preset: string, meaning: string) =>
  variable(whole(0, 65_535), {
    default: preset,
    takes: 'a port, or 0 for any that is free',
    meaning,
  })

export const host = (preset: string, meaning: string) =>
  variable(address, {
    default: preset,
    takes: 'an IP address; 127.0.0.1 is this machine alone, :: or 0.0.0.0 all of its addresses',
    meaning,
  })
