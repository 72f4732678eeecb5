import { Command } from 'commander'
import { jsonOf, summaryOf } from '../../console/dead-letters/describe.ts'
import type { DeadLetterStore, StoredDeadLetter } from '../../console/dead-letters/dead-letter-store.ts'
import { groupDeadLetters, groupJson } from '../../console/dead-letters/groups.ts'
import { deadLetterFilter, type DeadLetterTerms } from '../../core/delivery/dead-letter-filter.ts'
import type { ReplayRange } from '../../core/replay/replay-job.ts'
import { loadContext, runAction, stopSignal } from '../context.ts'
import { openErasures } from '../deployment.ts'
import { groupHeadings, groupRowOf, headings, pageOf, rowOf } from './describe.ts'
import { addFilterOptions, readTerms, type FilterOptions } from './filter.ts'
import { openDeadLetters } from './open-dead-letters.ts'
import { print, printJson, printTable } from '../output.ts'
import { ProgressBar } from '../progress-bar.ts'
import { addJobOptions, jobText, performReplay, readRate, type JobFlags } from '../replays/perform-replay.ts'
import { withOpen } from '../with-open.ts'
import { flagError, usageError } from '../flags.ts'

export function deadLettersCommand(): Command {
  const command = new Command('dead-letters').description(
    'What finally failed: deliveries, and records that never became one. An ID is that of a dead letter as ' +
      '`list` shows it (`<partition>-<offset>`), or a delivery’s (`<messageId>:<destinationId>`).',
  )
  addFilterOptions(command.command('list').summary('the newest dead letters'))
    .description('The newest dead letters, the newest last.')
    .option('--limit <count>', 'how many (default: 50; with --json all, in the order of their partitions)')
    .option('--json', 'one JSON object a line')
    .action(runAction(list))
  addFilterOptions(command.command('groups').summary('how many there are of each kind'))
    .description(
      'Counts the dead letters that failed alike: by reason, last status and destination, the largest group first.',
    )
    .option('--json', 'one JSON object a line')
    .action(runAction(groups))
  command
    .command('show <id>')
    .description(
      'All that is known of one: attempts, last response, body. Of a delivery: each time it failed.',
    )
    .option('--json', 'one JSON object a line')
    .action(runAction(show))
  const replay = addFilterOptions(command.command('replay [id...]').summary('send dead letters again'))
    .description(
      'Sends dead letters again, those that are there now, to all URLs that their destination has now, with a new retry ' +
        'window. Records that never became a delivery go back, as they were, to the topic they came from. Without ids ' +
        'and filters, --all is needed. A replay keeps the delivery’s id (Idempotency-Key) and its body with the ' +
        `messageId, so replaying twice sends twice what receivers can tell by these. ${jobText}`,
    )
    .option('--all', 'all that there are')
  addJobOptions(replay).action(runAction(replayThem))
  return command
}

const defaultLimit = 50

async function list(
  options: FilterOptions & { limit?: string; json?: true },
  command: Command,
): Promise<void> {
  const limit = readLimit(options.limit) ?? (options.json ? null : defaultLimit)
  const terms = readTerms(options, Date.now())
  await withDeadLetters(command, (deadLetters) =>
    printNewest(deadLetters, terms, limit, options.json ?? false),
  )
}

async function printNewest(
  deadLetters: DeadLetterStore,
  terms: DeadLetterTerms,
  limit: number | null,
  json: boolean,
): Promise<void> {
  const passes = deadLetterFilter(terms)
  const newest: StoredDeadLetter[] = []
  let count = 0
  for await (const stored of deadLetters.all({ since: terms.since })) {
    if (!passes(stored)) continue
    count++
    if (limit === null) printJson(summaryOf(stored))
    else {
      newest.push(stored)
      // Whatever the topic holds, no more than that are kept.
      if (newest.length >= 2 * limit + 1_000) keepNewest(newest, limit)
    }
  }
  if (limit === null) return
  keepNewest(newest, limit)
  if (json) newest.forEach((stored) => printJson(summaryOf(stored)))
  else if (count === 0) print('no dead letters')
  else printTable(headings, newest.map(rowOf))
  if (count > limit) console.error(`the newest ${limit} of ${count}; --limit shows more`)
}

function keepNewest(stored: StoredDeadLetter[], limit: number): void {
  stored.sort((a, b) => a.failedAt - b.failedAt || a.record.offset - b.record.offset)
  stored.splice(0, stored.length - limit)
}

async function groups(options: FilterOptions & { json?: true }, command: Command): Promise<void> {
  const terms = readTerms(options, Date.now())
  const bar = new ProgressBar()
  const signal = stopSignal()
  const format = 'counting {bar} {value}/{total} looked at, {eta_formatted} left'
  await withDeadLetters(command, async (deadLetters) => {
    const progress = (looked: number, total: number) => void (options.json || bar.show(format, looked, total))
    const found = await groupDeadLetters(deadLetters, terms, progress, signal).finally(() => bar.stop())
    if (options.json) found.groups.forEach((group) => printJson(groupJson(group)))
    else if (found.count === 0) print('no dead letters')
    else printTable(groupHeadings, found.groups.map(groupRowOf))
    if (found.others > 0) console.error(`${found.others} more are of further kinds; a filter shows them`)
  })
}

async function show(id: string, options: { json?: true }, command: Command): Promise<void> {
  await withDeadLetters(command, async (deadLetters) => {
    const found = await deadLetters.byId(id)
    if (options.json) found.forEach((stored) => printJson(jsonOf(stored)))
    else print(found.map(pageOf).join('\n\n'))
  })
}

async function replayThem(
  ids: string[],
  flags: FilterOptions & JobFlags & { all?: true },
  command: Command,
): Promise<void> {
  const range = readRange(ids, flags, Date.now())
  await performReplay(command, flags, () => Promise.resolve(range))
}

/** Throws `usage` that names the flag. */
function readRange(
  ids: readonly string[],
  { all, dryRun, rate, ...flags }: FilterOptions & JobFlags & { all?: true },
  now: number,
): ReplayRange {
  const { reason, destination, status, since, until } = flags
  const isFiltered = [reason, destination, status, since, until].some(Boolean)
  if (ids.length > 0 && isFiltered)
    throw usageError('give either ids or filters (--reason, --destination, --status, --since, --until)')
  const isChosen = ids.length > 0 || isFiltered
  if (all && isChosen) throw usageError('--all goes without ids and filters')
  if (!isChosen && !all && !dryRun)
    throw usageError(
      'give ids, filters (--reason, --destination, --status, --since, --until), or --all to send every dead letter again; --dry-run shows what would be sent',
    )
  const terms = readTerms(flags, now)
  return {
    deadLetters: {
      ids: ids.length > 0 ? [...ids] : null,
      reason: reason ?? null,
      destination: destination ?? null,
      status: status ?? null,
      kinds: null,
    },
    since: terms.since,
    until: terms.until,
    rate: readRate(rate),
  }
}

function readLimit(text: string | undefined): number | null {
  if (text === undefined) return null
  const limit = /^\d{1,7}$/.test(text) ? Number(text) : 0
  if (limit > 0) return limit
  throw flagError('--limit', text, 'a whole number from 1 to 9999999')
}

async function withDeadLetters(
  command: Command,
  use: (deadLetters: DeadLetterStore) => Promise<unknown>,
): Promise<void> {
  const context = loadContext(command)
  await withOpen(await openErasures(context), async (erasures) => {
    await erasures.start()
    await use(openDeadLetters(context, (signal) => erasures.current(signal)))
  })
}
