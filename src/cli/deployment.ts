import type { SettingsHistorySource } from '../adapters/folded-log/settings-history.ts'
import { SettingsLog } from '../adapters/folded-log/settings-log.ts'
import { ErasureLog, SuppressionLog } from '../adapters/folded-log/user-logs.ts'
import type { OpenTransactions } from '../adapters/kafka/open-transactions.ts'
import type { LogCounts } from '../adapters/metrics/log-counts.ts'
import { AddressGuard } from '../adapters/webhook/address-guard.ts'
import { commandActor } from '../operators/settings/actor.ts'
import type { Context } from './context.ts'

export interface LogOptions {
  logCounts?: LogCounts | undefined
  /** Like the topic reader's. */
  maxWaitMs?: number
  /** Learns of a transaction that holds the log. */
  transactions?: OpenTransactions
}

interface SettingsOptions extends LogOptions {
  /** Who does what is done now. Only for those that change settings. */
  actor?: (() => string) | undefined
}

const logOf = ({ config, kafka, log }: Context, { logCounts, maxWaitMs, transactions }: LogOptions) => ({
  kafka,
  groupId: config.groupId,
  log,
  ...(logCounts && { counts: logCounts }),
  ...(transactions && { transactions }),
  ...(maxWaitMs !== undefined && { maxWaitMs }),
})

/** The settings; started and closed by the caller. */
export const settingsOf = (deployment: Context, options: SettingsOptions): SettingsLog => {
  const { config, topics, codecs } = deployment
  return new SettingsLog({
    ...logOf(deployment, options),
    actor: options.actor,
    topic: topics.settings,
    codec: codecs.settings,
    rules: {
      hostRefusal: new AddressGuard(config.allowedNetworks).hostRefusal,
      retryPolicy: { tiers: config.retryTiers, windowMs: config.retryWindowMs },
    },
  })
}

/** The settings' log as it is read from its beginning. */
export const settingsHistoryOf = ({ kafka, topics, log, codecs }: Context): SettingsHistorySource => ({
  kafka,
  topic: topics.settings,
  log,
  codec: codecs.settings,
})

/** The erased users; started and closed by the caller. */
export const erasuresOf = (deployment: Context, options: LogOptions): ErasureLog =>
  new ErasureLog({
    ...logOf(deployment, options),
    topic: deployment.topics.erasures,
    codec: deployment.codecs.erasures,
  })

/** The suppressed users; started and closed by the caller. */
export const suppressionsOf = (deployment: Context, options: LogOptions): SuppressionLog =>
  new SuppressionLog({ ...logOf(deployment, options), topic: deployment.topics.suppressions })

/** As `settingsOf`, for a command at a terminal, which closes soon. */
export const openSettings = (deployment: Context): SettingsLog =>
  settingsOf(deployment, { maxWaitMs: 50, actor: commandActor })
