import { SingleBar } from 'cli-progress'

/** How far an audit is, on stderr if that is a terminal. */
export class AuditProgress {
  #bar: SingleBar | null = null
  #phase = ''

  show(phase: string, done: number, total: number): void {
    if (!process.stderr.isTTY) return
    if (!this.#bar || phase !== this.#phase) {
      this.#bar?.stop()
      this.#phase = phase
      this.#bar = new SingleBar({
        format: `reading ${phase} {bar} {value}/{total}, {eta_formatted} left`,
        stream: process.stderr,
        hideCursor: true,
        clearOnComplete: true,
      })
      this.#bar.start(total, done)
    } else {
      this.#bar.update(done)
    }
  }

  /** Idempotent. */
  stop(): void {
    this.#bar?.stop()
    this.#bar = null
  }
}
