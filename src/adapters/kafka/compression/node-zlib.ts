import { UnpackError, isTooLarge } from './output.ts'

/** Says something about this process, and nothing about the bytes. */
const outOfMemory = ['Z_MEM_ERROR', 'ZSTD_error_memory_allocation', 'ERR_ZLIB_INITIALIZATION_FAILED']

/** What Node's zlib throws: an UnpackError where the bytes are the reason. */
export function zlibError(error: unknown, maxBytes: number): unknown {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === undefined || outOfMemory.includes(code)) return error
  return code === 'ERR_BUFFER_TOO_LARGE' ? isTooLarge(maxBytes) : new UnpackError(message)
}
