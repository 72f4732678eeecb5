/** Resolves to null when the signal aborts; `release` takes the listener away again. */
export function aborted(signal: AbortSignal): { promise: Promise<null>; release: () => void } {
  const { promise, resolve } = Promise.withResolvers<null>()
  const onAbort = () => resolve(null)
  if (signal.aborted) onAbort()
  signal.addEventListener('abort', onAbort, { once: true })
  return { promise, release: () => signal.removeEventListener('abort', onAbort) }
}

/** The promise's result, or an error after `ms`. For calls of clients that have no deadline of their own. */
export async function within<T>(
  ms: number,
  promise: Promise<T>,
  errorOf: (message: string) => Error = Error,
): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(errorOf(`no answer within ${ms} ms`)), ms)
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
