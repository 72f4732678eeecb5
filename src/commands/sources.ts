import { randomBytes } from 'node:crypto'
import { Command } from 'commander'
import type { SettingsState, Source } from '../core/settings.ts'
import { PostriderError } from '../errors.ts'
import { runAction } from './context.ts'
import { print, printable, printJson, printTable } from './output.ts'
import { settingsSession } from './settings-session.ts'

interface JsonFlag {
  json?: true
}

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
    .option('--json', 'as JSON')
    .action(runAction(create))
  command
    .command('list')
    .summary('all sources')
    .description('All sources.')
    .option('--json', 'one JSON object a line')
    .action(runAction(list))
  command
    .command('show <id>')
    .summary('one source, with its write key')
    .description('One source, with its write key and its destinations.')
    .option('--json', 'as JSON')
    .action(runAction(show))
  command
    .command('update <id>')
    .summary('change its name or write key')
    .description('Changes what is given, and nothing else. The old write key stops to work.')
    .option('--name <name>', 'for people')
    .option('--write-key <key>', 'visible ASCII without a colon')
    .option('--json', 'as JSON')
    .action(runAction(update))
  for (const type of ['enable', 'disable'] as const)
    command
      .command(`${type} <id>`)
      .summary(type === 'enable' ? 'take its calls again' : 'skip its calls')
      .description(
        type === 'enable'
          ? 'Takes its calls again.'
          : 'Its calls are refused by the collector, and skipped and counted by the forwarder.',
      )
      .option('--json', 'as JSON')
      .action(runAction((id: string, options: JsonFlag, self: Command) => turn(type, id, options, self)))
  return command
}

interface CreateFlags extends JsonFlag {
  id: string
  name: string
  writeKey?: string
}

async function create({ id, name, writeKey, json }: CreateFlags, command: Command): Promise<void> {
  await settingsSession(command).run(async (settings) => {
    const state = await settings.execute({
      type: 'create_source',
      id,
      name,
      writeKey: writeKey ?? randomBytes(16).toString('hex'),
      enabled: true,
    })
    const source = sourceIn(state, id)
    if (json) printJson(viewOf(source, state))
    else print(`source "${id}" created; its write key is ${source.writeKey}`)
  })
}

async function list({ json }: JsonFlag, command: Command): Promise<void> {
  await settingsSession(command).run(({ state }) => {
    const views = [...state.sources.values()].map((source) => viewOf(source, state))
    if (json) views.forEach(printJson)
    else if (views.length === 0) print('no sources; `postrider sources create --help` shows how to add one')
    else
      printTable(
        ['ID', 'NAME', 'STATE', 'DESTINATIONS'],
        views.map(({ id, name, enabled, destinationIds }) => [
          id,
          name,
          enabled ? 'enabled' : 'disabled',
          destinationIds.join(', ') || '-',
        ]),
      )
  })
}

async function show(id: string, { json }: JsonFlag, command: Command): Promise<void> {
  await settingsSession(command).run(({ state }) => {
    const view = viewOf(sourceIn(state, id), state)
    if (json) return printJson(view)
    print(`id            ${view.id}`)
    print(`name          ${printable(view.name)}`)
    print(`state         ${view.enabled ? 'enabled' : 'disabled'}`)
    print(`write key     ${view.writeKey}`)
    print(`destinations  ${view.destinationIds.join(', ') || '-'}`)
  })
}

interface UpdateFlags extends JsonFlag {
  name?: string
  writeKey?: string
}

async function update(id: string, { name, writeKey, json }: UpdateFlags, command: Command): Promise<void> {
  await settingsSession(command).run(async (settings) => {
    const state = await settings.execute({ type: 'update_source', id, name, writeKey })
    if (json) printJson(viewOf(sourceIn(state, id), state))
    else print(`source "${id}" updated`)
  })
}

async function turn(
  type: 'enable' | 'disable',
  id: string,
  { json }: JsonFlag,
  command: Command,
): Promise<void> {
  await settingsSession(command).run(async (settings) => {
    const state = await settings.execute({ type: `${type}_source`, id })
    if (json) printJson(viewOf(sourceIn(state, id), state))
    else print(`source "${id}" is ${type}d`)
  })
}

function sourceIn(state: SettingsState, id: string): Source {
  const source = state.sources.get(id)
  if (!source)
    throw new PostriderError(
      'not_found',
      `source ${JSON.stringify(id)} does not exist; \`postrider sources list\` shows all`,
    )
  return source
}

function viewOf(source: Source, state: SettingsState) {
  const destinationIds = [...state.destinations.values()]
    .filter(({ sourceIds }) => sourceIds.includes(source.id))
    .map(({ id }) => id)
  return { ...source, destinationIds }
}
