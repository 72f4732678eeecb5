// What the commands of sources, tokens, secrets and the settings as a whole have beside their operations.
import type { SourceView } from '../../console/sources.ts'
import type { HistoryEntry } from '../../console/history/history.ts'
import type { GivenSettingsFile } from '../../console/settings-file/file-schema.ts'
import type { TokenView } from '../../console/tokens.ts'
import { count, printable, table } from '../output.ts'
import type { CommandShape } from '../operations/operation-command.ts'
import { changeLines } from './change-lines.ts'
import { settingsYaml } from './yaml-file.ts'

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

export const settingsShapes: Readonly<Record<string, CommandShape>> = {
  listSources: {
    row: {
      headings: ['ID', 'NAME', 'STATE', 'DESTINATIONS'],
      of: ({ id, name, enabled, builtIn, destinationIds }: SourceView) => [
        id,
        name,
        builtIn ? 'built in' : enabled ? 'enabled' : 'disabled',
        destinationIds.join(', ') || '-',
      ],
    },
    none: 'no sources; `postrider sources create --help` shows how to add one',
  },
  createSource: {
    text: ({ id, writeKey }: SourceView) => `source "${id}" created; its write key is ${writeKey}`,
  },
  listTokens: {
    row: {
      headings: ['NAME', 'ROLE', 'CREATED', 'REVOKED'],
      of: ({ id, role, createdAt, revokedAt }: TokenView) => [id, role, createdAt, revokedAt ?? '-'],
    },
    none: 'no tokens but ADMIN_TOKEN; `postrider tokens create --help` shows how to add one',
  },
  createToken: {
    text: ({ id, role, token }: TokenView & { token: string }) =>
      `token "${id}" created, with the role ${role}; it is shown this once: ${token}`,
  },
  rotateSecrets: { text: rotationText, hasFailed: rotationProblems },
  listSettingsHistory: { item: entryText, none: 'no such change' },
  exportSettings: {
    // As `settings apply` takes it.
    json: ({ settings }: { settings: GivenSettingsFile }) => settings,
    text: ({ settings }: { settings: GivenSettingsFile }) => settingsYaml(settings).trimEnd(),
  },
}
