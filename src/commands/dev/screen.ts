import { print, printable } from '../output.ts'

const labelWidth = 12

/** What `dev` says to the person at the terminal, on stdout. */
export class Screen {
  readonly #isTerminal = process.stdout.isTTY
  #hasProgress = false

  /** A line of its own. Control characters do not reach the terminal. */
  say(text = ''): void {
    this.#clear()
    print(text.split('\n').map(printable).join('\n'))
  }

  /** One thing that is ready: what, and where. */
  ready(label: string, text: string): void {
    this.say(`  ${label.padEnd(labelWidth)}${text}`)
  }

  /** In a terminal, one line that is written over and over until the next one that stays. */
  progress(label: string, text: string): void {
    if (!this.#isTerminal) return
    const line = `  ${label.padEnd(labelWidth)}${printable(text)}`
    process.stdout.write(`\r\u001b[K${line.slice(0, process.stdout.columns - 1)}`)
    this.#hasProgress = true
  }

  #clear(): void {
    if (this.#hasProgress) process.stdout.write('\r\u001b[K')
    this.#hasProgress = false
  }
}
