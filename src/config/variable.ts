import { address, whole } from './readers.ts'
import type { Reader } from './readers.ts'

export interface Variable<T> {
  reader: Reader<T>
  /** As one would write it in the environment; null when there is none and the value is then null. */
  default: string | null
  takes: string
  meaning: string
  /** Never shown; can also be given as the path of a file, in `<NAME>_FILE`. */
  secret: boolean
}

/** With a default the value is always there, without one it may be null. */
type Value<T, D> = D extends string ? T : T | null

export function variable<T, const D extends string | null>(
  reader: Reader<T>,
  {
    default: preset,
    takes,
    meaning,
    secret,
  }: Omit<Variable<T>, 'reader' | 'secret'> & { default: D; secret?: true },
): Variable<T> & { value?: Value<T, D> } {
  return { reader, default: preset, takes, meaning, secret: secret ?? false }
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
