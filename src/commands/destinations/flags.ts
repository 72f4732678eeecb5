import { readFileSync } from 'node:fs'
import { Option, type Command } from 'commander'
import type { HeaderEdit, NewSecret } from '../../core/settings/commands.ts'
import type { SecretsEdit } from '../../core/settings/secrets.ts'
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
  anyKey?: true
}

type Seal = (text: string) => NewSecret

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
      new Option(
        '--any-key',
        'encrypt under the first key of SECRETS_KEY even where the settings hold secrets that it does not open',
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

/** The header flags as edits, once their values can be sealed. Throws `usage`; never repeats a flag, for it may hold a secret. */
export function headerEdits(flags: EndpointFlags): (seal: Seal) => HeaderEdit[] {
  const plain = placed('--header', flags.header, '"URL-number:Name: value", such as "1:X-Team: blue"')
  const inFiles = placed(
    '--header-file',
    flags.headerFile,
    '"URL-number:Name:file", such as "1:Authorization:token.txt"',
  )
  const set = [
    ...plain.map(({ rest, ...header }) => ({ ...header, value: rest.replace(/^[ \t]+|[ \t]+$/g, '') })),
    ...inFiles.map(({ rest, ...header }) => ({ ...header, value: contentOf(rest, '--header-file') })),
  ]
  const removed = (flags.removeHeader ?? []).map((text): HeaderEdit => {
    const match = /^(\d{1,3}):([^:]+)$/.exec(text)
    if (!match) throw usageError('--remove-header takes "URL-number:Name", such as "1:X-Team", and no value')
    return { urlNumber: Number(match[1]), name: match[2]!.trim(), value: null }
  })
  return (seal) => [...set.map(({ value, ...header }) => ({ ...header, value: seal(value) })), ...removed]
}

/** What each flag says: a URL, a header's name, and the rest. */
const placed = (flag: string, texts: readonly string[] = [], form: string) =>
  texts.map((text, index) => {
    const match = /^(\d{1,3}):([^:]*):([^]*)$/.exec(text)
    if (!match) throw usageError(`${flag} takes ${form}; the ${ordinal(index + 1)} one is not of that form`)
    return { urlNumber: Number(match[1]), name: match[2]!.trim(), rest: match[3]! }
  })

/** What the flags ask for in shared secrets, once they can be sealed. Throws `usage`. */
export function secretEdit(flags: EndpointFlags): (seal: Seal) => SecretsEdit {
  const { secret, addSecret, removeSecret } = flags
  const sharedText = secret ?? (flags.secretFile && contentOf(flags.secretFile, '--secret-file'))
  const addedText = addSecret ?? (flags.addSecretFile && contentOf(flags.addSecretFile, '--add-secret-file'))
  return (seal) => {
    const shared = sharedText === undefined ? undefined : seal(sharedText)
    const added = addedText === undefined ? undefined : seal(addedText)
    // All go; one that is added replaces them.
    if (removeSecret === true) return { sharedSecret: added ?? null }
    return { sharedSecret: shared, addSecret: added, removeSecrets: removeSecret }
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
