import { Command } from 'commander'
import { attemptOutcomes, attemptView } from '../../console/statistics/attempts.ts'
import type { AttemptFilter, AttemptPlace, ListedAttempt } from '../../console/statistics/statistics-store.ts'
import { messageIdsOf } from '../../console/statistics/user-messages.ts'
import { loadContext, runAction, stopSignal, type Context } from '../context.ts'
import { openErasures } from '../deployment.ts'
import { flagError, readPeriod, usageError } from '../flags.ts'
import { print, printJson } from '../output.ts'
import { openMessages } from '../why/open-messages.ts'
import { withOpen } from '../with-open.ts'
import { attemptsTable } from './describe.ts'
import { withStatistics } from './with-statistics.ts'

interface AttemptsOptions {
  destination?: string
  url?: string
  outcome?: string
  status?: string
  user?: string
  since?: string
  until?: string
  limit?: string
  json?: true
}

const defaultLimit = 50

export function attemptsCommand(): Command {
  return new Command('attempts')
    .description(
      'Requests to URLs that failed, the newest last; with LEDGER=all those that succeeded, too. Of the last 9 days.',
    )
    .option('--destination <id>', 'to one destination')
    .option('--url <id>', 'to one of its URLs, such as u1')
    .option('--outcome <outcome>', attemptOutcomes.join(', '))
    .option('--status <code>', 'with this HTTP status')
    .option('--user <id>', 'of this user’s newest 200 calls')
    .option('--since <time>', 'since then: an ISO time (UTC), or a duration ago (2h)')
    .option('--until <time>', 'before then: an ISO time (UTC), or a duration ago (30m)')
    .option('--limit <count>', `how many (default: ${defaultLimit})`)
    .option('--json', 'one JSON object a line')
    .action(runAction(run))
}

async function run(options: AttemptsOptions, command: Command): Promise<void> {
  const { user } = options
  const filter = filterOf(options)
  const limit = numberOf('--limit', options.limit ?? String(defaultLimit), 1, 1_000_000)
  const context = loadContext(command)
  const messageIds = user === undefined ? null : await messagesOf(context, user, filter)
  await withStatistics(context, (store) => {
    const found: ListedAttempt[] = []
    let after: AttemptPlace | null = null
    do {
      const page = store.attempts({ ...filter, messageIds }, after, limit - found.length)
      found.push(...page.attempts)
      after = page.next
    } while (after !== null && found.length < limit)
    const attempts = found.reverse().map(attemptView)
    if (options.json) for (const attempt of attempts) printJson(attempt)
    else print(attempts.length === 0 ? 'no attempt is listed that is asked for' : attemptsTable(attempts))
  })
}

/** Names everything that is wrong. */
function filterOf(options: AttemptsOptions): AttemptFilter {
  const { destination, url, outcome, status } = options
  const period = readPeriod(options, Date.now())
  if (outcome !== undefined && !attemptOutcomes.some((kind) => kind === outcome))
    throw flagError('--outcome', outcome, `one of ${attemptOutcomes.join(', ')}`)
  if (url !== undefined && destination === undefined)
    throw usageError('--url goes with --destination: ids of URLs are those of one destination')
  return {
    destinationId: destination ?? null,
    urlId: url ?? null,
    outcome: outcome ?? null,
    status: status === undefined ? null : numberOf('--status', status, 100, 599),
    ...period,
    messageIds: null,
  }
}

function numberOf(flag: string, text: string, min: number, max: number): number {
  const number = Number(text)
  if (/^\d{1,9}$/.test(text) && number >= min && number <= max) return number
  throw flagError(flag, text, `a number from ${min} to ${max}`)
}

async function messagesOf(
  context: Context,
  user: string,
  { until }: AttemptFilter,
): Promise<ReadonlySet<string>> {
  const signal = stopSignal()
  return withOpen(await openErasures(context), async (erasures) =>
    withOpen(await openMessages(context, (stop) => erasures.current(stop)), async (messages) => {
      const looking = messageIdsOf(user, { since: null, until }, messages, { signal })
      return (await Promise.all([looking, erasures.start(signal)]))[0]
    }),
  )
}
