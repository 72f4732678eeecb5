import { replayTier, strictTier, type TopicNames } from './topics.ts'

/**
 * What may be done with a topic or group, by Kafka's own names. READ and WRITE of a resource include
 * DESCRIBE.
 */
export type KafkaOperation = 'READ' | 'WRITE' | 'CREATE' | 'DESCRIBE' | 'DESCRIBE_CONFIGS' | 'ALTER_CONFIGS'

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
  const retryTiers = [...names.tiers, strictTier.name].map((tier) => topics.retry(tier))
  const replays = topics.retry(replayTier.name)
  const tiers = [...retryTiers, replays]
  const { calls, deadLetters, deliveries, settings, memberships, erasures, suppressions } = topics
  switch (part) {
    case 'setup':
      return permissionsOn(
        'topic',
        [calls, ...tiers, deadLetters, deliveries, settings, memberships, erasures, suppressions],
        ['CREATE', 'DESCRIBE', 'DESCRIBE_CONFIGS', ...(names.isFixing ? (['ALTER_CONFIGS'] as const) : [])],
      )
    case 'collector':
      return [
        ...permissionsOn('topic', [calls], ['READ', 'WRITE', 'DESCRIBE_CONFIGS']),
        ...permissionsOn('topic', [settings, suppressions], ['READ', 'DESCRIBE_CONFIGS']),
        // Summaries of what came in, and heartbeats.
        ...permissionsOn('topic', [deliveries], ['WRITE', 'DESCRIBE_CONFIGS']),
      ]
    case 'forwarder':
      return [
        ...permissionsOn('topic', [calls, erasures, suppressions], ['READ', 'DESCRIBE_CONFIGS']),
        // An endpoint that answers 410 is noted in the settings. Only replays write to their own topic.
        ...permissionsOn('topic', [...retryTiers, settings], ['READ', 'WRITE', 'DESCRIBE_CONFIGS']),
        ...permissionsOn('topic', [replays], ['READ', 'DESCRIBE_CONFIGS']),
        ...permissionsOn('topic', [deadLetters, deliveries], ['WRITE', 'DESCRIBE_CONFIGS']),
        ...permissionsOn('group', [groupId, `${groupId}.retries`], ['READ']),
      ]
    case 'console':
      return [
        // A dead letter that never became a delivery is replayed to the topic it came from, be it a tier. Heartbeats go
        // into the ledger.
        ...permissionsOn(
          'topic',
          [calls, ...tiers, deliveries, settings, memberships, erasures, suppressions],
          ['READ', 'WRITE', 'DESCRIBE_CONFIGS'],
        ),
        ...permissionsOn('topic', [deadLetters], ['READ', 'DESCRIBE_CONFIGS']),
        // What the forwarders have committed.
        ...permissionsOn('group', [groupId, `${groupId}.retries`], ['DESCRIBE']),
        // The console that sends operational events, and how far it read.
        ...permissionsOn('group', [`${groupId}.events`], ['READ']),
        // Leases: one process at a time works on a request, a replay or an audience.
        ...permissionsOn(
          'group',
          ['deletion', 'replay', 'sync'].map((what) => `${groupId}.${what}.`),
          ['READ'],
          true,
        ),
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
