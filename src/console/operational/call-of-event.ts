import { hash } from 'node:crypto'
import type { AnalyticsCall } from '../../core/call/analytics-call.ts'
import { operationalCall, type OperationalEvent } from '../../core/operational/operational-event.ts'

/** The same event is the same call, whichever process sends it. */
export function callOf(event: OperationalEvent, consoleUrl: string | null): AnalyticsCall {
  const digest = hash('sha256', `${event.name}\0${event.identity}`, 'base64url')
  return operationalCall(event, `postrider-${digest}`, consoleUrl)
}
