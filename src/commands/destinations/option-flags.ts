import { InvalidArgumentError, Option, type Command } from 'commander'
import { callTypes, type CallType } from '../../core/call/analytics-call.ts'
import {
  deliverToChoices,
  mostInFlight,
  givenOptions,
  type DeliverTo,
  type OptionsEdit,
} from '../../core/settings/destination-options.ts'
import { maxRateForm } from '../../core/settings/destination-options.ts'
import { rateOf } from '../../core/pacing/rate.ts'
import { namesOf, repeatable } from '../flags.ts'

export interface OptionFlags {
  standardWebhooks?: 'on' | 'off'
  types?: string[]
  events?: string[]
  allEvents?: true
  deliverTo?: DeliverTo
  maxRate?: string
  /** False: no limit. */
  maxInFlight?: number | false
  where?: string
  removeWhere?: true
  drop?: string[]
  removeDrop?: true
  traceContext?: 'on' | 'off'
}

/** The flags of what a destination is to get and how. Only `update` has those that take something away. */
export function addOptionFlags(command: Command, of: 'create' | 'update'): Command {
  const removing = (flags: string, description: string) => {
    if (of === 'update') command.option(flags, description)
  }
  command
    .addOption(
      new Option(
        '--standard-webhooks <on|off>',
        'send webhook-id, webhook-timestamp and webhook-signature too; needs a shared secret',
      ).choices(['on', 'off']),
    )
    .addOption(
      repeatable(
        '--types <type>',
        `send only calls of these types: ${callTypes.join(', ')}, or "all"; repeatable, or separated by commas; a delete is always sent`,
      ),
    )
    .addOption(
      repeatable(
        '--events <name>',
        'send only track calls of this event, written exactly so; repeatable',
      ).conflicts('allEvents'),
    )
  removing('--all-events', 'send track calls of every event again')
  command
    .addOption(
      new Option(
        '--deliver-to <any|every>',
        'any: one URL that takes a call is enough; every: each URL gets it, with retries of its own',
      ).choices(deliverToChoices),
    )
    .option('--max-rate <rate>', `attempts of all forwarders at all of its URLs, or "none": ${maxRateForm}`)
    .addOption(
      new Option(
        '--max-in-flight <count>',
        `requests in flight of all forwarders to all of its URLs, 1-${mostInFlight}, or "none"`,
      ).argParser(countOrNone),
    )
    .addOption(
      new Option(
        '--where <expression>',
        "send only calls for which this CEL expression is true, such as 'call.properties.total >= 100'; a delete is always sent",
      ).conflicts('removeWhere'),
    )
  removing('--remove-where', 'send calls whatever is in them again')
  command.addOption(
    repeatable(
      '--drop <path>',
      'leave this out of the body, such as context.ip; repeatable, and the whole new list',
    ).conflicts('removeDrop'),
  )
  removing('--remove-drop', 'leave nothing out any more')
  return command.addOption(
    new Option('--trace-context <on|off>', 'send the header traceparent that a call came with').choices([
      'on',
      'off',
    ]),
  )
}

/** Undefined when no flag speaks of an option. Whether a type is known is decided with the other rules. */
export function optionsEdit(flags: OptionFlags): OptionsEdit | undefined {
  const { standardWebhooks, types, events, allEvents, deliverTo } = flags
  const { maxRate, maxInFlight, where, removeWhere, drop, removeDrop, traceContext } = flags
  const edit = givenOptions({
    standardWebhooks: standardWebhooks && standardWebhooks === 'on',
    types: types && typesOf(types),
    events: allEvents ? null : events,
    deliverTo,
    maxRate: maxRate === 'none' ? null : maxRate && rateOf(maxRate),
    maxInFlight: maxInFlight === false ? null : maxInFlight,
    where: removeWhere ? null : where,
    drop: removeDrop ? null : drop,
    traceContext: traceContext && traceContext === 'on',
  })
  return Object.keys(edit).length > 0 ? edit : undefined
}

/**
 * Whether it is in range is decided with the other rules. No text: as a text, it would set MAX_IN_FLIGHT for this command.
 */
function countOrNone(text: string): number | false {
  if (text === 'none') return false
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('It takes a whole number or "none".')
  return Number(text)
}

/** Null for all. */
function typesOf(given: readonly string[]): CallType[] | null {
  const names = namesOf('--types', given) as CallType[]
  return names.length === 1 && given[0]!.trim() === 'all' ? null : names
}
