import { SingleBar } from 'cli-progress'
import { printJson } from '../output.ts'

/** Erases the line that the bar stands on; it draws itself again with its next update. */
const eraseLine = '\r\u001b[K'

/** What `produce` shows while it runs: a bar on stderr if that is a terminal, and every bad line at once. */
export class ProduceProgress {
  bad = 0
  readonly #json: boolean
  readonly #bar: SingleBar | null

  /** Without a size (stdin) only the count is shown. */
  constructor(totalBytes: number | null, json: boolean) {
    this.#json = json
    if (!process.stderr.isTTY) {
      this.#bar = null
      return
    }
    this.#bar = new SingleBar({
      stream: process.stderr,
      clearOnComplete: true,
      etaBuffer: 100,
      format:
        totalBytes === null
          ? '{calls} calls, {bad} bad lines, {duration_formatted}'
          : '{bar} {percentage}%  {calls} calls, {bad} bad lines, {eta_formatted} left',
    })
    this.#bar.start(totalBytes ?? 0, 0, { calls: 0, bad: 0 })
  }

  update(calls: number, bytesRead: number): void {
    this.#bar?.update(bytesRead, { calls, bad: this.bad })
  }

  badLine(number: number, code: string, message: string): void {
    this.bad++
    if (this.#json) printJson({ line: number, code, message })
    else console.error(`${this.#bar ? eraseLine : ''}line ${number}: ${code}: ${message}`)
  }

  /** Idempotent. */
  stop(): void {
    this.#bar?.stop()
  }
}
