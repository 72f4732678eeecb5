import type { TopicNames } from './topics.ts'

/**
 * What may be done with a topic or group, by Kafka's own names. READ, WRITE, DELETE and CREATE of a resource include
 * DESCRIBE, but for CREATE.
 */
export type KafkaOperation =
  'READ' | 'WRITE' | 'CREATE' | 'DELETE' | 'DESCRIBE' | 'DESCRIBE_CONFIGS' | 'ALTER_CONFIGS'

/** One thing that a user must be allowed to do. */
export interface Permission {
  operation: KafkaOperation
  resource: 'topic' | 'group'
  name: string
  /** All resources whose names begin with `name`. */
  isPrefix: boolean
}

export const securedParts = ['setup', 'collector', 'forwarder', 'console'] as const
export type SecuredPart = (typeof securedParts)[number]

/** What of a deployment's settings gives its topics and groups their names. */
export interface DeploymentNames {
  topics: TopicNames
  /** In the topics' names. */
  tiers: readonly string[]
  groupId: string
  /** `setup --fix` changes settings of topics as well. */
  isFixing?: boolean
}

/**
 * Everything that a part asks brokers for, and nothing else. `console` covers all commands that do one thing and end,
 * too. test/pipeline/security/secured.test.ts compares it with what a broker was asked.
 */
export function partPermissions(part: SecuredPart, names: DeploymentNames): Permission[] {
  const { topics, groupId } = names
  const tiers = names.tiers.map((tier) => topics.retry(tier))
  const { calls, deadLetters, deliveries, settings, memberships, erasures } = topics
  switch (part) {
    case 'setup':
      return permissionsOn(
        'topic',
        [calls, ...tiers, deadLetters, deliveries, settings, memberships, erasures],
        ['CREATE', 'DESCRIBE', 'DESCRIBE_CONFIGS', ...(names.isFixing ? (['ALTER_CONFIGS'] as const) : [])],
      )
    case 'collector':
      return [
        ...permissionsOn('topic', [calls], ['READ', 'WRITE', 'DESCRIBE_CONFIGS']),
        ...permissionsOn('topic', [settings], ['READ', 'DESCRIBE_CONFIGS']),
        ...permissionsOn('group', [`${groupId}.recent.`, `${groupId}.settings.`], ['READ', 'DELETE'], true),
      ]
    case 'forwarder':
      return [
        ...permissionsOn('topic', [calls, erasures], ['READ', 'DESCRIBE_CONFIGS']),
        // An endpoint that answers 410 is noted in the settings.
        ...permissionsOn('topic', [...tiers, settings], ['READ', 'WRITE', 'DESCRIBE_CONFIGS']),
        ...permissionsOn('topic', [deadLetters, deliveries], ['WRITE', 'DESCRIBE_CONFIGS']),
        ...permissionsOn('group', [groupId, `${groupId}.retries`], ['READ']),
        ...permissionsOn('group', [`${groupId}.erasures.`, `${groupId}.settings.`], ['READ', 'DELETE'], true),
      ]
    case 'console':
      return [
        // A dead letter that never became a delivery is replayed to the topic it came from, be it a tier.
        ...permissionsOn(
          'topic',
          [calls, ...tiers, settings, memberships, erasures],
          ['READ', 'WRITE', 'DESCRIBE_CONFIGS'],
        ),
        ...permissionsOn('topic', [deadLetters, deliveries], ['READ', 'DESCRIBE_CONFIGS']),
        // What the forwarders have committed.
        ...permissionsOn('group', [groupId, `${groupId}.retries`], ['DESCRIBE']),
        ...permissionsOn(
          'group',
          ['audit', 'dead-letters', 'deletions', 'erasures', 'memberships', 'settings', 'why'].map(
            (reader) => `${groupId}.${reader}.`,
          ),
          ['READ', 'DELETE'],
          true,
        ),
        // Leases: one process at a time works on a request or an audience.
        ...permissionsOn('group', [`${groupId}.deletion.`, `${groupId}.sync.`], ['READ'], true),
      ]
  }
}

export const permissionsOn = (
  resource: Permission['resource'],
  names: readonly string[],
  operations: readonly KafkaOperation[],
  isPrefix = false,
): Permission[] =>
  names.flatMap((name) => operations.map((operation) => ({ operation, resource, name, isPrefix })))
