import { parseDuration } from './duration.ts'

/** A retry tier: its name as it stands in the topic's name, and its delay. */
export interface Tier {
  name: string
  delayMs: number
}

/**
 * Not a tier that a failed attempt leads to: replays put here what is to be sent at once. Its records go through the
 * same engine as those of the tiers.
 */
export const replayTier: Tier = { name: 'replay', delayMs: 0 }

/**
 * Not a tier either: what keeps the order of a user's calls through failures lies here, the call that failed and behind it
 * those that wait for it, in their order. Each says itself when it is due.
 */
export const strictTier: Tier = { name: 'strict', delayMs: 0 }

/** Beside the tiers of the settings. */
export const standingTiers: readonly Tier[] = [replayTier, strictTier]

/** The names of all topics under one prefix (docs/architecture.md). */
export interface TopicNames {
  calls: string
  retry(tierName: string): string
  /** Every retry topic begins with this; the rest is the tier's name. */
  retryPrefix: string
  deadLetters: string
  deliveries: string
  settings: string
  memberships: string
  erasures: string
  suppressions: string
}

export function topicNames(prefix: string): TopicNames {
  const retryPrefix = `${prefix}webhooks.retry.`
  // Asked for with each published record: a newly concatenated string would be hashed again at each lookup.
  const retries = new Map<string, string>()
  return {
    calls: `${prefix}analytics.calls`,
    retry(tierName) {
      let name = retries.get(tierName)
      if (name === undefined) {
        name = retryPrefix + tierName
        retries.set(tierName, name)
      }
      return name
    },
    retryPrefix,
    deadLetters: `${prefix}webhooks.dead-letters`,
    deliveries: `${prefix}webhooks.deliveries`,
    settings: `${prefix}webhooks.settings`,
    memberships: `${prefix}analytics.memberships`,
    erasures: `${prefix}webhooks.erasures`,
    suppressions: `${prefix}webhooks.suppressions`,
  }
}

/**
 * The tier of a retry topic, its delay read from its name; null for any other topic. A tier that was taken out of
 * the settings still has to drain, and its topic's name is all that is left of it.
 */
export function tierOfTopic(names: TopicNames, topic: string): Tier | null {
  if (!topic.startsWith(names.retryPrefix)) return null
  const name = topic.slice(names.retryPrefix.length)
  const standing = standingTiers.find((tier) => tier.name === name)
  if (standing) return standing
  const delayMs = parseDuration(name)
  return delayMs === null || delayMs === 0 ? null : { name, delayMs }
}
