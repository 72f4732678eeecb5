import { SingleBar } from 'cli-progress'

/** Short reading is not worth a bar. */
const fewest = 20_000

/** How far the index has followed its topics, on stderr if that is a terminal. */
export class IndexProgress {
  #bar: SingleBar | null = null

  show(done: number, total: number): void {
    if (!process.stderr.isTTY || total < fewest) return
    if (!this.#bar) {
      this.#bar = new SingleBar({
        format: 'indexing {bar} {value}/{total} records, {eta_formatted} left',
        stream: process.stderr,
        hideCursor: true,
        clearOnComplete: true,
      })
      this.#bar.start(total, done)
    } else this.#bar.update(done)
  }

  /** Idempotent. */
  stop(): void {
    this.#bar?.stop()
    this.#bar = null
  }
}
