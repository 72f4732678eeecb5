import { defaultReplayKinds, replayKinds } from '../../core/replay/replay-job.ts'
import { namesOf, repeatable } from '../flags.ts'
import type { CommandShape } from '../operations/operation-command.ts'
import { addJobOptions, jobText, performReplay, rateIn } from './perform-replay.ts'

/** `postrider replay`: calls of the past. */
export const replayShape: CommandShape = {
  summary: 'Send calls of the past to a destination: what it has not had, or all',
  description:
    'Sends calls of the past to a destination again: what it has not had, unless told otherwise, by the settings of ' +
    `today. ${jobText}`,
  names: { only: '--only', rate: '--rate' },
  addFlags(command) {
    command.addOption(
      repeatable(
        '--only <kind>',
        `${replayKinds.join(', ')}, or all; repeatable, or separated by commas; else ${defaultReplayKinds.join(',')}, or with --message all`,
      ),
    )
    addJobOptions(command)
  },
  read(options) {
    const { only: given } = options as { only?: string[] }
    const isAll = given?.length === 1 && given[0]!.trim() === 'all'
    const only = isAll ? [...replayKinds] : namesOf('--only', given, replayKinds)
    const body = { ...(only && { only }), rate: rateIn(options) }
    return () => ({ body })
  },
  run: performReplay,
}
