import { PostriderError, messageOf } from '../../errors.ts'

/**
 * What `decode` gives, at once where it can. Null for a record that cannot be read for good (`undecodable`), of which
 * `unread` learns why. Throws, or rejects with, all else.
 */
export function readable<T>(
  decode: () => T | Promise<T>,
  unread: (why: string) => void = () => {},
): T | null | Promise<T | null> {
  const failed = (error: unknown): null => {
    if (!(error instanceof PostriderError && error.code === 'undecodable')) throw error
    unread(messageOf(error))
    return null
  }
  try {
    const found = decode()
    return found instanceof Promise ? found.catch(failed) : found
  } catch (error) {
    return failed(error)
  }
}
