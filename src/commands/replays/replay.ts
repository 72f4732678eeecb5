import { Command } from 'commander'
import { callTypes } from '../../core/call/analytics-call.ts'
import {
  defaultReplayKinds,
  kindsUnlessChosen,
  replayKinds,
  type ReplayKind,
} from '../../core/replay/replay-job.ts'
import { timesOfCall } from '../../console/replays/named-call.ts'
import { runAction } from '../context.ts'
import { namesOf, readPeriod, repeatable, usageError } from '../flags.ts'
import { withOpen } from '../with-open.ts'
import {
  addJobOptions,
  jobText,
  performReplay,
  readRate,
  type JobFlags,
  type ReadRange,
} from './perform-replay.ts'

interface ReplayFlags extends JobFlags {
  destination: string
  since?: string
  until?: string
  only?: string[]
  types?: string[]
  events?: string[]
  user?: string
  message?: string
}

export function replayCommand(): Command {
  const command = new Command('replay')
    .description(
      'Sends calls of the past to a destination again: what it has not had, unless told otherwise, by the settings of ' +
        `today. ${jobText}`,
    )
    .requiredOption('--destination <id>', 'where to')
    .option(
      '--since <time>',
      'what came in since then: an ISO time (UTC), or a duration ago (2h); needed unless --message is given',
    )
    .option(
      '--until <time>',
      'what came in before then: an ISO time (UTC), or a duration ago (30m); else now',
    )
    .addOption(
      repeatable(
        '--only <kind>',
        `${replayKinds.join(', ')}, or all; repeatable, or separated by commas; else ${defaultReplayKinds.join(',')}, or with --message all`,
      ),
    )
    .addOption(
      repeatable(
        '--types <type>',
        `only calls of these types: ${callTypes.join(', ')}; repeatable, or separated by commas`,
      ),
    )
    .addOption(
      repeatable('--events <name>', 'only track calls of this event, written exactly so; repeatable'),
    )
    .option('--user <id>', 'only calls of this user')
    .option(
      '--message <id>',
      'only the call with this messageId, whatever it was: of several copies the newest',
    )
  return addJobOptions(command).action(runAction(replay))
}

async function replay(flags: ReplayFlags, command: Command): Promise<void> {
  await performReplay(command, flags, rangeReader(flags, Date.now()))
}

/** Throws `usage` that names the flag. When a call that is named came in has to be looked up. */
function rangeReader(flags: ReplayFlags, now: number): ReadRange {
  const { since, until } = readPeriod(flags, now)
  const messageId = flags.message ?? null
  const rest = {
    deadLetters: null,
    destinationId: flags.destination,
    only: readKinds(flags.only, messageId),
    types: namesOf('--types', flags.types, callTypes),
    events: flags.events ?? null,
    user: flags.user ?? null,
    messageId,
    rate: readRate(flags.rate),
  }
  if (since !== null) return async () => ({ ...rest, since, until: until ?? now })
  if (messageId === null) throw usageError('give --since, or --message to send one call')
  if (until !== null) throw usageError('--until means nothing without --since')
  return async (openIndex, signal) =>
    withOpen(await openIndex(), async (messages) => ({
      ...rest,
      ...(await timesOfCall(messageId, messages, { signal })),
    }))
}

function readKinds(given: readonly string[] | undefined, messageId: string | null): ReplayKind[] {
  if (given?.length === 1 && given[0]!.trim() === 'all') return [...replayKinds]
  return namesOf('--only', given, replayKinds) ?? kindsUnlessChosen(messageId)
}
