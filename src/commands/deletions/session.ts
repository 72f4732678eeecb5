import type { Command } from 'commander'
import { stopSignal } from '../context.ts'
import { settingsSession } from '../settings/settings-session.ts'
import { openDeletions, type OpenDeletions } from './open-deletions.ts'

/** Runs `use` with deletion requests, and closes again whatever comes of it. Ctrl-C ends it between two steps. */
export async function withDeletions(
  command: Command,
  use: (deletions: OpenDeletions, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const session = settingsSession(command)
  const signal = stopSignal()
  await session.run(async (settings) => {
    const { config, log } = session.context
    const deletions = openDeletions({ config, kafka: session.context.kafka(), log, settings })
    try {
      await use(deletions, signal)
    } finally {
      await deletions.close()
    }
  })
}
