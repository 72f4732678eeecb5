import type { AnalyticsCall } from '../call/analytics-call.ts'
import { optionalText } from '../call/body.ts'
import { quoted } from '../json/quoted.ts'
import { canonicalObject } from '../json/canonical-json.ts'
import { formatTimestamp } from '../timestamp.ts'

/**
 * The whole call as Segment's destinations get it, whatever its type takes, for a call that `checkCall` has accepted.
 * The keys come in the order below; what is absent is left out (an empty id is absent), but for `context` and
 * `integrations`, which are `{}`. Free-form maps go in as the JSON text they are; built by concatenation, as `renderBody`
 * is. Throws a TypeError for a `delete`, which has its own body, and a RangeError for a time that no calendar holds.
 */
export function fullBody(call: AnalyticsCall): string {
  const { type } = call
  if (type === 'delete' || type === 'unknown') throw new TypeError(`no full body for a call of type ${type}`)
  return (
    `{"type":"${type}","messageId":${quoted(call.messageId)}` +
    id('anonymousId', call.anonymousId) +
    id('userId', call.userId) +
    id('previousId', call.previousId) +
    id('groupId', call.groupId) +
    optionalText('event', call.event) +
    optionalText('name', call.name) +
    optionalText('category', call.category) +
    optionalText('channel', call.channel) +
    map('properties', call.properties) +
    map('traits', call.traits) +
    `,"context":${call.context ?? '{}'},"integrations":${integrationsOf(call)}` +
    time('timestamp', call.timestamp) +
    time('originalTimestamp', call.originalTimestamp) +
    time('sentAt', call.sentAt) +
    `${time('receivedAt', call.receivedAt)}}`
  )
}

/** One JSON object, whose spelling `checkCall` leaves: it makes canonical what every destination gets. */
const integrationsOf = ({ integrations }: AnalyticsCall): string =>
  integrations === null ? '{}' : canonicalObject(integrations)!

// Each of these gives `,"key":value`, or nothing for an absent value.

const id = (key: string, value: string | null): string => optionalText(key, value || null)
const map = (key: string, json: string | null): string => (json === null ? '' : `,"${key}":${json}`)
const time = (key: string, epochMs: number | null): string =>
  epochMs === null ? '' : `,"${key}":"${formatTimestamp(epochMs)}"`
