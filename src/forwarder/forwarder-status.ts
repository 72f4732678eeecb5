import type { Lag } from './consume/lag.ts'
import type { EndpointGauges, ForwarderGauges } from './metrics.ts'
import type { RecordSink } from './settle/record-sink.ts'
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
    const failures = [...this.#stages.routing.failures()].map(
      ([id, reason]) => `destination "${id}": ${reason}`,
    )
    return failures.length === 0 ? null : `cannot be set up: ${failures.join('; ')}`
  }

  inFlight(): number {
    return this.#stages.dispatcher.inFlight
  }

  *endpoints(): Iterable<EndpointGauges> {
    const now = steadyClock.now()
    for (const endpoint of this.#stages.routing.endpoints()) {
      const { destinationId, id: urlId, inFlight, limit, breaker } = endpoint
      const waits = now < breaker.until
      yield {
        destinationId,
        urlId,
        inFlight,
        limit,
        breakerOpen: breaker.phase === 'open' && waits,
        paused: breaker.phase === 'paused' && waits,
      }
    }
  }

  notSetUp(): Iterable<string> {
    return [...this.#stages.routing.failures()].map(([destinationId]) => destinationId)
  }

  lag(): ReturnType<Lag['read']> {
    return this.#stages.lag.read()
  }
}
