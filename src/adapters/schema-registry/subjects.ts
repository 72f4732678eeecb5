import type { Config } from '../../config/config.ts'
import { standingTiers, topicNames } from '../../core/topics.ts'
import type { Registry } from './registry.ts'
import { recordSchema, type RecordName } from './schemas.ts'

/** TopicNameStrategy: what a topic's values are registered under. */
export const subjectOf = (topic: string): string => `${topic}-value`

/** Which record lies in which of the deployment's topics. */
export function recordTopics(
  config: Pick<Config, 'topicPrefix' | 'retryTiers'>,
): [topic: string, record: RecordName][] {
  const topics = topicNames(config.topicPrefix)
  return [
    [topics.calls, 'analyticsCall'],
    ...[...config.retryTiers, ...standingTiers].map(({ name }): [string, RecordName] => [
      topics.retry(name),
      'retryDelivery',
    ]),
    [topics.deadLetters, 'deadLetter'],
    [topics.deliveries, 'deliveryEvent'],
    [topics.settings, 'settingsEvent'],
    [topics.memberships, 'membership'],
    [topics.erasures, 'erasure'],
    [topics.suppressions, 'suppression'],
  ]
}

export interface SubjectReport {
  subject: string
  id: number
  /** `registered` now, or `present` already. */
  result: 'registered' | 'present'
}

/**
 * Registers each topic's schema that is not registered yet. Idempotent. Throws PostriderError 'setup' for a
 * subject that cannot take it, 'registry_unavailable'.
 */
export async function registerSchemas(
  registry: Registry,
  config: Pick<Config, 'topicPrefix' | 'retryTiers'>,
): Promise<SubjectReport[]> {
  const reports: SubjectReport[] = []
  for (const [topic, name] of recordTopics(config)) {
    const subject = subjectOf(topic)
    const schema = recordSchema(name)
    const present = await registry.idOf(subject, schema)
    reports.push(
      present === null
        ? { subject, id: await registry.register(subject, schema), result: 'registered' }
        : { subject, id: present, result: 'present' },
    )
  }
  return reports
}

/** The deployment's subjects, with the id of our schema; null where it is not registered. Throws `registry_unavailable`. */
export function registeredSubjects(
  registry: Registry,
  config: Pick<Config, 'topicPrefix' | 'retryTiers'>,
): Promise<{ subject: string; schemaId: number | null }[]> {
  return Promise.all(
    recordTopics(config).map(async ([topic, name]) => {
      const subject = subjectOf(topic)
      return { subject, schemaId: await registry.idOf(subject, recordSchema(name)) }
    }),
  )
}
