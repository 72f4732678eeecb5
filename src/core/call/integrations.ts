import type { AnalyticsCall } from './analytics-call.ts'
import { parseJson } from '../json/parse-json.ts'

/**
 * Whether a call's `integrations` let it go to webhook destinations. Absent means yes, and a `delete` goes whatever
 * they say: it is about data that the destinations have. `All: false` (or `all`, as one SDK writes it, when there is
 * no `All`) turns every destination off unless `Webhooks` is true or an object; `Webhooks: false` turns it off. Names
 * are case-sensitive. Throws a SyntaxError for what is not JSON: `checkCall` comes first.
 */
export function allowsWebhooks({
  type,
  integrations,
}: Pick<AnalyticsCall, 'type' | 'integrations'>): boolean {
  // Only the word `false` can turn anything off, and no escape can spell it.
  if (integrations === null || type === 'delete' || !integrations.includes('false')) return true
  const choices = parseJson(integrations) as Record<string, unknown>
  const webhooks = own(choices, 'Webhooks')
  if (webhooks === false) return false
  const all = Object.hasOwn(choices, 'All') ? choices.All : own(choices, 'all')
  return all !== false || webhooks === true || isObject(webhooks)
}

const own = (object: Record<string, unknown>, key: string): unknown =>
  Object.hasOwn(object, key) ? object[key] : undefined

const isObject = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
