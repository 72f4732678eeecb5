/** Longer than kafkajs waits for any answer, in ms: a broker that was silent for that long is not asked any more. */
const forgottenAfterMs = 40_000

/**
 * Up to when all that was appended to a topic has been handled, concluded from the consumer's fetches: it begins one only
 * after it has handled all that the one before brought from that broker.
 */
export class FetchFreshness {
  /** Monotonic ms. */
  asOf = -Infinity
  readonly #brokers = new Map<string, { startedAt: number; answered: boolean; coveredAt: number }>()
  #behind = false

  started(broker: string, now: number): void {
    const before = this.#brokers.get(broker)
    const covers = before?.answered && !this.#behind
    this.#behind = false
    const coveredAt = covers ? before.startedAt : (before?.coveredAt ?? -Infinity)
    this.#brokers.set(broker, { startedAt: now, answered: false, coveredAt })
    for (const [each, { startedAt }] of this.#brokers)
      if (now - startedAt > forgottenAfterMs) this.#brokers.delete(each)
    const asOf = Math.min(...[...this.#brokers.values()].map((each) => each.coveredAt))
    this.asOf = Math.max(this.asOf, asOf)
  }

  answered(broker: string): void {
    const fetch = this.#brokers.get(broker)
    if (fetch) fetch.answered = true
  }

  /** A batch was handled, and the broker had more behind it. */
  moreBehind(): void {
    this.#behind = true
  }

  /** Another consumer goes on: its fetches have nothing to do with those before. */
  restart(): void {
    this.#brokers.clear()
    this.#behind = false
  }
}
