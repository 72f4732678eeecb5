import type { Command } from 'commander'
import { fetchRange } from '../../adapters/kafka/read/topic-offsets.ts'
import type { Statistics } from '../../operators/statistics/follower.ts'
import type { WhenHeld } from '../../adapters/folded-log/settings-log.ts'
import { PostriderError } from '../../errors.ts'
import { loadContext, stopSignal, type Context } from '../context.ts'
import { withProgress } from '../progress-bar.ts'
import { openServices, type OpenServices } from '../services.ts'
import { commandActor } from '../../operators/settings/actor.ts'

/** The settings are read from their beginning. */
const startMs = 15_000
/** A reader of a command closes soon. */
const maxWaitMs = 50
/** Short reading is not worth a bar. */
const minRecords = 20_000

export interface CommandSession extends OpenServices {
  context: Context
  /** Aborts on Ctrl-C. */
  signal: AbortSignal
}

/**
 * Runs `use` with what operations work with, and closes it whatever comes of it. The settings are read to their end
 * first, unless they are to be left `unread`. Throws `usage` for wrong settings of the command.
 */
export async function inSession<T>(
  command: Command,
  use: (session: CommandSession) => Promise<T>,
  whenHeld: WhenHeld | 'unread' = 'fail',
): Promise<T> {
  const context = loadContext(command)
  const signal = stopSignal()
  // A part waits for brokers for ever; a user at a terminal wants an error.
  if (whenHeld !== 'unread') await fetchRange(context.kafka, context.topics.settings)
  const open = openServices(context, {
    actor: commandActor,
    maxWaitMs,
    signal,
    readStatistics: (statistics) => countToEnd(statistics, signal),
  })
  try {
    if (whenHeld !== 'unread')
      await open.settings.start(AbortSignal.any([signal, AbortSignal.timeout(startMs)]), whenHeld)
    return await use({ ...open, context, signal })
  } catch (error) {
    if (!signal.aborted) throw error
    throw new PostriderError('local', 'stopped before its end; what was done or read stays so', {
      cause: error,
    })
  } finally {
    await open.close()
  }
}

const countToEnd = (statistics: Statistics, signal: AbortSignal): Promise<void> =>
  withProgress((bar) =>
    statistics.catchUp({
      signal,
      progress(done, total) {
        if (total >= minRecords && done % 1_000 === 0)
          bar.show('counting {bar} {value}/{total} records, {eta_formatted} left', done, total)
      },
    }),
  )
