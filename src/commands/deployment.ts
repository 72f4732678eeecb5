import type { LookupFunction } from 'node:net'
import { ErasureLog } from '../adapters/folded-log/erasure-log.ts'
import { SettingsLog } from '../adapters/folded-log/settings-log.ts'
import { fetchRange } from '../adapters/kafka/read/topic-offsets.ts'
import type { LogCounts } from '../adapters/metrics/log-counts.ts'
import { createCodecs, type Codecs } from '../adapters/schema-registry/codecs.ts'
import { createWebhookTransport } from '../adapters/webhook/transport.ts'
import type { Config } from '../config/config.ts'
import { topicNames, type TopicNames } from '../core/topics.ts'
import type { Context } from './context.ts'

/** A deployment as a process works with it. */
export interface Deployment extends Context {
  topics: TopicNames
  codecs: Codecs
}

/** Asks Kafka and the registry for nothing yet. */
export function deploymentOf({ config, kafka, log }: Context): Deployment {
  const topics = topicNames(config.topicPrefix)
  return { config, kafka, log, topics, codecs: createCodecs({ registry: config.registry, topics, log }) }
}

interface LogOptions {
  logCounts?: LogCounts | undefined
  /** Like the topic reader's. */
  maxWaitMs?: number
}

const logOf = ({ config, kafka, log }: Deployment, { logCounts, maxWaitMs }: LogOptions) => ({
  kafka,
  groupId: config.groupId,
  log,
  ...(logCounts && { counts: logCounts }),
  ...(maxWaitMs !== undefined && { maxWaitMs }),
})

/** The settings; started and closed by the caller. */
export const settingsOf = (deployment: Deployment, options: LogOptions): SettingsLog =>
  new SettingsLog({
    ...logOf(deployment, options),
    topic: deployment.topics.settings,
    codec: deployment.codecs.settings,
  })

/** The erased users; started and closed by the caller. */
export const erasuresOf = (deployment: Deployment, options: LogOptions): ErasureLog =>
  new ErasureLog({
    ...logOf(deployment, options),
    topic: deployment.topics.erasures,
    codec: deployment.codecs.erasures,
  })

/** A command at a terminal closes soon. */
const atTerminal: LogOptions = { maxWaitMs: 50 }

/** As `settingsOf`, for a command at a terminal. */
export const openSettings = (context: Context): SettingsLog => settingsOf(deploymentOf(context), atTerminal)

/** As `erasuresOf`, for a command at a terminal. Rejects when there is no Kafka. */
export async function openErasures(context: Context): Promise<ErasureLog> {
  const deployment = deploymentOf(context)
  // A part waits for brokers for ever; a user at a terminal wants an error.
  await fetchRange(context.kafka, deployment.topics.erasures)
  return erasuresOf(deployment, atTerminal)
}

/** Sends webhooks as the settings allow it. `lookup` resolves their host names; default the system's. */
export const transportOf = (config: Config, lookup?: LookupFunction) =>
  createWebhookTransport({
    timeoutMs: config.webhookTimeoutMs,
    allowedNetworks: config.allowedNetworks,
    ca: config.webhookCa,
    ...(lookup && { lookup }),
  })
