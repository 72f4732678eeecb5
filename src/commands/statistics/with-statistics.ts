import type { StatisticsStore } from '../../console/statistics/statistics-store.ts'
import type { Statistics } from '../../adapters/store/statistics/statistics-follower.ts'
import type { Context } from '../context.ts'
import { stopSignal } from '../context.ts'
import { withProgress } from '../progress-bar.ts'
import { PostriderError } from '../../errors.ts'
import { openStatistics } from './open-statistics.ts'

/** Short reading is not worth a bar. */
const minRecords = 20_000

/** Uses the statistics once they hold what the ledger holds now, and closes them whatever comes of it. */
export async function withStatistics<T>(
  context: Context,
  use: (store: StatisticsStore, statistics: Statistics) => Promise<T> | T,
): Promise<T> {
  const statistics = await openStatistics(context)
  const signal = stopSignal()
  try {
    await withProgress((bar) =>
      statistics.catchUp({
        signal,
        progress: (done, total) => {
          if (total >= minRecords && done % 1_000 === 0)
            bar.show('counting {bar} {value}/{total} records, {eta_formatted} left', done, total)
        },
      }),
    )
    return await use(statistics.database, statistics)
  } catch (error) {
    if (!signal.aborted) throw error
    const line = 'stopped; what was counted stays, and the next use goes on from there'
    throw new PostriderError('local', line, { cause: error })
  } finally {
    await statistics.close()
  }
}
