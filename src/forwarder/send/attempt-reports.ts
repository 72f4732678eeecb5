import type { DeferralReason } from '../../core/delivery/disposition.ts'
import { isRefusal, type Outcome } from '../../core/delivery/outcome.ts'
import { mostBatched } from '../../core/shape/batch.ts'
import type { BreakerPhase } from '../../core/pacing/breaker.ts'
import type { Ledger } from '../commit/ledger.ts'
import type { Log } from '../log.ts'
import type { ForwarderMetrics } from '../metrics.ts'
import type { ActiveDelivery, Attempt, DispatchReports } from './active-delivery.ts'
import type { AttemptBatch } from './batches.ts'
import type { EndpointQueue } from './endpoint-queue.ts'
import { steadyClock } from '../steady-clock.ts'

export interface AttemptReportsParts {
  ledger: Ledger
  metrics: ForwarderMetrics
  log: Log
  /** An endpoint answered 410. Called for each such answer; must not throw. */
  reportGone(destinationId: string, urlId: string): void
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
  proxy: 'the proxy refused the connection or failed: no request was sent',
  no_token: 'the endpoint refused the token (401), and no other one could be had',
}

/** At most one line for each endpoint in that time, in ms: a server may end its connections at every second request. */
const sentAgainLineMs = 60_000

/** Where attempts are counted, logged and recorded. */
export class AttemptReports implements DispatchReports {
  readonly #parts: AttemptReportsParts
  readonly #sentAgain = new WeakMap<EndpointQueue, { requests: number; loggedAt: number }>()

  /** Ids of destinations. */
  readonly #failedLogins = new Set<string>()

  constructor(parts: AttemptReportsParts) {
    this.#parts = parts
  }

  attempted(attempt: Attempt, outcome: Outcome): void {
    attempt.active.destination.metrics.attempt(outcome)
    this.#parts.ledger.attempted(attempt, outcome)
    if (outcome.kind !== 'success') this.#failed(attempt, outcome)
  }

  deferred({ destination }: ActiveDelivery, reason: DeferralReason): void {
    destination.metrics.deferral(reason)
  }

  retryStarted({ dueAt }: ActiveDelivery): void {
    this.#parts.metrics.retryLateness(Math.max(0, Date.now() - dueAt!) / 1_000)
  }

  breakerChanged(endpoint: EndpointQueue, to: BreakerPhase): void {
    const { log } = this.#parts
    const fields = { destination: endpoint.destinationId, urlId: endpoint.id, breaker: to }
    if (to === 'open') {
      log.warn(fields, 'the endpoint fails: its calls go to the retry tiers until a probe succeeds')
    } else if (to === 'paused') {
      const until = new Date(Date.now() + endpoint.breaker.until - steadyClock.now()).toISOString()
      log.warn({ ...fields, until }, 'the endpoint asks for a pause (Retry-After): its calls wait')
    } else if (to === 'closed') {
      log.info(fields, 'the endpoint recovered: its circuit breaker is closed')
    }
  }

  /** @param problem why no token is to be had; null: it is again */
  loginChanged({ destinationId }: EndpointQueue, problem: string | null): void {
    const { log } = this.#parts
    const failed = this.#failedLogins
    // Its URLs share their tokens.
    if (problem === null) {
      if (failed.delete(destinationId))
        log.info({ destination: destinationId }, 'the login works again: there is a token')
    } else if (!failed.has(destinationId)) {
      failed.add(destinationId)
      log.error(
        { destination: destinationId, reason: problem },
        'the login fails, for no token is to be had: calls go to the retry tiers until there is one',
      )
    }
  }

  sentAgain(endpoint: EndpointQueue): void {
    const now = steadyClock.now()
    const counted = this.#sentAgain.get(endpoint) ?? { requests: 0, loggedAt: -Infinity }
    this.#sentAgain.set(endpoint, counted)
    counted.requests++
    if (now - counted.loggedAt < sentAgainLineMs) return
    const { requests } = counted
    this.#parts.log.warn(
      { destination: endpoint.destinationId, urlId: endpoint.id, requests },
      'the endpoint closed connections with requests on them: these were sent again',
    )
    Object.assign(counted, { requests: 0, loggedAt: now })
  }

  /** Of the first request only: what comes of its halves is about the calls in them. */
  batchRefused({ attempts }: AttemptBatch, endpoint: EndpointQueue, { status }: Outcome): void {
    if (attempts[0]!.most < mostBatched) return
    this.#parts.log.warn(
      { destination: endpoint.destinationId, urlId: endpoint.id, calls: attempts.length, status },
      'the endpoint refused a batch: it is sent in halves, until the refused call is found',
    )
  }

  /** One wide line per failed attempt, with the ids to search by. Never the URL, which may hold a secret. */
  #failed({ active, endpoint }: Attempt, { kind, status, durationMs, detail }: Outcome): void {
    if (kind === 'success' || kind === 'deferred') return
    const { log } = this.#parts
    // Nothing could be sent: somebody has to know at once, and needs no line of that kind for each call.
    const isAlarm = kind === 'gone' || (isRefusal(kind) && endpoint.recent.refusals === 1)
    log[isAlarm ? 'error' : 'warn'](
      {
        delivery: active.delivery.id,
        destination: endpoint.destinationId,
        urlId: endpoint.id,
        attempt: active.attempts,
        outcome: kind,
        status,
        durationMs: Math.round(durationMs),
        detail,
        ...(active.work.traceparent !== null && { traceparent: active.work.traceparent }),
        origin: active.delivery.origin,
      },
      messages[kind],
    )
    if (kind === 'gone') this.#parts.reportGone(endpoint.destinationId, endpoint.id)
  }
}
