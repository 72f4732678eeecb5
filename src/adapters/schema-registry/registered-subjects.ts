import type { Config } from '../../config/config.ts'
import type { Registry } from './registry.ts'
import { recordSchema } from './schemas.ts'
import { recordTopics, subjectOf } from './subjects.ts'

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
