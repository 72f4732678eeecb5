import { heading } from './exposition.ts'
import type { Exposed } from './exposition.ts'
import { Histogram } from './exposition.ts'

const name = 'postrider_kafka_produce_duration_seconds'
const bounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/** How long batches of records took to be acknowledged. Parts that share a process share one, for a page shows a family once. */
export class ProduceDurations implements Exposed {
  readonly #histogram = new Histogram(bounds)

  observe(seconds: number): void {
    this.#histogram.observe(seconds)
  }

  *expose(): Generator<string> {
    yield heading(name, 'histogram', 'Of one batch, with acks=all.') + this.#histogram.lines(name, '')
  }
}
