import type { Ledger } from './commit/ledger.ts'
import type { GroupConsumer } from './consume/group-consumer.ts'
import type { Lag } from './consume/lag.ts'
import type { EndpointGauges, ForwarderGauges } from './metrics.ts'
import type { Routing } from './plan/routing.ts'
import type { SchemaLoader } from './plan/schema-loader.ts'
import type { Dispatcher } from './send/dispatcher.ts'
import type { RecordSink } from './settle/record-sink.ts'
import { steadyClock } from './steady-clock.ts'

export interface ForwarderStatusParts {
  calls: GroupConsumer
  retries: GroupConsumer
  sink: RecordSink
  schemas: SchemaLoader
  routing: Routing
  dispatcher: Dispatcher
  ledger: Ledger
  lag: Lag
}

/** What people and scrapes see of a forwarder. */
export class ForwarderStatus implements ForwarderGauges {
  readonly #parts: ForwarderStatusParts

  constructor(parts: ForwarderStatusParts) {
    this.#parts = parts
  }

  /** Null when it takes work; otherwise why not. */
  problem(): string | null {
    const { calls, retries, schemas, sink, ledger } = this.#parts
    if (calls.trouble !== null) return `calls cannot be read: ${calls.trouble}`
    if (!calls.isReady) return 'not a member of the consumer group yet'
    if (retries.trouble !== null) return `retries cannot be read: ${retries.trouble}`
    if (!retries.isReady) return "not a member of the retries' consumer group yet"
    if (schemas.isWaiting) return 'records wait for the schema registry'
    return sink.problem() ?? ledger.problem(steadyClock.now())
  }

  /** A problem that does not stop the work but should be known, in one line for people; null when there is none. */
  warning(): string | null {
    const failures = [...this.#parts.routing.failures()].map(
      ([id, reason]) => `destination "${id}": ${reason}`,
    )
    return failures.length === 0 ? null : `cannot be set up: ${failures.join('; ')}`
  }

  inFlight(): number {
    return this.#parts.dispatcher.inFlight
  }

  *endpoints(): Iterable<EndpointGauges> {
    const now = steadyClock.now()
    for (const endpoint of this.#parts.routing.endpoints()) {
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
    return [...this.#parts.routing.failures()].map(([destinationId]) => destinationId)
  }

  lag(): ReturnType<Lag['read']> {
    return this.#parts.lag.read()
  }
}
