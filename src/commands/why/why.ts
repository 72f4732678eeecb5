import { Command } from 'commander'
import { jsonOf } from '../../console/messages/describe.ts'
import { lifeOfMessage } from '../../console/messages/why.ts'
import { runAction } from '../context.ts'
import type { JsonFlag } from '../flags.ts'
import { inSession } from '../operations/session.ts'
import { print, printJson } from '../output.ts'
import { withProgress } from '../progress-bar.ts'
import { pageOf } from './describe.ts'

export function whyCommand(): Command {
  return new Command('why')
    .argument('<messageId>', 'of the call')
    .description(
      'Shows the life of one call in order: how it was received, to which destinations it was planned and why not to ' +
        'others, each attempt, each retry with its tier and due time, and what became of each delivery. Of ' +
        'deliveries that succeeded at once the ledger holds no more than tallies, unless LEDGER=all is set: then ' +
        'the time is that of the tally. An index of the topics is kept under STORE_PATH; the first use builds it. ' +
        'Exits with 1 if nothing is known of the message.',
    )
    .option('--json', 'as JSON, in the form of the admin API')
    .action(runAction(run))
}

async function run(messageId: string, { json }: JsonFlag, command: Command): Promise<void> {
  await inSession(command, async ({ services, signal }) => {
    const messages = await services.messages()
    const life = await withProgress((bar) =>
      lifeOfMessage(messageId, messages, {
        signal,
        progress(done, total) {
          if (total >= minRecords)
            bar.show('indexing {bar} {value}/{total} records, {eta_formatted} left', done, total)
        },
      }),
    )
    if (json) printJson(jsonOf(life))
    else print(pageOf(life))
  })
}

/** Short reading is not worth a bar. */
const minRecords = 20_000
