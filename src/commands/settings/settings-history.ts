import type { Command } from 'commander'
import { readChanges } from '../../adapters/folded-log/settings-history.ts'
import { fetchRange } from '../../adapters/kafka/read/topic-offsets.ts'
import { settingsHistory, type HistoryEntry } from '../../console/history/history.ts'
import { loadContext, runAction } from '../context.ts'
import { settingsHistoryOf } from '../deployment.ts'
import { flagError, readPeriod, type JsonFlag } from '../flags.ts'
import { print, printable, printJson } from '../output.ts'
import { changeLines } from './change-lines.ts'

interface HistoryFlags extends JsonFlag {
  source?: string
  destination?: string
  since?: string
  limit: string
}

export function addHistoryCommand(settings: Command): void {
  settings
    .command('history')
    .summary('who changed what, and when')
    .description(
      'Who changed what of the settings, and when, the newest first. The actor is the name of a token, ' +
        '`cli:<user>@<host>` for commands, or `<part>:<host>`. Secrets are shown by their fingerprints.',
    )
    .option('--source <id>', 'only changes of this source')
    .option('--destination <id>', 'only changes of this destination')
    .option('--since <time>', 'only since this ISO time, or a duration ago such as 2h')
    .option('--limit <number>', 'how many', '50')
    .option('--json', 'one JSON object a line')
    .action(runAction(history))
}

async function history(flags: HistoryFlags, command: Command): Promise<void> {
  const { source, destination, limit: text, json } = flags
  const limit = /^\d{1,6}$/.test(text) ? Number(text) : 0
  if (limit === 0) throw flagError('--limit', text, 'a whole number from 1 to 999999')
  const { since } = readPeriod(flags, Date.now())
  const deployment = loadContext(command)
  // A reader waits for brokers for ever; a user at a terminal wants an error.
  await fetchRange(deployment.kafka, deployment.topics.settings)
  const { data } = await settingsHistory(
    { source, destination, since, before: null, limit, role: 'admin' },
    (each, signal) => readChanges(settingsHistoryOf(deployment), each, signal),
  )
  if (json) data.forEach(printJson)
  else if (data.length === 0) print('no such change')
  else for (const entry of data) for (const line of linesOf(entry)) print(line)
}

const linesOf = ({ at, actor, type, changed }: HistoryEntry): string[] => [
  `${at}  ${printable(actor ?? 'not known')}  ${type}`,
  ...changed.flatMap(changeLines).map((line) => `  ${line}`),
]
