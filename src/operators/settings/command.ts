// What the commands of sources, tokens, secrets and the settings as a whole have beside their operations.
import { Command } from 'commander'
import { runAction } from '../../cli/context.ts'
import { usageError, type JsonFlag } from '../../cli/flags.ts'
import type { CommandShape } from '../../cli/operations/operation-command.ts'
import { inSession } from '../../cli/operations/session.ts'
import { count, printable, table, print, printJson } from '../../cli/terminal.ts'
import { PostriderError } from '../../errors.ts'
import type { SourceView } from '../sources/sources.ts'
import type { TokenView } from '../tokens/tokens.ts'
import { changeLines, settingsYaml } from './file-command.ts'
import type { GivenSettingsFile } from './file-schema.ts'
import type { HistoryEntry } from './history.ts'

interface Rotation {
  dryRun: boolean
  keyId: string
  rotated: number
  complete: boolean
  destinations: { id: string; rotated: number; current: number; problems: string[] }[]
}

function rotationText({ dryRun, keyId, rotated, complete, destinations }: Rotation): string {
  const touched = destinations.filter((destination) => destination.rotated > 0)
  const done = `${count(rotated, 'secret')} ${dryRun ? 'would be ' : ''}encrypted again under key ${keyId}`
  const isOver = complete && !dryRun
  return [
    ...(touched.length > 0
      ? [
          table(
            ['DESTINATION', dryRun ? 'TO ROTATE' : 'ROTATED', 'WERE CURRENT'],
            touched.map(({ id, rotated, current }) => [id, rotated, current]),
          ),
        ]
      : []),
    isOver ? `${done}; older keys are needed no longer: take them out of SECRETS_KEY` : done,
  ].join('\n')
}

function rotationProblems({ complete, destinations }: Rotation): string | false {
  const problems = destinations.flatMap(({ id, problems }) =>
    problems.map((problem) => `destination "${id}": ${problem}`),
  )
  return complete ? false : `not all could be encrypted again: ${problems.join('; ')}`
}

const entryText = ({ at, actor, type, changed }: HistoryEntry): string =>
  [
    `${at}  ${printable(actor ?? 'not known')}  ${type}`,
    ...changed.flatMap(changeLines).map((line) => `  ${line}`),
  ].join('\n')

const namedOf = (ids: readonly string[], count: number): string =>
  ids.join(', ') + (count > ids.length ? ` and ${count - ids.length} more` : '')

export const settingsShapes: Readonly<Record<string, CommandShape>> = {
  listSources: {
    row: {
      headings: ['ID', 'NAME', 'STATE', 'DESTINATIONS'],
      of: ({ id, name, enabled, builtIn, destinationIds, destinationCount }: SourceView) => [
        id,
        name,
        builtIn ? 'built in' : enabled ? 'enabled' : 'disabled',
        namedOf(destinationIds, destinationCount) || '-',
      ],
    },
    none: 'no sources; `postrider sources create --help` shows how to add one',
  },
  createSource: {
    text: ({ id, writeKey }: SourceView) => `source "${id}" created; its write key is ${writeKey}`,
  },
  listTokens: {
    row: {
      headings: ['NAME', 'ROLE', 'ONLY', 'CREATED', 'REVOKED'],
      of: ({ id, role, only, createdAt, revokedAt }: TokenView) => [
        id,
        role,
        only?.join(',') ?? '-',
        createdAt,
        revokedAt ?? '-',
      ],
    },
    none: 'no tokens but ADMIN_TOKEN; `postrider tokens create --help` shows how to add one',
  },
  createToken: {
    text: ({ id, role, only, token }: TokenView & { token: string }) =>
      `token "${id}" created, with the role ${role}${only ? ` for ${only.join(', ')} only` : ''}; it is shown this once: ${token}`,
  },
  rotateSecrets: { text: rotationText, hasFailed: rotationProblems },
  listSettingsHistory: { item: entryText, none: 'no such change' },
  exportSettings: {
    // As `settings apply` takes it.
    json: ({ settings }: { settings: GivenSettingsFile }) => settings,
    text: ({ settings }: { settings: GivenSettingsFile }) => settingsYaml(settings).trimEnd(),
  },
}

export const skipCommand = (): Command =>
  new Command('skip')
    .argument('<offset>', 'in the settings log')
    .summary('Pass over an event that this version cannot read')
    .description(
      'Passes over the event at this offset of the settings log, where the settings stand still because this version ' +
        'cannot read it: errors and /readyz name the offset. Right when nobody will ever run the version that wrote it; ' +
        'otherwise upgrade. The skip is kept in the log: every process goes on at once, and each later start does so ' +
        'too. A version that can read the event still follows it. What is no settings event at all is ignored anyway.',
    )
    .option('--json', 'as JSON')
    .action(runAction(skip))

async function skip(text: string, { json }: JsonFlag, command: Command): Promise<void> {
  if (!/^\d{1,15}$/.test(text))
    throw usageError(`an offset is a whole number from 0, not ${JSON.stringify(text)}`)
  const offset = Number(text)
  await inSession(
    command,
    async ({ settings }) => {
      await settings.skip(offset)
      const { version } = settings.state
      if (json) printJson({ skipped: offset, version, heldAt: settings.heldAt })
      else print(`the event at offset ${offset} is skipped; the settings are at version ${version}`)
      if (settings.heldAt !== null) throw new PostriderError('setup', settings.problem!)
    },
    'look',
  )
}
