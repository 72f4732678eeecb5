import { printJson } from '../output.ts'
import { ProgressBar } from '../progress-bar.ts'

/** Erases the line that the bar stands on; it draws itself again with its next update. */
const eraseLine = '\r\u001b[K'

/** What `produce` shows while it runs: a bar, and every bad line at once. */
export class ProduceProgress {
  bad = 0
  readonly #json: boolean
  readonly #totalBytes: number | null
  readonly #bar = new ProgressBar()

  /** Without a size (stdin) only the count is shown. */
  constructor(totalBytes: number | null, json: boolean) {
    this.#json = json
    this.#totalBytes = totalBytes
    this.update(0, 0)
  }

  update(calls: number, bytesRead: number): void {
    const format =
      this.#totalBytes === null
        ? '{calls} calls, {bad} bad lines, {duration_formatted}'
        : '{bar} {percentage}%  {calls} calls, {bad} bad lines, {eta_formatted} left'
    this.#bar.show(format, bytesRead, this.#totalBytes ?? 0, { calls, bad: this.bad })
  }

  badLine(number: number, code: string, message: string): void {
    this.bad++
    if (this.#json) printJson({ line: number, code, message })
    else console.error(`${this.#bar.isShown ? eraseLine : ''}line ${number}: ${code}: ${message}`)
  }

  /** For people, also with --json. */
  note(message: string): void {
    console.error(`${this.#bar.isShown ? eraseLine : ''}postrider: ${message}`)
  }

  /** Idempotent. */
  stop(): void {
    this.#bar.stop()
  }
}
