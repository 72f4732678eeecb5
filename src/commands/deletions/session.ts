import type { Command } from 'commander'
import type { SettingsLog } from '../../adapters/folded-log/settings-log.ts'
import type { DeletionOptions } from '../../console/deletions/deletions.ts'
import { stopSignal } from '../context.ts'
import type { ProgressBar } from '../progress-bar.ts'
import { withSettings } from '../settings/with-settings.ts'
import { withOpen } from '../with-open.ts'
import { openDeletions, type OpenDeletions } from './open-deletions.ts'

/** Runs `use` with deletion requests. Ctrl-C ends it between two steps. */
export async function withDeletions(
  command: Command,
  use: (deletions: OpenDeletions, signal: AbortSignal, settings: SettingsLog) => Promise<void>,
): Promise<void> {
  const signal = stopSignal()
  await withSettings(command, (settings, { context }) =>
    withOpen(openDeletions(context, settings), (deletions) => use(deletions, signal, settings)),
  )
}

const phases = { erasing: 'erasing', notifying: 'writing delete calls' }
/** Between two lines where there is no terminal to draw a bar on. */
const lineEveryMs = 2_000

/** On the bar, or where that is not shown a line on stderr every few seconds. */
export function deletionProgress(bar: ProgressBar): NonNullable<DeletionOptions['onProgress']> {
  let reportedAt = performance.now()
  return (phase, done, total) => {
    bar.show(`${phases[phase]}: {bar} {percentage}%  {value} of {total}, {eta_formatted} left`, done, total)
    if (bar.isShown || performance.now() - reportedAt < lineEveryMs) return
    reportedAt = performance.now()
    console.error(`${phases[phase]}: ${done} of ${total}`)
  }
}
