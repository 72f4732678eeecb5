import { statSync } from 'node:fs'
import { PostriderError, messageOf } from '../errors.ts'

/** In bytes. Throws `usage` for what cannot be read; `needs` is the file that is meant. */
export function sizeOf(file: string, needs: string): number {
  try {
    const stats = statSync(file)
    if (stats.isDirectory()) throw new PostriderError('usage', `${file} is a folder; give ${needs}`)
    return stats.size
  } catch (error) {
    if (error instanceof PostriderError) throw error
    throw new PostriderError('usage', `cannot read ${file}: ${messageOf(error)}`, { cause: error })
  }
}
