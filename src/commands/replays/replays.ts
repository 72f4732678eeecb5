import { Command } from 'commander'
import { jobView, statusView } from '../../console/replays/replays.ts'
import { destinationsOf } from '../../core/replay/replay-job.ts'
import { runAction } from '../context.ts'
import type { JsonFlag } from '../flags.ts'
import { print, printJson } from '../output.ts'
import { printList, printStatus } from './describe.ts'
import { withReplays } from './session.ts'

export function replaysCommand(): Command {
  const command = new Command('replays').description(
    'Replays of the last 30 days, which `postrider replay`, `postrider dead-letters replay` and the ends of pauses make. Consoles run them.',
  )
  command
    .command('list')
    .summary('all replays')
    .description('All replays of the last 30 days, the newest last.')
    .option('--destination <id>', 'only those to this one; of dead letters, those that name it')
    .option('--json', 'one JSON object a line')
    .action(runAction(list))
  command
    .command('show <id>')
    .summary('one replay, and how far it is')
    .description('One replay, and how far it is.')
    .option('--json', 'as JSON')
    .action(runAction(show))
  const turns = {
    pause: ['let one rest', 'It sends nothing until it is resumed. What it sent is delivered.'],
    resume: ['let one go on', 'It goes on where it was.'],
    cancel: ['end one', 'For good. What it sent is delivered all the same.'],
  } as const
  for (const [turn, [summary, description]] of Object.entries(turns))
    command
      .command(`${turn} <id>`)
      .summary(summary)
      .description(description)
      .option('--json', 'as JSON')
      .action(runAction((id: string, flags: JsonFlag, own: Command) => change(turn as Turn, id, flags, own)))
  return command
}

type Turn = 'pause' | 'resume' | 'cancel'
const done: Record<Turn, string> = { pause: 'paused', resume: 'running', cancel: 'cancelled' }

const list = ({ destination, json }: JsonFlag & { destination?: string }, command: Command): Promise<void> =>
  withReplays(command, async (replays) => {
    const all = replays
      .list()
      .filter((job) => destination === undefined || destinationsOf(job).includes(destination))
    if (json) all.forEach((job) => printJson(jobView(job)))
    else printList(all)
  })

const show = (id: string, { json }: JsonFlag, command: Command): Promise<void> =>
  withReplays(command, async (replays) => {
    const status = await replays.show(id)
    if (json) printJson(statusView(status))
    else printStatus(status)
  })

const change = (turn: Turn, id: string, { json }: JsonFlag, command: Command): Promise<void> =>
  withReplays(command, async (replays) => {
    const status = await replays.turn(id, turn)
    if (json) printJson(statusView(status))
    else print(`replay ${id} is ${done[turn]}`)
  })
