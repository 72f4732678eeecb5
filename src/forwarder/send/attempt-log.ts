import type { BreakerPhase } from '../../core/pacing/breaker.ts'
import type { Outcome } from '../../core/delivery/outcome.ts'
import type { Attempt } from './active-delivery.ts'
import type { EndpointQueue } from './endpoint-queue.ts'
import { steadyClock } from '../steady-clock.ts'

export interface Log {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

const messages: Record<Exclude<Outcome['kind'], 'success' | 'deferred'>, string> = {
  timeout: 'no complete response in time',
  status_5xx: 'the endpoint answered with a server error',
  status_4xx: 'the endpoint refused the call',
  status_429: 'the endpoint asks for fewer requests',
  gone: 'the endpoint says that it is gone (410)',
  redirect: 'the endpoint answered with a redirect, which is not followed',
  network: 'the endpoint could not be reached',
  tls: "the endpoint's certificate is not trusted: no request was sent",
  blocked: "the endpoint's address is not allowed: no request was sent",
}

/** One wide line per failed attempt, with the ids to search by. Never the URL, which may hold a secret. */
export function logFailedAttempt(log: Log, attempt: Attempt, outcome: Outcome): void {
  if (outcome.kind === 'success' || outcome.kind === 'deferred') return
  const { delivery, endpoint } = attempt
  const final = outcome.kind === 'tls' || outcome.kind === 'gone'
  log[final ? 'error' : 'warn'](
    {
      delivery: delivery.idempotencyKey,
      destination: endpoint.destinationId,
      urlId: endpoint.id,
      attempt: delivery.attempts,
      outcome: outcome.kind,
      status: outcome.status,
      durationMs: Math.round(outcome.durationMs),
      detail: outcome.detail,
      origin: delivery.origin,
    },
    messages[outcome.kind],
  )
}

export function logBreaker(log: Log, endpoint: EndpointQueue, to: BreakerPhase): void {
  const fields = { destination: endpoint.destinationId, urlId: endpoint.id, breaker: to }
  if (to === 'open')
    log.warn(fields, 'the endpoint fails: its calls go to the retry tiers until a probe succeeds')
  else if (to === 'paused')
    log.warn(
      { ...fields, until: new Date(Date.now() + endpoint.breaker.until - steadyClock.now()).toISOString() },
      'the endpoint asks for a pause (Retry-After): its calls wait',
    )
  else if (to === 'closed') log.info(fields, 'the endpoint is well again')
}
