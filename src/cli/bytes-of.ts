import { createReadStream } from 'node:fs'
import { addAbortSignal } from 'node:stream'
import { sizeOf } from './flags.ts'
import { io, pathOf, stopSignal } from './io.ts'
import { printAside } from './terminal.ts'

/** Read from a file at once. */
const chunkBytes = 256 * 1_024

/**
 * A file, or stdin for `-`; `needs` is what is meant. Throws `usage` for what cannot be read; ends with the command.
 */
export function bytesOf(file: string, needs: string): AsyncIterable<Uint8Array> {
  if (file !== '-') sizeOf(file, needs)
  else if (io().stdin.isTTY) printAside(`Reading ${needs} from the terminal; Ctrl-D ends.`)
  const input = file === '-' ? io().stdin : createReadStream(pathOf(file), { highWaterMark: chunkBytes })
  return addAbortSignal(stopSignal(), input)
}
