import { Command } from 'commander'
import { resumedOf } from '../../console/deletions/deletions.ts'
import { runAction } from '../context.ts'
import type { JsonFlag } from '../flags.ts'
import { shownOn } from '../operations/operation-command.ts'
import { inSession } from '../operations/session.ts'
import { count, print, printable, printJson } from '../output.ts'
import { withProgress } from '../progress-bar.ts'

/** One request, or every one that was interrupted. */
export const resumeCommand = (): Command =>
  new Command('resume')
    .argument('[id]', 'of a request; all that were interrupted unless given')
    .summary('Finish what was interrupted')
    .description(
      'Writes the delete calls of a request that was interrupted, or of every one. Those that were written before ' +
        'keep their messageId, by which receivers know them.',
    )
    .option('--json', 'one JSON object a line')
    .action(runAction(resume))

async function resume(id: string | undefined, { json }: JsonFlag, command: Command): Promise<void> {
  await inSession(command, async ({ deletions, signal }) => {
    const reports = await withProgress((bar) => {
      const shown = shownOn(bar)
      const onProgress = (phase: string, done: number, total: number) => shown({ phase, done, total })
      return deletions.resume(id ?? null, { signal, onProgress })
    })
    if (json) return reports.forEach((report) => printJson(resumedOf(report)))
    if (reports.length === 0) return print('nothing is to be resumed')
    for (const { requestId, deleteCalls, missing } of reports)
      print(
        `deletion ${printable(requestId)}: ${count(deleteCalls, 'delete call')} written` +
          (missing > 0 ? '; some of its users were never erased: give all of them again' : ''),
      )
  })
}
