import { Command } from 'commander'
import { newWriteKey, sourceKind, type SourceView } from '../console/sources.ts'
import type { Source } from '../core/settings/settings.ts'
import { runAction } from './context.ts'
import { rateOf } from '../core/pacing/rate.ts'
import type { JsonFlag } from './flags.ts'
import { printable } from './output.ts'
import {
  addListCommand,
  addShowCommand,
  addTurnCommands,
  report,
  type ShownSetting,
} from './settings/settings-actions.ts'
import { withSettings } from './settings/with-settings.ts'

const stateOf = ({ enabled, builtIn }: Pick<SourceView, 'enabled' | 'builtIn'>): string =>
  builtIn ? 'built in' : enabled ? 'enabled' : 'disabled'

const sources: ShownSetting<Source, SourceView> = {
  ...sourceKind,
  none: 'no sources',
  headings: ['ID', 'NAME', 'STATE', 'DESTINATIONS'],
  row: ({ id, name, destinationIds, ...source }) => [
    id,
    name,
    stateOf(source),
    destinationIds.join(', ') || '-',
  ],
  lines: ({ id, name, writeKey, maxRate, destinationIds, ...source }) => [
    `id            ${id}`,
    `name          ${printable(name)}`,
    `state         ${stateOf(source)}`,
    `write key     ${writeKey ?? 'none'}`,
    `quota         ${maxRate === null ? 'none' : `${maxRate} at each collector`}`,
    `destinations  ${destinationIds.join(', ') || '-'}`,
  ],
}

const quotaText =
  'calls that each collector takes of it, such as 200, 200/s or 600/m; what exceeds it is answered 429'

export function sourcesCommand(): Command {
  const command = new Command('sources').description(
    'Where calls come from. A source has a write key, which its senders show to the collector; browsers publish ' +
      'it, so it is no secret. Changes take effect in running parts at once.',
  )
  command
    .command('create')
    .summary('add a source')
    .description('Adds a source and prints its write key. An id is never changed or reused.')
    .requiredOption('--id <id>', '1-64 of a-z, 0-9, "_" and "-"')
    .requiredOption('--name <name>', 'for people')
    .option('--write-key <key>', 'visible ASCII without a colon (default: a random one)')
    .option('--max-rate <rate>', quotaText)
    .option('--json', 'as JSON')
    .action(runAction(create))
  addListCommand(command, sources)
  addShowCommand(command, sources, {
    summary: 'one source, with its write key',
    description: 'One source, with its write key and its destinations.',
  })
  command
    .command('update <id>')
    .summary('change its name, write key or quota')
    .description('Changes what is given, and nothing else. A write key that is replaced stops working.')
    .option('--name <name>', 'for people')
    .option('--write-key <key>', 'visible ASCII without a colon')
    .option('--max-rate <rate>', `${quotaText}; none takes it away`)
    .option('--json', 'as JSON')
    .action(runAction(update))
  addTurnCommands(command, sources, {
    enable: { summary: 'take its calls again', description: 'Takes its calls again.' },
    disable: {
      summary: 'skip its calls',
      description: 'Its calls are refused by the collector, and skipped and counted by the forwarder.',
    },
  })
  return command
}

interface CreateFlags extends JsonFlag {
  id: string
  name: string
  writeKey?: string
  maxRate?: string
}

async function create(flags: CreateFlags, command: Command): Promise<void> {
  const { id, name, writeKey = newWriteKey(), maxRate } = flags
  await withSettings(command, async (settings) => {
    const quota = maxRate && rateOf(maxRate)
    await settings.execute({ type: 'create_source', id, name, writeKey, maxRate: quota, enabled: true })
    report(sources, settings, id, flags, `source "${id}" created; its write key is ${writeKey}`)
  })
}

interface UpdateFlags extends JsonFlag {
  name?: string
  writeKey?: string
  maxRate?: string
}

async function update(id: string, flags: UpdateFlags, command: Command): Promise<void> {
  const { name, writeKey } = flags
  const maxRate = flags.maxRate === 'none' ? null : flags.maxRate && rateOf(flags.maxRate)
  await withSettings(command, async (settings) => {
    await settings.execute({ type: 'update_source', id, name, writeKey, maxRate })
    report(sources, settings, id, flags, `source "${id}" updated`)
  })
}
