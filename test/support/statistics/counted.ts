// The statistics of a deployment, as a test reads them.
import { Statistics } from '../../../src/operators/statistics/follower.ts'
import type { RollupCounts } from '../../../src/core/statistics/rollup.ts'
import { destinationFiguresOf } from '../../../src/core/statistics/views.ts'
import { countFields } from '../../../src/core/ledger/result-codes.ts'
import type { Deployment } from '../deployment/deployment.ts'
import type { LedgerSums } from '../audit.ts'
import { silentLog } from '../silent-log.ts'

/** All that was ever counted, minutes or hours. */
export const ever = (span: 'minute' | 'hour') => ({ span, from: 0, to: Number.MAX_SAFE_INTEGER })

export const statisticsOf = ({ kafka, topics, config, codecs }: Deployment, folder: string) =>
  Statistics.open({ kafka, topics, groupId: config.groupId, folder, codecs, log: silentLog })

/** What a file holds after it was brought up to the ledger's end. */
export async function countedIn(deployment: Deployment, folder: string): Promise<LedgerSums> {
  const statistics = await statisticsOf(deployment, folder)
  try {
    await statistics.catchUp({ signal: AbortSignal.timeout(60_000) })
    return sumsOf(statistics.database.sums('destination', ever('hour')))
  } finally {
    await statistics.close()
  }
}

/** In the form of `ledgerSums`. */
export function sumsOf(counted: ReadonlyMap<string, RollupCounts>): LedgerSums {
  const sums: LedgerSums = {}
  for (const [id, counts] of counted) {
    const figures = destinationFiguresOf(counts)
    sums[id === '' ? 'none' : id] = {
      counts: Object.fromEntries(
        countFields.filter((field) => figures[field] > 0).map((field) => [field, figures[field]]),
      ),
      skipped: figures.skipReasons,
      dead: figures.deadLetterReasons,
      attempts: Object.fromEntries(figures.urls.map(({ urlId, outcomes }) => [urlId, outcomes])),
      durations: Object.fromEntries(figures.urls.map(({ urlId, durations }) => [urlId, durations])),
    }
  }
  return sums
}
