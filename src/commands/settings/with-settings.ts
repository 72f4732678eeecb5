import type { Command } from 'commander'
import type { SettingsLog, WhenHeld } from '../../adapters/folded-log/settings-log.ts'
import { fetchRange } from '../../adapters/kafka/read/topic-offsets.ts'
import { createSecrets, type Secrets } from '../../adapters/secrets.ts'
import { topicNames } from '../../core/topics.ts'
import { loadContext, type Context } from '../context.ts'
import { openSettings } from '../deployment.ts'
import { withOpen } from '../with-open.ts'

/** Joining the reader's group may take 3 s by a broker's own setting (group.initial.rebalance.delay.ms). */
const startMs = 15_000

/**
 * Folds the settings, lets `use` look at or change them, and closes again whatever comes of it. Throws `usage` for wrong
 * settings of the command.
 */
export async function withSettings(
  command: Command,
  use: (settings: SettingsLog, tools: { context: Context; secrets: Secrets }) => Promise<void> | void,
  whenHeld: WhenHeld = 'fail',
): Promise<void> {
  const context = loadContext(command)
  const secrets = createSecrets(context.config.secretsKeys)
  // A part waits for brokers for ever; a user at a terminal wants an error.
  await fetchRange(context.kafka, topicNames(context.config.topicPrefix).settings)
  await withOpen(openSettings(context), async (settings) => {
    await settings.start(AbortSignal.timeout(startMs), whenHeld)
    await use(settings, { context, secrets })
  })
}
