import { SingleBar } from 'cli-progress'

/** How far a command is, on stderr if that is a terminal. */
export class ProgressBar {
  readonly isShown = process.stderr.isTTY
  #bar: SingleBar | null = null
  #format = ''

  /** @param format as cli-progress takes it, `{value}`, `{total}` and `values` filled in; another one begins a new bar */
  show(format: string, done: number, total: number, values: object = {}): void {
    if (!this.isShown) return
    if (this.#bar && format === this.#format) return this.#bar.update(done, values)
    this.stop()
    this.#format = format
    this.#bar = new SingleBar({ stream: process.stderr, clearOnComplete: true, etaBuffer: 100, format })
    this.#bar.start(total, done, values)
  }

  /** Idempotent. */
  stop(): void {
    this.#bar?.stop()
    this.#bar = null
  }
}

/** Shows the progress of some work, and takes the bar away at its end, whatever comes of it. */
export async function withProgress<T>(work: (bar: ProgressBar) => Promise<T>): Promise<T> {
  const bar = new ProgressBar()
  try {
    return await work(bar)
  } finally {
    bar.stop()
  }
}
