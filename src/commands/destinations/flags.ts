import { readFileSync } from 'node:fs'
import { Option, type Command } from 'commander'
import { repeatable, usageError } from '../flags.ts'

export interface EndpointFlags {
  header?: string[]
  headerFile?: string[]
  removeHeader?: string[]
  secret?: string
  secretFile?: string
  addSecret?: string
  addSecretFile?: string
  /** True: all of them. */
  removeSecret?: string[] | true
}

/** The flags that carry secrets; `create` and `update` have them alike. */
export function addSecretFlags(command: Command): Command {
  return command
    .addOption(
      repeatable(
        '--header <header>',
        'a static header as "URL-number:Name: value", URLs counted from 1; repeatable',
      ),
    )
    .addOption(
      repeatable(
        '--header-file <header>',
        'the same with the value in a file, as "URL-number:Name:file": it shows in no process list or shell history',
      ),
    )
    .addOption(
      new Option('--secret <secret>', 'sign requests with this shared secret, 1-256 bytes').conflicts([
        'secretFile',
        'removeSecret',
        'addSecret',
        'addSecretFile',
      ]),
    )
    .addOption(
      new Option(
        '--secret-file <file>',
        'the same from a file, less the line’s end: it shows in no process list or shell history',
      ).conflicts(['removeSecret', 'addSecret', 'addSecretFile']),
    )
}

/** The flags for changing from one shared secret to another; only `update` has them. */
export function addRotationFlags(command: Command): Command {
  return command
    .addOption(
      new Option(
        '--add-secret <secret>',
        'sign with this shared secret from now on; the one before it stays active beside it',
      ).conflicts('addSecretFile'),
    )
    .addOption(new Option('--add-secret-file <file>', 'the same from a file, less the line’s end'))
    .addOption(
      new Option(
        '--remove-secret [fingerprint]',
        'takes the secret with this fingerprint away, or all: then requests are not signed; repeatable',
      ).argParser((value: string, previous: string[] | true = []) =>
        previous === true ? true : [...previous, value],
      ),
    )
}

/** A header to set at a URL, by its number from 1; null takes it away. */
export interface GivenHeader {
  urlNumber: number
  name: string
  value: string | null
}

/** Throws `usage`; never repeats a flag, for it may hold a secret. */
export function givenHeaders(flags: EndpointFlags): GivenHeader[] {
  const plain = placed('--header', flags.header, '"URL-number:Name: value", such as "1:X-Team: blue"')
  const inFiles = placed(
    '--header-file',
    flags.headerFile,
    '"URL-number:Name:file", such as "1:Authorization:token.txt"',
  )
  const removed = (flags.removeHeader ?? []).map((text) => {
    const match = /^(\d{1,3}):([^:]+)$/.exec(text)
    if (!match) throw usageError('--remove-header takes "URL-number:Name", such as "1:X-Team", and no value')
    return { urlNumber: Number(match[1]), name: match[2]!.trim(), value: null }
  })
  return [
    ...plain.map(({ rest, ...header }) => ({ ...header, value: rest.replace(/^[ \t]+|[ \t]+$/g, '') })),
    ...inFiles.map(({ rest, ...header }) => ({ ...header, value: contentOf(rest, '--header-file') })),
    ...removed,
  ]
}

/** What each flag says: a URL, a header's name, and the rest. */
const placed = (flag: string, texts: readonly string[] = [], form: string) =>
  texts.map((text, index) => {
    const match = /^(\d{1,3}):([^:]*):([^]*)$/.exec(text)
    if (!match) throw usageError(`${flag} takes ${form}; the ${ordinal(index + 1)} one is not of that form`)
    return { urlNumber: Number(match[1]), name: match[2]!.trim(), rest: match[3]! }
  })

/** What the flags ask for in shared secrets, as a request has it. Throws `usage`. */
export function givenSecrets(flags: EndpointFlags): {
  sharedSecret?: string | null
  addSecret?: string
  removeSecrets?: string[]
} {
  const { secret, secretFile, addSecret, addSecretFile, removeSecret } = flags
  const shared = secret ?? (secretFile && contentOf(secretFile, '--secret-file'))
  const added = addSecret ?? (addSecretFile && contentOf(addSecretFile, '--add-secret-file'))
  // All go; one that is added replaces them.
  if (removeSecret === true) return { sharedSecret: added ?? null }
  return {
    ...(shared !== undefined && { sharedSecret: shared }),
    ...(added !== undefined && { addSecret: added }),
    ...(removeSecret && { removeSecrets: removeSecret }),
  }
}

/** Less the end of its line. Throws `usage`. */
function contentOf(file: string, flag: string): string {
  try {
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw usageError(`${flag} ${file} cannot be read (${code})`)
  }
}

function ordinal(number: number): string {
  return ['first', 'second', 'third', 'fourth', 'fifth'][number - 1] ?? `${number}th`
}
