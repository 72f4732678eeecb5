import type { Command } from 'commander'
import type { ReplayRig } from '../../console/replays/replay-source.ts'
import { replaysOf, type Replays } from '../../console/replays/replays.ts'
import { openErasures } from '../deployment.ts'
import { withSettings } from '../settings/with-settings.ts'
import { openMessages, type OpenMessages } from '../why/open-messages.ts'
import { withOpen } from '../with-open.ts'
import { openReplays } from './open-replays.ts'

/** Runs `use` with the replays, and with what opens the index of messages. */
export async function withReplays(
  command: Command,
  use: (replays: Replays, rig: ReplayRig, openIndex: () => Promise<OpenMessages>) => Promise<void>,
): Promise<void> {
  await withSettings(command, async (settings, { context }) =>
    withOpen(await openErasures(context), async (erasures) => {
      let started: Promise<void> | null = null
      const current = async (signal: AbortSignal) => {
        await (started ??= erasures.start(signal))
        return erasures.current(signal)
      }
      const rig = openReplays(context, settings, current)
      const noSignal = new AbortController().signal
      await use(replaysOf(rig), rig, () => openMessages(context, (signal) => current(signal ?? noSignal)))
    }),
  )
}
