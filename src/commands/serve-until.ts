/** How long requests that are in flight may take to end, in ms. */
const graceMs = 10_000

/**
 * Runs what a server serves until the signal aborts: then no request comes in any more, and only when those in flight
 * have ended, what they wait for may end.
 */
export async function serveUntil(
  signal: AbortSignal,
  server: { close(graceMs: number): Promise<void> },
  serving: { run(signal: AbortSignal): Promise<void> },
): Promise<void> {
  const stopping = new AbortController()
  const stop = () => void server.close(graceMs).then(() => stopping.abort())
  if (signal.aborted) stop()
  signal.addEventListener('abort', stop, { once: true })
  try {
    await serving.run(stopping.signal)
  } finally {
    signal.removeEventListener('abort', stop)
    await server.close(graceMs)
  }
}
