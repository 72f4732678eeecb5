import { RequestRefused } from '../../operators/check.ts'
import type { RequestLimit } from '../../operators/operation.ts'

/** Counts the requests that run, where there may be only some of them at once. */
export class RunningRequests {
  readonly #counts = new Map<RequestLimit, number>()

  /** Throws RequestRefused `busy`. What it returns is to be called once, when the request has ended. */
  begin(limit: RequestLimit): () => void {
    const running = this.#counts.get(limit) ?? 0
    if (running >= limit.max) throw new RequestRefused('busy', limit.busy)
    this.#counts.set(limit, running + 1)
    return () => this.#counts.set(limit, this.#counts.get(limit)! - 1)
  }
}
