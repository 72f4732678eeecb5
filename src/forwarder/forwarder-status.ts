import { phases } from '../core/pacing/breaker.ts'
import type { RecentOutcomes } from '../core/pacing/endpoint-pace.ts'
import type { EndpointFailure, HeartbeatPartition } from '../core/ledger/heartbeat.ts'
import type { WaitingRecord } from './consume/assigned-partition.ts'
import type { EndpointGauges, ForwarderGauges, PausedDestination, WatchedCertificate } from './metrics.ts'
import type { RecordSink } from './settle/record-publisher.ts'
import type { Stages } from './stages.ts'
import { steadyClock } from './steady-clock.ts'

/** What people and scrapes see of a forwarder. */
export class ForwarderStatus implements ForwarderGauges {
  readonly #stages: Stages
  readonly #sink: RecordSink

  constructor(stages: Stages, sink: RecordSink) {
    this.#stages = stages
    this.#sink = sink
  }

  /** Null when it takes work; otherwise why not. */
  problem(): string | null {
    const { calls, retries, schemas, ledger } = this.#stages
    if (calls.trouble !== null) return `calls cannot be read: ${calls.trouble}`
    if (!calls.isReady) return 'not a member of the consumer group yet'
    if (retries.trouble !== null) return `retries cannot be read: ${retries.trouble}`
    if (!retries.isReady) return "not a member of the retries' consumer group yet"
    if (schemas.isWaiting) return 'records wait for the schema registry'
    return this.#sink.problem() ?? ledger.problem(steadyClock.now())
  }

  /** A problem that does not stop the work but should be known, in one line for people; null when there is none. */
  warning(): string | null {
    const named = (all: Iterable<[id: string, reason: string]>) =>
      [...all].map(([id, reason]) => `destination "${id}": ${reason}`).join('; ')
    const [failures, logins] = [named(this.#stages.routing.failures()), named(this.#failedLogins())]
    const warnings = [
      ...(failures === '' ? [] : [`cannot be set up: ${failures}`]),
      ...(logins === '' ? [] : [`the login fails: ${logins}`]),
    ]
    return warnings.length === 0 ? null : warnings.join('; ')
  }

  inFlight(): number {
    return this.#stages.dispatcher.inFlight
  }

  *endpoints(): Iterable<EndpointGauges> {
    const now = steadyClock.now()
    const epoch = Math.round(Date.now() - now)
    for (const endpoint of this.#stages.routing.endpoints()) {
      const { destinationId, id: urlId, inFlight, limit, turns, breaker, queued } = endpoint
      const waits = now < breaker.until
      yield {
        destinationId,
        urlId,
        inFlight,
        limit,
        turns,
        breakerOpen: breaker.phase === 'open' && waits,
        paused: breaker.phase === 'paused' && waits,
        down: endpoint.recent.downSince !== null,
        queued,
        phase: breaker.phase,
        pausedUntil: waits && phases[breaker.phase].sends === 'nothing' ? epoch + breaker.until : null,
        ...reported(endpoint.recent, epoch),
      }
    }
  }

  notSetUp(): Iterable<string> {
    return [...this.#stages.routing.failures()].map(([destinationId]) => destinationId)
  }

  withoutToken(): Iterable<string> {
    return this.#failedLogins().keys()
  }

  /** By destination, why no token is to be had. */
  #failedLogins(): Map<string, string> {
    const failed = new Map<string, string>()
    // What waits for a token has something to do.
    for (const { destinationId, loginProblem } of this.#stages.routing.stirring)
      if (loginProblem !== null) failed.set(destinationId, loginProblem)
    return failed
  }

  certificates(): Iterable<WatchedCertificate> {
    return this.#stages.certificates()
  }

  pauses(): Iterable<PausedDestination> {
    return this.#stages.routing.pauses()
  }

  gone(): Iterable<{ destinationId: string; urlId: string }> {
    return this.#stages.gone()
  }

  waiting(): Iterable<WaitingRecord> {
    return this.#stages.waiting()
  }

  settingsVersion(): number {
    return this.#stages.settledVersion.shown
  }

  *lag(): Iterable<{ topic: string; partition: number; lag: number }> {
    for (const { topic, partition, lag } of this.partitions())
      if (lag !== null) yield { topic, partition, lag }
  }

  *partitions(): Iterable<HeartbeatPartition> {
    const overdue = new Map<string, number>()
    for (const { topic, partition, overdueMs } of this.waiting())
      overdue.set(`${topic}/${partition}`, overdueMs)
    for (const { topic, partition, lag } of this.#stages.lag.read()) {
      const overdueMs = overdue.get(`${topic}/${partition}`)
      yield { topic, partition, lag, overdueMs: overdueMs === undefined ? null : Math.round(overdueMs) }
    }
  }
}

/** In epoch ms, as heartbeats have it. */
function reported({ downSince, lastSuccessAt, lastFailure }: RecentOutcomes, epoch: number) {
  const isDown = downSince !== null && lastFailure !== null
  return {
    downSince: downSince === null ? null : Math.round(epoch + downSince),
    lastSuccessAt: lastSuccessAt === null ? null : Math.round(epoch + lastSuccessAt),
    lastFailure: isDown ? failureOf(lastFailure, epoch) : null,
  }
}

function failureOf(
  { outcome, at }: NonNullable<RecentOutcomes['lastFailure']>,
  epoch: number,
): EndpointFailure {
  const { kind, status, detail } = outcome
  return { at: Math.round(epoch + at), outcome: kind, status, detail, body: null }
}
