/** Beyond any call that Kafka takes; longer lines are passed over without being held in memory. */
export const maxLineBytes = 4 * 1_048_576

export interface Line {
  /** From 1. */
  number: number
  /** Null when it is too long. */
  text: string | null
  /** Read so far, this line included. */
  bytesRead: number
}

const lineFeed = 0x0a
const byteOrderMark = '\ufeff'

/**
 * The lines of a file or of stdin. Split at line feeds alone: Node's own readline splits at U+2028 too, which
 * JSON allows within a string. Empty lines are counted and left out.
 */
export async function* linesOf(input: AsyncIterable<Buffer>): AsyncGenerator<Line, void, undefined> {
  let parts: Buffer[] = []
  let held = 0
  let number = 0
  let bytesRead = 0
  const take = (): Line | null => {
    number++
    let text = held > maxLineBytes ? null : Buffer.concat(parts).toString('utf8')
    if (number === 1 && text?.startsWith(byteOrderMark)) text = text.slice(1)
    parts = []
    held = 0
    return text !== null && text.trim() === '' ? null : { number, text, bytesRead }
  }
  const hold = (part: Buffer): void => {
    held += part.length
    if (held <= maxLineBytes) parts.push(part)
    else parts = []
  }
  for await (const chunk of input) {
    let from = 0
    for (let end = chunk.indexOf(lineFeed); end >= 0; end = chunk.indexOf(lineFeed, from)) {
      hold(chunk.subarray(from, end))
      bytesRead += end + 1 - from
      from = end + 1
      const line = take()
      if (line) yield line
    }
    hold(chunk.subarray(from))
    bytesRead += chunk.length - from
  }
  if (held > 0) {
    const line = take()
    if (line) yield line
  }
}
