import type { CommitWatch } from './commit-watch.ts'

const intervalMs = 5_000
/** With everything there, whoever is ready commits what it finishes, ten times a second. */
const stillMs = 60_000

/** Whether both groups go on committing while calls come in: a forwarder can be ready and do so no more. */
export class ProgressWatch {
  readonly #timer: NodeJS.Timeout
  /** By group: since when it is known to have committed nothing. */
  readonly #found = new Set<string>()

  constructor(given: {
    watch: CommitWatch
    groups: readonly string[]
    patience: number
    /** Whether something that commits need was broken since then (performance.now). */
    wasBroken(sinceMs: number): boolean
    finding(text: string): void
  }) {
    const { watch, groups, patience, wasBroken, finding } = given
    const maxMs = stillMs * patience
    const began = Date.now()
    this.#timer = setInterval(() => {
      for (const group of groups) {
        const still = Date.now() - Math.max(began, watch.committedAt(group))
        if (still < maxMs) this.#found.delete(group)
        else if (!this.#found.has(group) && !wasBroken(performance.now() - maxMs)) {
          this.#found.add(group)
          finding(
            `nobody of ${group} has committed for ${Math.round(still / 1_000)} s, with everything there`,
          )
        }
      }
    }, intervalMs)
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}
