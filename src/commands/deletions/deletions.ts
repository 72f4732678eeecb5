import { Command, Option } from 'commander'
import { resumedOf, statusOf, summaryOf, type DeletionStatus } from '../../console/deletions/deletions.ts'
import { deletionStates, type DeletionState } from '../../core/erasure/deletion-book.ts'
import type { DeleteCounts } from '../../core/erasure/deletion-progress.ts'
import { runAction } from '../context.ts'
import { deletionProgress, withDeletions } from './session.ts'
import type { JsonFlag } from '../flags.ts'
import { count, print, printable, printJson, printTable } from '../output.ts'
import { withProgress } from '../progress-bar.ts'

export function deletionsCommand(): Command {
  const command = new Command('deletions').description(
    'Deletion requests of the last 40 days, which `postrider delete-user` makes. Each affects the sources that it ' +
      'named, or else all that there were: whether a source ever had a call of a user is not looked at.',
  )
  command
    .command('list')
    .summary('all deletion requests')
    .description('All deletion requests, the newest last.')
    .addOption(new Option('--state <state>', 'only those in this state').choices(deletionStates))
    .option('--json', 'one JSON object a line')
    .action(runAction(list))
  command
    .command('show <id>')
    .summary('one request, and what became of its delete calls')
    .description(
      'One request, and for each source how many delete calls were requested, delivered, failed (they are dead ' +
        'letters, and can be replayed), skipped and still wait. Of more than 9 days ago it is not known any more.',
    )
    .option('--json', 'as JSON')
    .action(runAction(show))
  command
    .command('resume [id]')
    .summary('finish what was interrupted')
    .description(
      'Writes the delete calls of a request that was interrupted, or of every one. Those that were written before ' +
        'keep their messageId, by which receivers know them.',
    )
    .option('--json', 'one JSON object a line')
    .action(runAction(resume))
  return command
}

const words: Record<DeletionState, string> = {
  finished: 'finished',
  interrupted: 'interrupted',
  cut_off: 'cut off',
}

async function list({ state, json }: JsonFlag & { state?: DeletionState }, command: Command): Promise<void> {
  await withDeletions(command, async (deletions, signal) => {
    const all = (await deletions.list(signal)).filter((each) => state === undefined || each.state === state)
    if (all.length === 0 && state !== undefined && !json) return print('no deletion request is in this state')
    if (json) return all.forEach((each) => printJson(summaryOf(each)))
    if (all.length === 0)
      return print('no deletion requests; `postrider delete-user --help` shows how to make one')
    printTable(
      ['ID', 'REQUESTED', 'USERS', 'STATE', 'SOURCES'],
      all.map(({ requestId, at, users, state, sources }) => [
        requestId,
        new Date(at).toISOString(),
        users,
        words[state],
        sources.join(', '),
      ]),
    )
  })
}

async function show(id: string, { json }: JsonFlag, command: Command): Promise<void> {
  await withDeletions(command, async (deletions, signal) => {
    const status = await deletions.show(id, signal)
    if (json) return printJson(statusOf(status))
    printStatus(status)
  })
}

function printStatus({ requestId, at, users, state, progress }: DeletionStatus): void {
  print(`deletion   ${printable(requestId)}`)
  print(`requested  ${new Date(at).toISOString()}`)
  print(`users      ${users}`)
  print(`state      ${words[state]}${hints[state](requestId)}`)
  print('')
  const columns: (keyof DeleteCounts)[] = ['delivered', 'failed', 'skipped', 'waiting']
  if (progress.some(({ unknown }) => unknown > 0)) columns.push('unknown')
  const countsOf = (counts: DeleteCounts) => columns.map((column) => counts[column])
  printTable(
    ['SOURCE', 'DESTINATION', 'REQUESTED', ...columns.map((column) => column.toUpperCase())],
    progress.flatMap(({ sourceId, requested, destinations, ...whole }) => [
      [sourceId, requested === 0 ? 'no destination' : 'all', requested, ...countsOf(whole)],
      ...destinations.map(({ destinationId, ...counts }) => [
        sourceId,
        destinationId,
        requested,
        ...countsOf(counts),
      ]),
    ]),
  )
}

const hints: Record<DeletionState, (id: string) => string> = {
  finished: () => '',
  interrupted: (id) => `: delete calls are missing; \`postrider deletions resume ${id}\` writes them`,
  cut_off: () => ': it ended before all of its users were erased; give all of them again',
}

async function resume(id: string | undefined, { json }: JsonFlag, command: Command): Promise<void> {
  await withDeletions(command, async (deletions, signal) => {
    const reports = await withProgress((bar) =>
      deletions.resume(id ?? null, { onProgress: deletionProgress(bar), signal }),
    )
    if (json) return reports.forEach((report) => printJson(resumedOf(report)))
    if (reports.length === 0) return print('nothing is to be resumed')
    for (const { requestId, deleteCalls, missing } of reports)
      print(
        `deletion ${printable(requestId)}: ${count(deleteCalls, 'delete call')} written` +
          (missing > 0 ? '; some of its users were never erased: give all of them again' : ''),
      )
  })
}
