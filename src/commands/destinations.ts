import { Command } from 'commander'
import { createWebhookTransport } from '../adapters/webhook/transport.ts'
import type { Destination, SettingsState } from '../core/settings.ts'
import { PostriderError } from '../errors.ts'
import { runAction } from './context.ts'
import { headings, linesOf, rowOf, viewOf } from './destinations/describe.ts'
import {
  addRotationFlags,
  addSecretFlags,
  headerEdits,
  repeatable,
  secretEdit,
  type EndpointFlags,
} from './destinations/flags.ts'
import { addOptionFlags, optionsEdit, type OptionFlags } from './destinations/option-flags.ts'
import { sendSample } from './destinations/sample-call.ts'
import { print, printJson, printTable } from './output.ts'
import { settingsSession } from './settings-session.ts'

interface JsonFlag {
  json?: true
}

export function destinationsCommand(): Command {
  const command = new Command('destinations').description(
    'Where calls go to: up to 5 URLs each, every call as a signed POST. Shared secrets and header values are kept ' +
      'encrypted (SECRETS_KEY) and never shown again, only as fingerprints. Changes take effect in running ' +
      'parts at once.',
  )
  addOptionFlags(
    addSecretFlags(
      command
        .command('create')
        .summary('add a destination')
        .description(
          'Adds a destination. An id is never changed or reused. If sending to any one of the URLs succeeds, a call ' +
            'counts as delivered, unless --deliver-to every is chosen.',
        )
        .requiredOption('--id <id>', '1-64 of a-z, 0-9, "_" and "-"')
        .requiredOption('--name <name>', 'for people')
        .addOption(
          repeatable('--source <id>', 'a source whose calls it gets; repeatable').makeOptionMandatory(),
        )
        .addOption(
          repeatable('--url <url>', 'http or https, absolute; repeatable, at most 5').makeOptionMandatory(),
        ),
    ),
  )
    .option('--disabled', 'sends nothing until it is enabled')
    .option('--json', 'as JSON')
    .action(runAction(create))
  command
    .command('list')
    .summary('all destinations')
    .description('All destinations.')
    .option('--json', 'one JSON object a line')
    .action(runAction(list))
  command
    .command('show <id>')
    .summary('one destination, and whether its URLs are gone')
    .description('One destination, with the ids of its URLs, and since when one of them is gone (410).')
    .option('--json', 'as JSON')
    .action(runAction(show))
  addOptionFlags(
    addRotationFlags(
      addSecretFlags(
        command
          .command('update <id>')
          .summary('change what is given')
          .description(
            'Changes what is given, and nothing else. --source and --url give the whole new list; a URL that stays ' +
              'keeps its id and headers, a new one has none. --header sets one header and leaves the others; URLs are ' +
              'counted in the new list.',
          )
          .option('--name <name>', 'for people')
          .addOption(repeatable('--source <id>', 'a source whose calls it gets; repeatable'))
          .addOption(repeatable('--url <url>', 'http or https, absolute; repeatable, at most 5'))
          .addOption(
            repeatable('--remove-header <header>', 'takes a header away, as "URL-number:Name"; repeatable'),
          ),
      ),
    ),
  )
    .option('--json', 'as JSON')
    .action(runAction(update))
  for (const type of ['enable', 'disable'] as const)
    command
      .command(`${type} <id>`)
      .summary(type === 'enable' ? 'send to it, also to URLs that were gone' : 'send it nothing')
      .description(
        type === 'enable'
          ? 'Sends to it again, also to URLs that were gone.'
          : 'Sends it nothing more: its calls, waiting retries included, are skipped and counted.',
      )
      .option('--json', 'as JSON')
      .action(runAction((id: string, options: JsonFlag, self: Command) => turn(type, id, options, self)))
  command
    .command('test <id>')
    .summary('send one sample call to each URL')
    .description(
      'Sends one sample call to each URL, once, enabled or not, and prints each outcome. Exit code 1 unless all ' +
        'succeed.',
    )
    .option('--json', 'one JSON object a URL')
    .action(runAction(test))
  return command
}

interface CreateFlags extends JsonFlag, EndpointFlags, OptionFlags {
  id: string
  name: string
  source: string[]
  url: string[]
  disabled?: true
}

async function create(flags: CreateFlags, command: Command): Promise<void> {
  const { run, secrets } = settingsSession(command)
  const headers = headerEdits(flags, secrets)
  const { sharedSecret = null } = secretEdit(flags, secrets)
  await run(async (settings) => {
    const state = await settings.execute({
      type: 'create_destination',
      id: flags.id,
      name: flags.name,
      sourceIds: flags.source,
      urls: flags.url,
      headers,
      sharedSecret,
      options: optionsEdit(flags),
      enabled: !flags.disabled,
    })
    if (flags.json) printJson(viewOf(destinationIn(state, flags.id)))
    else
      print(
        `destination "${flags.id}" created${flags.disabled ? ', disabled' : ''}; ` +
          `\`postrider destinations test ${flags.id}\` sends a sample call`,
      )
  })
}

async function list({ json }: JsonFlag, command: Command): Promise<void> {
  await settingsSession(command).run(({ state }) => {
    const views = [...state.destinations.values()].map(viewOf)
    if (json) views.forEach(printJson)
    else if (views.length === 0)
      print('no destinations; `postrider destinations create --help` shows how to add one')
    else printTable(headings, views.map(rowOf))
  })
}

async function show(id: string, { json }: JsonFlag, command: Command): Promise<void> {
  await settingsSession(command).run(({ state }) => {
    const view = viewOf(destinationIn(state, id))
    if (json) printJson(view)
    else linesOf(view).forEach(print)
  })
}

interface UpdateFlags extends JsonFlag, EndpointFlags, OptionFlags {
  name?: string
  source?: string[]
  url?: string[]
}

async function update(id: string, flags: UpdateFlags, command: Command): Promise<void> {
  const { run, secrets } = settingsSession(command)
  const headers = headerEdits(flags, secrets)
  const secret = secretEdit(flags, secrets)
  await run(async (settings) => {
    const state = await settings.execute({
      type: 'update_destination',
      id,
      name: flags.name,
      sourceIds: flags.source,
      urls: flags.url,
      headers,
      ...secret,
      options: optionsEdit(flags),
    })
    if (flags.json) printJson(viewOf(destinationIn(state, id)))
    else print(`destination "${id}" updated`)
  })
}

async function turn(
  type: 'enable' | 'disable',
  id: string,
  { json }: JsonFlag,
  command: Command,
): Promise<void> {
  await settingsSession(command).run(async (settings) => {
    const state = await settings.execute({ type: `${type}_destination`, id })
    if (json) printJson(viewOf(destinationIn(state, id)))
    else print(`destination "${id}" is ${type}d`)
  })
}

async function test(id: string, { json }: JsonFlag, command: Command): Promise<void> {
  const { run, secrets, context } = settingsSession(command)
  const { config } = context
  await run(async (settings) => {
    const destination = destinationIn(settings.state, id)
    const transport = createWebhookTransport({
      timeoutMs: config.webhookTimeoutMs,
      allowedNetworks: config.allowedNetworks,
      caFile: config.webhookCaFile,
    })
    try {
      const results = await sendSample(destination, { transport, secrets, now: Date.now() })
      if (json)
        for (const { number, url, outcome } of results) {
          const { kind, status, durationMs, detail } = outcome
          printJson({ number, url, outcome: kind, status, durationMs: Math.round(durationMs), detail })
        }
      else
        printTable(
          ['URL', 'OUTCOME', 'STATUS', 'MS', 'ADDRESS', 'DETAIL'],
          results.map(({ number, url, outcome }) => [
            String(number),
            outcome.kind,
            String(outcome.status ?? '-'),
            Math.round(outcome.durationMs),
            url,
            outcome.detail ?? '',
          ]),
        )
      if (results.some(({ outcome }) => outcome.kind !== 'success')) process.exitCode = 1
    } finally {
      await transport.close(0)
    }
  })
}

function destinationIn(state: SettingsState, id: string): Destination {
  const destination = state.destinations.get(id)
  if (!destination)
    throw new PostriderError(
      'not_found',
      `destination ${JSON.stringify(id)} does not exist; \`postrider destinations list\` shows all`,
    )
  return destination
}
