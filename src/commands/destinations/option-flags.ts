import { Option, type Command } from 'commander'
import { callTypes, type CallType } from '../../core/call/analytics-call.ts'
import {
  deliverToChoices,
  givenOptions,
  type DeliverTo,
  type OptionsEdit,
} from '../../core/settings/destination-options.ts'
import { repeatable } from '../flags.ts'

export interface OptionFlags {
  standardWebhooks?: 'on' | 'off'
  types?: string
  events?: string[]
  allEvents?: true
  deliverTo?: DeliverTo
}

/** The flags of what a destination is to get and how; `create` and `update` have them alike. */
export function addOptionFlags(command: Command): Command {
  return command
    .addOption(
      new Option(
        '--standard-webhooks <on|off>',
        'send webhook-id, webhook-timestamp and webhook-signature too; needs a shared secret',
      ).choices(['on', 'off']),
    )
    .option(
      '--types <list>',
      `send only these call types: ${callTypes.join(',')}, or "all"; a delete is always sent`,
    )
    .addOption(
      repeatable(
        '--events <name>',
        'send only track calls of this event, written exactly so; repeatable',
      ).conflicts('allEvents'),
    )
    .option('--all-events', 'send track calls of every event again')
    .addOption(
      new Option(
        '--deliver-to <any|every>',
        'any: one URL that takes a call is enough; every: each URL gets it, with retries of its own',
      ).choices(deliverToChoices),
    )
}

/** Undefined when no flag speaks of an option. Whether a type is known is decided with the other rules. */
export function optionsEdit(flags: OptionFlags): OptionsEdit | undefined {
  const { standardWebhooks, types, events, allEvents, deliverTo } = flags
  const edit = givenOptions({
    standardWebhooks: standardWebhooks && standardWebhooks === 'on',
    types: types === undefined ? undefined : types === 'all' ? null : (listOf(types) as CallType[]),
    events: allEvents ? null : events,
    deliverTo,
  })
  return Object.keys(edit).length > 0 ? edit : undefined
}

function listOf(text: string): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
}
