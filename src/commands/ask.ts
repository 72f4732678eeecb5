import { createInterface } from 'node:readline/promises'
import type { Readable, Writable } from 'node:stream'

interface Terminal {
  input: Readable & { isTTY?: boolean }
  output: Writable & { isTTY?: boolean }
}

/** Whether somebody at a terminal says yes. Where there is none, nobody could be asked: then it is yes. */
export async function agreed(
  question: string,
  { input, output }: Terminal = { input: process.stdin, output: process.stderr },
  signal?: AbortSignal,
): Promise<boolean> {
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
