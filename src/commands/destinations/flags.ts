import { readFileSync } from 'node:fs'
import { Option, type Command } from 'commander'
import { newSecret } from '../../console/destinations.ts'
import type { Secrets } from '../../console/ports.ts'
import type { HeaderEdit, NewSecret } from '../../core/settings-commands.ts'
import type { SecretsEdit } from '../../core/settings-secrets.ts'
import { PostriderError } from '../../errors.ts'

export interface EndpointFlags {
  header?: string[]
  removeHeader?: string[]
  secret?: string
  secretFile?: string
  addSecret?: string
  addSecretFile?: string
  /** True: all of them. */
  removeSecret?: string[] | true
}

const collect = (value: string, previous: string[] = []): string[] => [...previous, value]

export const repeatable = (flags: string, description: string): Option =>
  new Option(flags, description).argParser(collect)

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

/** The header flags as edits. Throws `usage`; never repeats a flag, for it may hold a secret. */
export function headerEdits(flags: EndpointFlags, secrets: Secrets): HeaderEdit[] {
  const set = (flags.header ?? []).map((text, index): HeaderEdit => {
    const match = /^(\d{1,3}):([^:]*):([^]*)$/.exec(text)
    if (!match)
      throw new PostriderError(
        'usage',
        `--header takes "URL-number:Name: value", such as "1:X-Team: blue"; the ${ordinal(index + 1)} one is not of that form`,
      )
    const value = match[3]!.replace(/^[ \t]+|[ \t]+$/g, '')
    return { urlNumber: Number(match[1]), name: match[2]!.trim(), value: newSecret(value, secrets) }
  })
  const removed = (flags.removeHeader ?? []).map((text): HeaderEdit => {
    const match = /^(\d{1,3}):([^:]+)$/.exec(text)
    if (!match)
      throw new PostriderError(
        'usage',
        '--remove-header takes "URL-number:Name", such as "1:X-Team", and no value',
      )
    return { urlNumber: Number(match[1]), name: match[2]!.trim(), value: null }
  })
  return [...set, ...removed]
}

/** What the flags ask for in shared secrets. Throws `usage`. */
export function secretEdit(flags: EndpointFlags, secrets: Secrets): SecretsEdit {
  const sharedSecret = given(flags.secret, flags.secretFile, '--secret-file', secrets)
  const addSecret = given(flags.addSecret, flags.addSecretFile, '--add-secret-file', secrets)
  const { removeSecret } = flags
  // All go; one that is added replaces them.
  if (removeSecret === true) return { sharedSecret: addSecret ?? null }
  return { sharedSecret, addSecret, removeSecrets: removeSecret }
}

function given(
  text: string | undefined,
  file: string | undefined,
  fileFlag: string,
  secrets: Secrets,
): NewSecret | undefined {
  if (text !== undefined) return newSecret(text, secrets)
  if (file === undefined) return undefined
  let content: string
  try {
    content = readFileSync(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new PostriderError('usage', `${fileFlag} ${file} cannot be read (${code})`)
  }
  return newSecret(content.replace(/\r?\n$/, ''), secrets)
}

function ordinal(number: number): string {
  return ['first', 'second', 'third', 'fourth', 'fifth'][number - 1] ?? `${number}th`
}
