import type { Command } from 'commander'
import { fetchRange } from '../../adapters/kafka/read/topic-offsets.ts'
import { createCodecs } from '../../adapters/schema-registry/codecs.ts'
import { createSecrets, type Secrets } from '../../adapters/secrets.ts'
import { SettingsLog, type WhenHeld } from '../../adapters/folded-log/settings-log.ts'
import { topicNames } from '../../core/topics.ts'
import { loadContext, type Context } from '../context.ts'

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
  const { config, log } = context
  return {
    context,
    secrets: createSecrets(config.secretsKeys),
    async run(use, whenHeld = 'fail') {
      const topics = topicNames(config.topicPrefix)
      const kafka = context.kafka()
      // A part waits for brokers for ever; a user at a terminal wants an error.
      await fetchRange(kafka, topics.settings)
      const settings = new SettingsLog({
        kafka,
        topic: topics.settings,
        groupId: config.groupId,
        codec: createCodecs({ registry: config.registry, topics, log }).settings,
        log,
        maxWaitMs: 50,
      })
      try {
        await settings.start(AbortSignal.timeout(startMs), whenHeld)
        await use(settings)
      } finally {
        await settings.close()
      }
    },
  }
}
