import { setTimeout as delay } from 'node:timers/promises'
import { commitIntervalMs } from '../core/pacing/limits.ts'
import type { GroupConsumer } from './consume/group-consumer.ts'
import { ForwarderStatus } from './forwarder-status.ts'
import { Stages, type ForwarderParts } from './stages.ts'
import { steadyClock } from './steady-clock.ts'

/** How long a stop waits for the last tally and commit in any case, in ms. */
const lastCommitMs = 1_000
const watchIntervalMs = 250
const lagIntervalMs = 5_000

/** analytics.calls and the retry tiers → signed POSTs (docs/architecture.md): its life from start to stop. */
export class Forwarder {
  readonly name = 'forwarder'
  readonly #parts: ForwarderParts
  readonly #stopping = new AbortController()
  readonly #stages: Stages
  readonly #status: ForwarderStatus
  readonly #failure = Promise.withResolvers<never>()

  constructor(parts: ForwarderParts) {
    this.#parts = parts
    this.#stages = new Stages(parts, this.#stopping.signal, this.#failure.reject)
    this.#status = new ForwarderStatus(this.#stages, parts.sink)
    parts.metrics.watch(this.#status)
  }

  get #consumers(): GroupConsumer[] {
    return [this.#stages.calls, this.#stages.retries]
  }

  /** Null when it takes work; otherwise why not. */
  problem(): string | null {
    return this.#status.problem()
  }

  /** A problem that does not stop the work but should be known, in one line for people; null when there is none. */
  warning(): string | null {
    return this.#status.warning()
  }

  /** The settings and the erasures must have been folded to their end before. */
  async run(signal: AbortSignal): Promise<void> {
    const { settings, calls, retries } = this.#parts
    const { lag, scheduler, dispatcher } = this.#stages
    this.#stages.applySettings()
    settings.onChange(() => this.#applySettings())
    const stopped = new Promise<void>((resolve) => {
      if (signal.aborted) resolve()
      signal.addEventListener('abort', () => resolve(), { once: true })
    })
    const timers = [
      setInterval(() => this.#commitAll(), commitIntervalMs),
      setInterval(() => this.#watch(), watchIntervalMs),
      setInterval(() => void lag.refreshIfWatched().catch(() => {}), lagIntervalMs),
    ]
    try {
      const started = Promise.all([calls.start(this.#stages.calls), retries.start(this.#stages.retries)])
      const { promise: failed } = this.#failure
      await Promise.race([started.then(() => stopped), stopped, failed, calls.failed, retries.failed])
      await this.#drain()
    } finally {
      for (const timer of timers) clearInterval(timer)
      this.#stopping.abort()
      this.#stages.limits.stop()
      scheduler.stop()
      dispatcher.stop()
      await Promise.all([calls.stop(), retries.stop()])
      for (const consumer of this.#consumers) consumer.lost()
      await this.#parts.transport.close(0)
    }
  }

  /** Stop taking → finish what is on the wire → publish → commit; leaving the group comes after. */
  async #drain(): Promise<void> {
    const { scheduler, dispatcher, plans } = this.#stages
    scheduler.stop()
    dispatcher.stop()
    plans.report(true)
    const deadline = steadyClock.now() + this.#parts.drainMs
    while (dispatcher.inFlight > 0 && steadyClock.now() < deadline) await delay(5)
    await Promise.race([
      this.#stages.flush(),
      delay(Math.max(0, deadline - steadyClock.now()), undefined, { ref: false }),
    ])
    // While Kafka is away there is no last commit: the next owner sends again what is not committed.
    await Promise.race([
      Promise.all(this.#consumers.map((consumer) => consumer.commitAll())),
      delay(Math.max(lastCommitMs, deadline - steadyClock.now()), undefined, { ref: false }),
    ])
    if (dispatcher.inFlight > 0) {
      this.#parts.log.warn({ requests: dispatcher.inFlight }, 'stopped before all requests had ended')
    }
  }

  #commitAll(): void {
    for (const consumer of this.#consumers) consumer.tick().catch(this.#failure.reject)
    this.#stages.settledVersion.advance()
  }

  #watch(): void {
    const { headOfLineMonitor, publisher, limits, plans } = this.#stages
    plans.report()
    limits.tick(steadyClock.now())
    headOfLineMonitor.tick(steadyClock.now())
    // After a pause in the heartbeats nothing else would check the queues again.
    this.#stages.pumpAll()
    publisher.lookAgain()
  }

  #applySettings(): void {
    try {
      this.#stages.applySettings()
    } catch (error) {
      this.#failure.reject(error)
    }
  }
}
