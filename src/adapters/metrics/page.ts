import { setImmediate } from 'node:timers/promises'
import { Registry, collectDefaultMetrics } from 'prom-client'
import type { Exposed } from './exposition.ts'

/** What `/metrics` answers: everything that was added, and Node's own metrics by prom-client. */
export class MetricsPage {
  readonly contentType = Registry.PROMETHEUS_CONTENT_TYPE
  readonly #node = new Registry()
  readonly #exposed: Exposed[] = []

  constructor() {
    // Looking every 10 ms, as prom-client does by default, takes half a percent of a core from an idle process.
    collectDefaultMetrics({ register: this.#node, eventLoopMonitoringPrecision: 100 })
  }

  add(exposed: Exposed): void {
    this.#exposed.push(exposed)
  }

  /** The page in pieces, with the event loop free between them: a scrape holds up no delivery. */
  async *pieces(): AsyncGenerator<string> {
    for (const exposed of this.#exposed) {
      for (const piece of exposed.expose()) {
        if (piece !== '') yield piece
        await setImmediate()
      }
    }
    yield await this.#node.metrics()
  }
}
