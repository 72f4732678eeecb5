import { Command } from 'commander'
import { destinationKind, newPauseId, sampleView, type DestinationView } from '../../console/destinations.ts'
import { runAction } from '../context.ts'
import { flagError, repeatable, type JsonFlag } from '../flags.ts'
import { headings, linesOf, rowOf } from './describe.ts'
import { addRotationFlags, addSecretFlags, headerEdits, secretEdit, type EndpointFlags } from './flags.ts'
import { addOptionFlags, optionsEdit, type OptionFlags } from './option-flags.ts'
import { parseDuration } from '../../core/duration.ts'
import { heldKeptMs } from '../../adapters/kafka/admin/held-retention.ts'
import { topicNames } from '../../core/topics.ts'
import { sealerFor } from '../../console/sealing-key.ts'
import { settingIn } from '../../console/setting-kind.ts'
import type { SettingsCommand } from '../../core/settings/commands.ts'
import type { Destination } from '../../core/settings/settings.ts'
import { sendSample } from '../../adapters/webhook/sample-call.ts'
import { transportOf } from '../../adapters/webhook/transport.ts'
import { print, printJson, printTable } from '../output.ts'
import {
  addIdCommand,
  addListCommand,
  addShowCommand,
  addTurnCommands,
  report,
  type ShownSetting,
} from '../settings/settings-actions.ts'
import { withSettings } from '../settings/with-settings.ts'
import { withOpen } from '../with-open.ts'

const destinations: ShownSetting<Destination, DestinationView> = {
  ...destinationKind,
  none: 'no destinations',
  headings,
  row: rowOf,
  lines: linesOf,
  async facts({ kafka, config }, shown) {
    if (shown.every(({ pause }) => pause === null)) return { heldKeptMs: null }
    return { heldKeptMs: await heldKeptMs(kafka, topicNames(config.topicPrefix)) }
  },
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
    'create',
  )
    .option('--disabled', 'sends nothing until it is enabled')
    .option('--json', 'as JSON')
    .action(runAction(create))
  addListCommand(command, destinations)
  addShowCommand(command, destinations, {
    summary: 'one destination, whether it is paused, and whether its URLs are gone',
    description: 'One destination, with the ids of its URLs, and since when one of them is gone (410).',
  })
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
    'update',
  )
    .option('--json', 'as JSON')
    .action(runAction(update))
  addTurnCommands(command, destinations, {
    enable: {
      summary: 'send to it, also to URLs that were gone',
      description: 'Sends to it again, also to URLs that were gone.',
    },
    disable: {
      summary: 'send it nothing',
      description: 'Sends it nothing more: its calls, waiting retries included, are skipped and counted.',
    },
  })
  command
    .command('pause <id>')
    .summary('hold its calls')
    .description(
      'Sends it nothing and holds its calls, until it is resumed or the time is over. What is held is kept as long ' +
        'as the calls topic keeps its records: `show` says until when. Paused again, it gets another end.',
    )
    .option('--for <duration>', 'how long, such as 30m or 2h; without, until it is resumed')
    .option('--json', 'as JSON')
    .action(runAction(pause))
  addIdCommand(command, 'resume', resumeTexts, async (id, flags, self) => {
    await withSettings(self, async (settings) => {
      const { event } = await settings.perform({
        type: 'resume_destination',
        id,
        pauseId: null,
        at: Date.now(),
      })
      const sentence = `destination "${id}" ${event ? 'is resumed' : 'is not paused'}`
      report(destinations, settings, id, flags, sentence)
    })
  })
  command
    .command('test <id>')
    .summary('send one sample call to each URL')
    .description(
      'Sends one sample call to each URL, once, enabled or not, paused or not, and prints each outcome. It sends from this ' +
        'machine with the settings of this command (WEBHOOK_ALLOWED_NETWORKS, WEBHOOK_CA_FILE); forwarders may have ' +
        'others. Exit code 1 unless all succeed.',
    )
    .option('--json', 'one JSON object a URL')
    .action(runAction(test))
  return command
}

const resumeTexts = {
  summary: 'end its pause',
  description: 'Ends its pause. New calls are sent at once.',
}

async function pause(id: string, flags: JsonFlag & { for?: string }, command: Command): Promise<void> {
  const forMs = flags.for === undefined ? null : parseDuration(flags.for)
  if (flags.for !== undefined && forMs === null)
    throw flagError('--for', flags.for, 'a duration such as 30m, 2h or 1d')
  await withSettings(command, async (settings) => {
    const at = Date.now()
    const until = forMs === null ? null : at + forMs
    await settings.execute({ type: 'pause_destination', id, pauseId: newPauseId(), at, until })
    const end =
      until === null
        ? `until \`postrider destinations resume ${id}\``
        : `until ${new Date(until).toISOString()}`
    report(destinations, settings, id, flags, `destination "${id}" is paused ${end}: its calls are held`)
  })
}

interface CreateFlags extends JsonFlag, EndpointFlags, OptionFlags {
  id: string
  name: string
  source: string[]
  url: string[]
  disabled?: true
}

async function create(flags: CreateFlags, command: Command): Promise<void> {
  const [headers, secret] = [headerEdits(flags), secretEdit(flags)]
  await withSettings(command, async (settings, { secrets }) => {
    const sealer = sealerFor(settings, secrets, { destinationId: flags.id, anyKey: flags.anyKey })
    const { sharedSecret = null } = secret(sealer.newSecret)
    const command: SettingsCommand = {
      type: 'create_destination',
      id: flags.id,
      name: flags.name,
      sourceIds: flags.source,
      urls: flags.url,
      headers: headers(sealer.newSecret),
      sharedSecret,
      options: optionsEdit(flags),
      enabled: !flags.disabled,
    }
    await settings.perform(command, { check: sealer.check })
    const disabled = flags.disabled ? ', disabled' : ''
    const next = `\`postrider destinations test ${flags.id}\` sends a sample call`
    report(destinations, settings, flags.id, flags, `destination "${flags.id}" created${disabled}; ${next}`)
  })
}

interface UpdateFlags extends JsonFlag, EndpointFlags, OptionFlags {
  name?: string
  source?: string[]
  url?: string[]
}

async function update(id: string, flags: UpdateFlags, command: Command): Promise<void> {
  const [headers, secret] = [headerEdits(flags), secretEdit(flags)]
  await withSettings(command, async (settings, { secrets }) => {
    const sealer = sealerFor(settings, secrets, { destinationId: id, anyKey: flags.anyKey })
    const command: SettingsCommand = {
      type: 'update_destination',
      id,
      name: flags.name,
      sourceIds: flags.source,
      urls: flags.url,
      headers: headers(sealer.newSecret),
      ...secret(sealer.newSecret),
      options: optionsEdit(flags),
    }
    await settings.perform(command, { check: sealer.check })
    report(destinations, settings, id, flags, `destination "${id}" updated`)
  })
}

async function test(id: string, { json }: JsonFlag, command: Command): Promise<void> {
  await withSettings(command, async (settings, { secrets, context: { config } }) => {
    const destination = settingIn(destinationKind, settings.state, id)
    const transport = await transportOf(config)
    const results = await withOpen({ close: () => transport.close(0) }, () =>
      sendSample(destination, { transport, secrets, now: Date.now() }),
    )
    const views = results.map(sampleView)
    if (json) views.forEach(printJson)
    else {
      printTable(
        ['URL', 'OUTCOME', 'STATUS', 'MS', 'ADDRESS', 'DETAIL'],
        views.map(({ number, url, outcome, status, durationMs, detail }) => [
          String(number),
          outcome,
          String(status ?? '-'),
          durationMs,
          url,
          detail ?? '',
        ]),
      )
      const allowed = config.allowedNetworks.join() || 'not set'
      print(
        `Sent from this machine with this command's settings (WEBHOOK_ALLOWED_NETWORKS: ${allowed}); forwarders may have others.`,
      )
    }
    if (views.some(({ outcome }) => outcome !== 'success')) process.exitCode = 1
  })
}
