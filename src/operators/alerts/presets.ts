// Services that operational events are sent to, each with the template in presets/ that it understands.
import { readFileSync } from 'node:fs'
import { absentFields, type AnalyticsCall } from '../../core/call/analytics-call.ts'
import { builtInSourceId } from '../../core/call/built-in-source.ts'
import { alertKinds, incidentEvents, type AlertKind } from '../../core/operational/alert-kinds.ts'

const pagerDutyUrl = 'https://events.pagerduty.com/v2/enqueue'
/** As its template names it. */
const pagerDutySecret = 'routing_key'

const templates = new Map<AlertKind, string>()

function templateOf(kind: AlertKind): string {
  let text = templates.get(kind)
  if (text === undefined) {
    text = readFileSync(new URL(`../../../presets/${kind}.json`, import.meta.url), 'utf8')
    templates.set(kind, text)
  }
  return text
}

export interface AlertGiven {
  url?: string | undefined
  key?: string | undefined
}

/** As a request that creates the destination has it. Null where what the kind needs is not given, or something else is. */
export function alertDestination(kind: AlertKind, { url, key }: AlertGiven) {
  const { needs, name } = alertKinds[kind]
  if ((needs === 'key' ? url : key) !== undefined) return null
  const common = { name, sourceIds: [builtInSourceId] }
  if (needs === 'url')
    return url === undefined ? null : { ...common, ...hookOf(url), body: { all: templateOf(kind) } }
  if (key === undefined) return null
  return {
    ...common,
    urls: [{ url: url ?? pagerDutyUrl }],
    body: { all: templateOf(kind) },
    templateSecrets: { [pagerDutySecret]: key },
    events: [...incidentEvents],
  }
}

/** Whoever knows the end of an incoming webhook's path can write to the channel, so it is kept as a secret. */
function hookOf(url: string) {
  const [, start, token] = /^(https?:\/\/[^/?#]+\/(?:[^?#]*\/)?)([A-Za-z0-9_-]{8,})$/.exec(url) ?? []
  if (start === undefined || token === undefined) return { urls: [{ url }] }
  return { urls: [{ url: `${start}\${secret.token}` }], templateSecrets: { token } }
}

/** A call like those of operational events. Its cause has ended, so that nobody is called for it. */
export function testCall(now: number, messageId: string): AnalyticsCall {
  return {
    ...absentFields,
    messageId,
    sourceId: builtInSourceId,
    type: 'track',
    userId: null,
    anonymousId: builtInSourceId,
    event: 'Postrider Test',
    timestamp: now,
    receivedAt: now,
    properties: JSON.stringify({
      destination: null,
      text: 'A test that somebody asked for: operational events of Postrider are sent here. Nothing has happened.',
      ...{ cause: 'test', ended: true, more: 0 },
    }),
  }
}
