import type { Command } from 'commander'
import { fetchRange } from '../../adapters/kafka/read/topic-offsets.ts'
import { createCodecs } from '../../adapters/schema-registry/codecs.ts'
import { createSecrets, type Secrets } from '../../adapters/secrets.ts'
import { SettingsLog, type WhenHeld } from '../../adapters/folded-log/settings-log.ts'
import { topicNames } from '../../core/topics.ts'
import { loadContext, type Context } from '../context.ts'
import { withOpen } from '../with-open.ts'

/** Joining the reader's group may take 3 s by a broker's own setting (group.initial.rebalance.delay.ms). */
const startMs = 15_000

export interface SettingsSession {
  context: Context
  secrets: Secrets
  /** Folds the settings, lets `use` look at or change them, and closes again whatever comes of it. */
  run(use: (settings: SettingsLog) => Promise<void> | void, whenHeld?: WhenHeld): Promise<void>
}

/** Throws `usage` for wrong settings; nothing is connected before `run`, so flags can be checked first. */
export function settingsSession(command: Command): SettingsSession {
  const context = loadContext(command)
  return {
    context,
    secrets: createSecrets(context.config.secretsKeys),
    async run(use, whenHeld = 'fail') {
      // A part waits for brokers for ever; a user at a terminal wants an error.
      await fetchRange(context.kafka(), topicNames(context.config.topicPrefix).settings)
      await withOpen(openSettings(context), async (settings) => {
        await settings.start(AbortSignal.timeout(startMs), whenHeld)
        await use(settings)
      })
    },
  }
}

/** The settings log, for a command at a terminal; started and closed by the caller. */
export function openSettings({ config, log, kafka }: Context): SettingsLog {
  const topics = topicNames(config.topicPrefix)
  return new SettingsLog({
    kafka: kafka(),
    topic: topics.settings,
    groupId: config.groupId,
    codec: createCodecs({ registry: config.registry, topics, log }).settings,
    log,
    maxWaitMs: 50,
  })
}
