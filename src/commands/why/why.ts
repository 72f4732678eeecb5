import { Command } from 'commander'
import { jsonOf } from '../../console/messages/describe.ts'
import { lifeOfMessage, type MessageLife } from '../../console/messages/why.ts'
import { PostriderError } from '../../errors.ts'
import { loadContext, runAction, stopSignal } from '../context.ts'
import { openErasures } from '../deployment.ts'
import { print, printJson } from '../output.ts'
import { withProgress } from '../progress-bar.ts'
import { withOpen } from '../with-open.ts'
import { pageOf } from './describe.ts'
import { openMessages, type OpenMessages } from './open-messages.ts'

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

async function run(messageId: string, options: { json?: true }, command: Command): Promise<void> {
  const life = await lookUp(messageId, command)
  if (options.json) printJson(jsonOf(life))
  else print(pageOf(life))
}

/** Short reading is not worth a bar. */
const minRecords = 20_000

async function lookUp(messageId: string, command: Command): Promise<MessageLife> {
  const context = loadContext(command)
  const signal = stopSignal()
  const lifeShown = (messages: OpenMessages) =>
    withProgress((bar) =>
      lifeOfMessage(messageId, messages, {
        signal,
        progress: (done, total) => {
          if (total >= minRecords)
            bar.show('indexing {bar} {value}/{total} records, {eta_formatted} left', done, total)
        },
      }),
    )
  try {
    return await withOpen(await openErasures(context), async (erasures) =>
      withOpen(
        await openMessages(context, (stop) => erasures.current(stop)),
        async (messages) => (await Promise.all([lifeShown(messages), erasures.start(signal)]))[0],
      ),
    )
  } catch (error) {
    if (!signal.aborted) throw error
    const line = 'stopped; what the index of messages holds stays, and the next use goes on from there'
    throw new PostriderError('local', line, { cause: error })
  }
}
