import { readFileSync } from 'node:fs'
import { Option, type Command } from 'commander'
import type { Secrets } from '../../adapters/secrets.ts'
import type { HeaderEdit, NewSecret } from '../../core/settings-commands.ts'
import { PostriderError } from '../../errors.ts'

export interface EndpointFlags {
  header?: string[]
  removeHeader?: string[]
  secret?: string
  secretFile?: string
  removeSecret?: true
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
      ]),
    )
    .addOption(
      new Option(
        '--secret-file <file>',
        'the same from a file, less the line’s end: it shows in no process list or shell history',
      ).conflicts('removeSecret'),
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

/** The shared secret that the flags ask for: null to remove it, undefined when they do not speak of it. */
export function sharedSecret(flags: EndpointFlags, secrets: Secrets): NewSecret | null | undefined {
  if (flags.removeSecret) return null
  if (flags.secret !== undefined) return newSecret(flags.secret, secrets)
  if (flags.secretFile === undefined) return undefined
  let text: string
  try {
    text = readFileSync(flags.secretFile, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new PostriderError('usage', `--secret-file ${flags.secretFile} cannot be read (${code})`)
  }
  return newSecret(text.replace(/\r?\n$/, ''), secrets)
}

function newSecret(text: string, secrets: Secrets): NewSecret {
  return { text, sealed: secrets.seal(text) }
}

function ordinal(number: number): string {
  return ['first', 'second', 'third', 'fourth', 'fifth'][number - 1] ?? `${number}th`
}
