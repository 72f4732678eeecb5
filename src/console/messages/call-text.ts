import type { AnalyticsCall } from '../../core/call/analytics-call.ts'
import { checkCall } from '../../core/call/check-call.ts'

const maps = ['properties', 'traits', 'context', 'integrations'] as const
const noMaps = Object.fromEntries(maps.map((map) => [map, null]))

/** On one line, in the shape of the tracking API. Maps stay the text that they are, so that numbers keep their spelling. */
export function callText(given: AnalyticsCall): string {
  const { call, fault } = checkCall(given)
  const { timestamp, receivedAt, sentAt, ...rest } = call ?? given
  const fields: Record<string, unknown> = {
    ...rest,
    ...noMaps,
    timestamp: timeOf(timestamp),
    receivedAt: timeOf(receivedAt),
    sentAt: sentAt === null ? null : timeOf(sentAt),
    fault,
  }
  const present = Object.entries(fields).filter(([, value]) => value !== null)
  const members = present.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`)
  // As they lie in Kafka: the check writes numbers such as 3.50 in the form that receivers get. What is no JSON object
  // would break the JSON.
  if (fault === null)
    for (const map of maps) {
      const text = given[map]
      if (text !== null) members.push(`"${map}":${oneLine(text)}`)
    }
  return `{${members.join(',')}}`
}

/** Line ends between the members of a map: within its texts they are escaped. */
const oneLine = (json: string): string => json.replace(/[\r\n]+/g, ' ')

const timeOf = (at: number): string | null => {
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? null : date.toISOString()
}
