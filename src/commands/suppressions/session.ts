import type { Command } from 'commander'
import type { SettingsLog } from '../../adapters/folded-log/settings-log.ts'
import { stopSignal, type Context } from '../context.ts'
import { openSuppressionLog } from '../deployment.ts'
import { withSettings } from '../settings/with-settings.ts'
import { withOpen } from '../with-open.ts'
import { openSuppressions, type OpenSuppressions } from './open-suppressions.ts'

/** Joining the reader's group may take 3 s by a broker's own setting; a long list takes some seconds more. */
const startMs = 60_000

/** What works with suppressed users. */
export interface SuppressionSession {
  suppressions: OpenSuppressions
  settings: SettingsLog
  context: Context
  /** Aborts on Ctrl-C. */
  signal: AbortSignal
}

/** Runs `use` with the suppressed users. */
export async function withSuppressions(
  command: Command,
  use: (session: SuppressionSession) => Promise<void>,
): Promise<void> {
  const signal = stopSignal()
  await withSettings(command, async (settings, { context }) =>
    withOpen(await openSuppressionLog(context), async (log) => {
      await log.start(AbortSignal.any([signal, AbortSignal.timeout(startMs)]))
      const known = (stop?: AbortSignal) => log.current(stop)
      await withOpen(openSuppressions(context, settings, known), (suppressions) =>
        use({ suppressions, settings, context, signal }),
      )
    }),
  )
}
