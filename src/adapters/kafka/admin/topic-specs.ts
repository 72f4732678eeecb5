import type { Config } from '../../../config/config.ts'
import { deliveriesKeptMs } from '../../../core/erasure/deletion-progress.ts'
import { erasureKeptMs } from '../../../core/erasure/erasures.ts'
import { standingTiers, topicNames } from '../../../core/topics.ts'

const dayMs = 86_400_000
const megabyte = 1_048_576
/** How long compacted topics keep tombstones: views of memberships that are older are rebuilt. */
export const deletionsKeptMs = 7 * dayMs
/** After how long compacted topics remove what a later record of the same key replaced, once its segment has ended. */
const replacedKeptMs = 7 * dayMs
/** For how long such a segment is appended to; what it holds stays until then. */
const segmentMs = dayMs
/**
 * How long a topic may keep calls: then they are gone before the deletions of their users are forgotten. A record stays until
 * the segment that it lies in has ended, 7 days by Kafka's default.
 */
export const callsKeptAtMostMs = erasureKeptMs - 7 * dayMs

/** What a topic's setting must be, as a text or as bounds of a number, -1 standing for no limit. */
export type Requirement = { is: string } | { min: number; max?: number }

/** One topic as `setup` creates it and as the processes need it (docs/kafka-producers.md). */
export interface TopicSpec {
  name: string
  partitions: number
  /** Its records must lie in one order: more partitions, or fewer, cannot be. */
  exactPartitions: boolean
  /** What it is created with. */
  settings: Record<string, string>
  /** What loses or holds up records when it is otherwise. */
  required: Record<string, Requirement>
  /** What an operator may have had reasons to choose otherwise: said, and no more. */
  advised: Record<string, Requirement>
  /** What it holds is of users who may be deleted. */
  holdsCalls: boolean
}

export type TopicConfig = Pick<
  Config,
  'topicPrefix' | 'retryTiers' | 'retryWindowMs' | 'partitions' | 'replicationFactor'
>

/** Retention must not follow an imported call's own time. */
const appendTime = 'LogAppendTime'

export function topicSpecs(config: TopicConfig): TopicSpec[] {
  const names = topicNames(config.topicPrefix)
  const { partitions } = config
  // What is put off is read again from the calls' topic when it is due.
  const longestDelayMs = Math.max(...config.retryTiers.map(({ delayMs }) => delayMs))
  // 1 MB for calls and 4 MB for what they turn into, so that the largest that gets in can also be passed on.
  return [
    {
      ...ordinary(names.calls, partitions.calls, 7 * dayMs, megabyte),
      required: {
        ...needed,
        'max.message.bytes': { min: megabyte, max: 3 * megabyte },
        'retention.ms': { min: config.retryWindowMs + longestDelayMs },
      },
    },
    ...[...config.retryTiers, ...standingTiers].map(({ name, delayMs }) =>
      whole(ordinary(names.retry(name), partitions.retry, delayMs + 7 * dayMs, 4 * megabyte)),
    ),
    ordinary(names.deadLetters, partitions.deadLetters, 30 * dayMs, 4 * megabyte),
    {
      ...ordinary(names.deliveries, partitions.deliveries, deliveriesKeptMs, 4 * megabyte),
      holdsCalls: false,
    },
    single(names.settings, -1),
    compacted(names.memberships, partitions.memberships, false),
    single(names.erasures, erasureKeptMs),
    compacted(names.suppressions, 1, true),
  ]
}

const needed: Record<string, Requirement> = {
  'message.timestamp.type': { is: appendTime },
  'cleanup.policy': { is: 'delete' },
}

/** Kept for a time, whatever its size: brokers may have a limit of their own, by which what nobody has read would go. */
function ordinary(name: string, partitions: number, retentionMs: number, maxBytes: number): TopicSpec {
  return {
    name,
    partitions,
    exactPartitions: false,
    settings: {
      'message.timestamp.type': appendTime,
      'cleanup.policy': 'delete',
      'retention.ms': String(retentionMs),
      'retention.bytes': '-1',
      'max.message.bytes': String(maxBytes),
    },
    required: { ...needed, 'max.message.bytes': { min: maxBytes } },
    advised: { 'retention.ms': { min: retentionMs }, 'retention.bytes': { is: '-1' } },
    holdsCalls: true,
  }
}

/** Nothing of it may go before its time. */
const whole = (spec: TopicSpec): TopicSpec => ({
  ...spec,
  required: { ...spec.required, ...spec.advised },
  advised: {},
})

/** The newest record of each key is kept. */
const compacted = (name: string, partitions: number, exactPartitions: boolean): TopicSpec => ({
  name,
  partitions,
  exactPartitions,
  settings: {
    'message.timestamp.type': appendTime,
    'cleanup.policy': 'compact',
    'delete.retention.ms': String(deletionsKeptMs),
    'max.compaction.lag.ms': String(replacedKeptMs),
    'segment.ms': String(segmentMs),
  },
  required: {
    'message.timestamp.type': { is: appendTime },
    'cleanup.policy': { is: 'compact' },
    'delete.retention.ms': { min: deletionsKeptMs },
  },
  // Otherwise users stay whose suppression or membership has ended (docs/privacy.md).
  advised: {
    'max.compaction.lag.ms': { min: 0, max: replacedKeptMs },
    'segment.ms': { min: 0, max: segmentMs },
  },
  holdsCalls: false,
})

/** Everybody folds it from its first record on. */
function single(name: string, retentionMs: number): TopicSpec {
  const { settings: all, advised } = ordinary(name, 1, retentionMs, 0)
  const { 'max.message.bytes': _brokers, ...settings } = all
  const one = { name, partitions: 1, exactPartitions: true }
  return whole({ ...one, settings, required: needed, advised, holdsCalls: false })
}

/**
 * What keeps an acknowledged record while brokers die, by the number of replicas: with three of them, two in-sync
 * replicas must have it before it counts as written. With two that would end all writing while one broker is away.
 */
export function durabilityOf(copies: number): Record<string, string> {
  return {
    ...(copies >= 2 && { 'unclean.leader.election.enable': 'false' }),
    ...(copies >= 3 && { 'min.insync.replicas': '2' }),
  }
}

/** Whether a setting's value meets a requirement; -1 is larger than any number. */
export function meets(value: string | undefined, requirement: Requirement): boolean {
  if (value === undefined) return false
  if ('is' in requirement) return value === requirement.is
  const number = unlimited(Number(value))
  return number >= unlimited(requirement.min) && number <= (requirement.max ?? Infinity)
}

const unlimited = (number: number): number => (number === -1 ? Infinity : number)

export function describeRequirement(requirement: Requirement): string {
  if ('is' in requirement) return requirement.is
  if (requirement.min === -1) return '-1'
  if (requirement.min === 0) return `at most ${requirement.max}`
  const max = requirement.max === undefined ? '' : ` and at most ${requirement.max}`
  return `at least ${requirement.min}${max}`
}
