import type { Admin, Kafka } from 'kafkajs'
import { withAdmin } from '../adapters/kafka/admin/with-admin.ts'
import { hiddenTopics } from '../adapters/kafka/explain-kafka-error.ts'
import { requirePermissions } from '../adapters/kafka/secure/require-permissions.ts'
import { checkTopics, retryTopics } from '../adapters/kafka/admin/topics.ts'
import type { Logger } from '../adapters/log.ts'
import type { Config } from '../config/config.ts'
import {
  partPermissions,
  type DeploymentNames,
  type Permission,
  type SecuredPart,
} from '../core/permissions.ts'
import { topicNames } from '../core/topics.ts'
import { PostriderError } from '../errors.ts'

/** What gives a deployment's topics and groups their names. */
export const deploymentNames = ({ topicPrefix, groupId, retryTiers }: Config): DeploymentNames => ({
  topics: topicNames(topicPrefix),
  tiers: retryTiers.map(({ name }) => name),
  groupId,
})

/**
 * A part's start: that the brokers take it and allow all that it will need, and that its topics are as they must be.
 * Throws `setup` otherwise; settings that differ from the contract are logged. Resolves to every tier's topic that
 * exists, so that tiers taken out of the settings still drain.
 */
export async function checkStart(
  kafka: Kafka,
  config: Config,
  log: Logger,
  part: Exclude<SecuredPart, 'setup'>,
): Promise<string[]> {
  const needs = partPermissions(part, deploymentNames(config))
  const look = async (admin: Admin): Promise<string[]> => {
    await requirePermissions(kafka, needs, log)
    const warnings = await requireTopics(kafka, admin, config, topicsIn(needs))
    for (const { topic, message } of warnings) log.warn({ topic }, message)
    return (await retryTopics(admin, config.topicPrefix)).map(({ topic }) => topic)
  }
  return withAdmin(kafka, look, { needs })
}

/** Throws `setup` where one of these topics is missing, hidden or set up wrongly; resolves to what may be meant so. */
export async function requireTopics(
  kafka: Kafka,
  admin: Admin,
  config: Config,
  topics: readonly string[],
): Promise<{ topic: string; message: string }[]> {
  const problems = await checkTopics(admin, config, topics)
  const errors = problems.filter(({ severity }) => severity === 'error')
  if (errors.length === 0) return problems
  // What is hidden looks as if it were missing.
  const hidden = await hiddenTopics(
    kafka,
    errors.map(({ topic }) => topic),
  ).catch(() => null)
  throw hidden ?? new PostriderError('setup', errors.map(({ message }) => message).join('; '))
}

/** A problem, and its reason where one is known. */
export const because = (problem: string, reason: string | null): string =>
  reason === null ? problem : `${problem}: ${reason}`

const topicsIn = (needs: readonly Permission[]): string[] => [
  ...new Set(needs.filter(({ resource }) => resource === 'topic').map(({ name }) => name)),
]
