import { monotonicMs } from '../measure/clock.ts'

/**
 * Counts requests in a receiver's process and reports to the benchmark when the warm-up is over (`warm`) and when all
 * that are expected have come (`done`).
 */
export class Milestones {
  count = 0
  #expected = Infinity
  #warmUp = 1
  #warmAt = 0
  #cpuAtWarm = process.cpuUsage()

  /** Starts over. `warmUp` is at least 1: the clock starts with a request. */
  expect(requests: number, warmUp = 1): void {
    this.count = 0
    this.#expected = requests
    this.#warmUp = Math.max(1, warmUp)
  }

  arrived(): void {
    this.count++
    if (this.count === this.#warmUp) {
      this.#warmAt = monotonicMs()
      this.#cpuAtWarm = process.cpuUsage()
      process.send!({ kind: 'warm', at: this.#warmAt })
    }
    if (this.count !== this.#expected) return
    const at = monotonicMs()
    const { user, system } = process.cpuUsage(this.#cpuAtWarm)
    process.send!({
      kind: 'done',
      measured: this.count - this.#warmUp,
      from: this.#warmAt,
      to: at,
      elapsedMs: at - this.#warmAt,
      cpuMs: (user + system) / 1_000,
    })
  }
}
