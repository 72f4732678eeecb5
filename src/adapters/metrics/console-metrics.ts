import { escapeValue, heading, inPieces } from './exposition.ts'
import type { Exposed } from './exposition.ts'

const name = 'postrider_console_requests_total'

/** Counts requests to the admin API. Operations are a closed set, and what is none of them is `none`. */
export class ConsoleCounts implements Exposed {
  readonly #counts = new Map<string, number>()

  request(operationId: string | null, status: number): void {
    const labels = `operation="${escapeValue(operationId ?? 'none')}",code_class="${Math.floor(status / 100)}xx"`
    this.#counts.set(labels, (this.#counts.get(labels) ?? 0) + 1)
  }

  *expose(): Generator<string> {
    const head = heading(name, 'counter', 'Requests to the admin API, by what they were answered.')
    yield* inPieces(head, this.#counts, ([labels, count]) => `${name}{${labels}} ${count}\n`)
  }
}
