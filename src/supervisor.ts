/** Every long-lived part looks the same: it runs until the signal aborts, then drains and resolves. */
export interface Part {
  name: string
  /** Resolves once stopped and drained; rejects when the part cannot go on. */
  run(signal: AbortSignal): Promise<void>
}

/**
 * Starts parts in their order and runs them side by side until the signal aborts or one of them fails; then stops
 * the others in the reverse order, each drained before the next is asked. A part that ends by itself stops the
 * others too. Rethrows the first failure, once all have ended.
 */
export async function superviseParts(parts: readonly Part[], signal: AbortSignal): Promise<void> {
  const failures: unknown[] = []
  let wake = () => {}
  const stopping = new Promise<void>((resolve) => (wake = resolve))
  if (signal.aborted) wake()
  signal.addEventListener('abort', wake, { once: true })
  const running = parts.map((part) => {
    const controller = new AbortController()
    // Through a promise, so that a part that throws before its first await cannot leave the others running.
    const ended = (async () => part.run(controller.signal))()
      .catch((error: unknown) => void failures.push(error))
      .finally(() => wake())
    return { controller, ended }
  })
  await stopping
  for (const { controller, ended } of running.reverse()) {
    controller.abort()
    await ended
  }
  signal.removeEventListener('abort', wake)
  if (failures.length > 0) throw failures[0]
}
