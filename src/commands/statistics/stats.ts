import { Command } from 'commander'
import { destinationKind } from '../../console/destinations.ts'
import { settingIn } from '../../console/setting-kind.ts'
import { sourceKind } from '../../console/sources.ts'
import { destinationStats, sourceStats, totalStats } from '../../console/statistics/series.ts'
import type { StatisticsStore } from '../../console/statistics/statistics-store.ts'
import { pointsOf, type Points } from '../../core/statistics/period.ts'
import { destinationFiguresOf, sourceFiguresOf } from '../../core/statistics/views.ts'
import { loadContext, runAction, type Context } from '../context.ts'
import { openSettings } from '../deployment.ts'
import { usageError } from '../flags.ts'
import { print, printJson, table } from '../output.ts'
import { withOpen } from '../with-open.ts'
import { deliveriesTable, destinationPage, sourcePage, totalPage } from './describe.ts'
import { withStatistics } from './with-statistics.ts'

interface StatsOptions {
  destination?: string
  source?: string
  total?: true
  window?: string
  step?: string
  until?: string
  json?: true
}

/** Rows that are well read on a screen. */
const fewRows = 24

export function statsCommand(): Command {
  return new Command('stats')
    .description(
      'What became of deliveries, how URLs answer, and what collectors took, over time: of all destinations and ' +
        'sources, or of one. Counted is what was committed. The numbers are kept under STORE_PATH; the first use ' +
        'reads the whole ledger. Minutes are kept for 7 days, hours for 90.',
    )
    .option('--destination <id>', 'of one destination')
    .option('--source <id>', 'of one source')
    .option('--total', 'of all together, over time')
    .option('--window <duration>', 'how long, from 1m to 90d (default: 1h)')
    .option('--step <duration>', 'how long each point is: whole minutes that divide the window')
    .option('--until <time>', 'its end: an ISO time (UTC), or a duration ago (2h)')
    .option('--json', 'as JSON, in the form of the admin API')
    .action(runAction(run))
}

async function run(options: StatsOptions, command: Command): Promise<void> {
  const { destination, source, total, json } = options
  if ([destination, source, total].filter((given) => given !== undefined).length > 1)
    throw usageError('--destination, --source and --total do not go together; give one of them')
  const period = periodOf(options)
  const context = loadContext(command)
  await withStatistics(context, async (store) => {
    if (destination !== undefined) {
      await expectDestination(context, store, destination)
      const stats = destinationStats(store, destination, period)
      if (json) printJson(stats)
      else print(destinationPage(stats))
    } else if (source !== undefined) {
      await expectSource(context, store, source)
      const stats = sourceStats(store, source, period)
      if (json) printJson(stats)
      else print(sourcePage(stats))
    } else if (total) {
      const stats = totalStats(store, period)
      if (json) printJson(stats)
      else print(totalPage(stats))
    } else printAll(store, period, json ?? false)
  })
}

function periodOf({ window, step, until, json }: StatsOptions): Points {
  const points = pointsOf({ window, step, until }, Date.now(), json ? undefined : fewRows)
  if (!Array.isArray(points)) return points
  throw usageError(points.map(({ field, message }) => `--${field} ${message}`).join('; '))
}

async function expectDestination(context: Context, store: StatisticsStore, id: string): Promise<void> {
  if (store.has({ kind: 'destination', id })) return
  await withOpen(openSettings(context), async (settings) => {
    await settings.start()
    settingIn(destinationKind, settings.state, id)
  })
}

async function expectSource(context: Context, store: StatisticsStore, id: string): Promise<void> {
  if (store.has({ kind: 'source', id })) return
  await withOpen(openSettings(context), async (settings) => {
    await settings.start()
    settingIn(sourceKind, settings.state, id)
  })
}

const byName = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]) => (a < b ? -1 : 1)

function printAll(store: StatisticsStore, period: Points, json: boolean): void {
  const destinations = [...store.sums('destination', period)].sort(byName)
  const sources = [...store.sums('source', period)].sort(byName)
  if (json) {
    for (const [id, counts] of destinations)
      printJson({ destinationId: id === '' ? null : id, ...destinationFiguresOf(counts) })
    for (const [id, counts] of sources) printJson({ sourceId: id, ...sourceFiguresOf(counts) })
    return
  }
  if (destinations.length + sources.length === 0) return print('the ledger holds nothing of this time')
  const parts: string[] = []
  if (destinations.length > 0)
    parts.push(
      deliveriesTable(
        'destination',
        destinations.map(([id, counts]) => [id === '' ? '(none)' : id, destinationFiguresOf(counts)]),
      ),
    )
  if (sources.length > 0)
    parts.push(
      table(
        ['source', 'accepted', 'duplicate', 'refused'],
        sources.map(([id, counts]) => {
          const { accepted, duplicate, refused } = sourceFiguresOf(counts)
          return [id, accepted, duplicate, refused]
        }),
      ),
    )
  print(parts.join('\n\n'))
}
