import { createInterface } from 'node:readline/promises'
import { SingleBar } from 'cli-progress'
import { io } from './io.ts'

// How commands print: lists as aligned tables for people, as JSON lines with --json.

/** One value on a line of its own. Bytes are shown as base64, maps and sets never get here. */
export function printJson(value: unknown): void {
  print(JSON.stringify(value, (_key, part: unknown) => bytesAsBase64(part)))
}

/** Buffers have turned themselves into `{type: 'Buffer', data}` before a replacer sees them. */
function bytesAsBase64(part: unknown): unknown {
  if (part instanceof Uint8Array) return Buffer.from(part).toString('base64')
  if (typeof part === 'object' && part !== null && 'type' in part && part.type === 'Buffer' && 'data' in part)
    return Buffer.from(part.data as number[]).toString('base64')
  return part
}

export function print(line: string): void {
  io().stdout.write(`${line}\n`)
}

/** On stderr: what is said beside the output. */
export function printAside(line: string): void {
  io().stderr.write(`${line}\n`)
}

/**
 * Rows under headings in capitals, in columns as wide as their widest cell; numbers stand to the right. Text from outside
 * (names, URLs) cannot move the cursor: control characters are shown as `?`.
 */
export function table(headings: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const cells = [headings.map((heading) => heading.toUpperCase()), ...rows].map((row) =>
    row.map((cell) => printable(String(cell))),
  )
  const widths = headings.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)))
  return cells
    .map((row, index) =>
      row
        .map((cell, column) =>
          index > 0 && typeof rows[index - 1]?.[column] === 'number'
            ? cell.padStart(widths[column]!)
            : cell.padEnd(widths[column]!),
        )
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

export function printTable(
  headings: readonly string[],
  rows: readonly (readonly (string | number)[])[],
): void {
  print(table(headings, rows))
}

/** `1 user`, `2 users`. */
export const count = (number: number, what: string): string => `${number} ${what}${number === 1 ? '' : 's'}`

/** Text from outside on one line of a terminal. */
export function printable(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, '?')
}

/** How far a command is, on stderr if that is a terminal. */
export class ProgressBar {
  readonly #stream = io().stderr
  readonly isShown = this.#stream.isTTY ?? false
  #bar: SingleBar | null = null
  #format = ''

  /** @param format as cli-progress takes it, `{value}`, `{total}` and `values` filled in; another one begins a new bar */
  show(format: string, done: number, total: number, values: object = {}): void {
    if (!this.isShown) return
    if (this.#bar && format === this.#format) return this.#bar.update(done, values)
    this.stop()
    this.#format = format
    this.#bar = new SingleBar({ stream: this.#stream, clearOnComplete: true, etaBuffer: 100, format })
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

/** Whether somebody at a terminal says yes. Where there is none, nobody could be asked: then it is yes. */
export async function agreed(question: string, signal?: AbortSignal): Promise<boolean> {
  const { stdin: input, stderr: output } = io()
  if (!input.isTTY || !output.isTTY) return true
  const terminal = createInterface({ input, output })
  const closed = new Promise<string>((resolve) => terminal.once('close', () => resolve('')))
  try {
    const asked = terminal.question(`${question} [y/N] `, signal ? { signal } : {}).catch(() => '')
    const answer = await Promise.race([asked, closed])
    return /^y(es)?$/i.test(answer.trim())
  } finally {
    terminal.close()
  }
}
