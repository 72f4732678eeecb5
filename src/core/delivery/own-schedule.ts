import { formatDuration, parseDuration } from '../duration.ts'
import type { RetryPolicy } from './disposition.ts'

/** What a destination chooses of its deployment's schedule, as durations; null: all of it. */
export interface OwnSchedule {
  retryWindow: string | null
  retryTiers: readonly string[] | null
}

export const maxOwnTiers = 16

/** In place of tiers: a failed attempt is the last one. */
const noTier = 'none'
const isNone = (tiers: readonly string[] | null): boolean => tiers?.length === 1 && tiers[0] === noTier

/** What is wrong with a window in itself, one phrase a fault. */
export const windowFaults = (window: string): string[] =>
  delayOf(window) === null ? [`${JSON.stringify(window)} is no duration such as 30m`] : []

/** What is wrong with a list of tiers in itself. */
export function tierFaults(tiers: readonly string[]): string[] {
  if (tiers.length === 0) return ['at least one tier is needed, or none']
  if (isNone(tiers)) return []
  if (tiers.length > maxOwnTiers)
    return [`${tiers.length} tiers are given, at most ${maxOwnTiers} are allowed`]
  const faults: string[] = []
  tiers.forEach((tier, index) => {
    const before = index === 0 ? null : delayOf(tiers[index - 1]!)
    const delayMs = delayOf(tier)
    if (delayMs === null)
      faults.push(
        tier === noTier
          ? 'none goes without tiers beside it'
          : `${JSON.stringify(tier)} is no duration such as 10s`,
      )
    else if (before !== null && delayMs <= before)
      faults.push(`${tier} does not come after ${tiers[index - 1]!}: tiers are given in ascending order`)
  })
  return faults
}

/** What is wrong with a schedule that has no fault in itself, for destinations of a deployment with that policy. */
export function scheduleFaults(
  { retryWindow, retryTiers }: OwnSchedule,
  { tiers, windowMs }: RetryPolicy,
): { field: keyof OwnSchedule; message: string }[] {
  const faults: { field: keyof OwnSchedule; message: string }[] = []
  const ownMs = retryWindow === null ? windowMs : delayOf(retryWindow)!
  if (ownMs > windowMs)
    faults.push({
      field: 'retryWindow',
      message: `${retryWindow} is longer than the deployment’s ${formatDuration(windowMs)} (RETRY_WINDOW)`,
    })
  const names = tiers.map(({ name }) => name).join(', ')
  const chosen = isNone(retryTiers) ? null : retryTiers
  for (const name of chosen ?? [])
    if (!tiers.some(({ delayMs }) => delayMs === delayOf(name)))
      faults.push({ field: 'retryTiers', message: `there is no tier ${name}: the deployment has ${names}` })
  const used = chosen ?? [tiers[0]!.name]
  for (const name of used)
    if (delayOf(name)! >= ownMs)
      faults.push({
        field: retryWindow === null ? 'retryTiers' : 'retryWindow',
        message: `a retry cannot wait in tier ${name} within a window of ${formatDuration(ownMs)}: each tier has to be shorter than the window`,
      })
  return faults
}

/**
 * The policy of a destination, and which of its tiers the deployment lacks: it does without them, and where it has none of
 * them, the deployment's are used. The same object as the deployment's where nothing was chosen.
 */
export function ownPolicy(
  { retryWindow, retryTiers }: OwnSchedule,
  deployment: RetryPolicy,
): { policy: RetryPolicy; missing: readonly string[] } {
  if (retryWindow === null && retryTiers === null) return { policy: deployment, missing: [] }
  const ownMs = retryWindow === null ? null : delayOf(retryWindow)
  const windowMs = Math.min(ownMs ?? Infinity, deployment.windowMs)
  if (isNone(retryTiers))
    return { policy: { tiers: deployment.tiers, windowMs, isOneAttempt: true }, missing: [] }
  const delays = retryTiers?.map(delayOf)
  const chosen = delays
    ? deployment.tiers.filter(({ delayMs }) => delays.includes(delayMs))
    : deployment.tiers
  const has = (name: string) => chosen.some(({ delayMs }) => delayMs === delayOf(name))
  return {
    policy: { tiers: chosen.length > 0 ? chosen : deployment.tiers, windowMs },
    missing: (retryTiers ?? []).filter((name) => !has(name)),
  }
}

/** In ms; null for what is none, or no time at all. */
const delayOf = (text: string): number | null => parseDuration(text) || null
