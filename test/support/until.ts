import { setTimeout as delay } from 'node:timers/promises'

/** Looks every few milliseconds until the condition holds; rejects when it does not within `withinMs`. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  withinMs = 10_000,
  what = 'what was waited for',
): Promise<void> {
  const deadline = performance.now() + withinMs
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`${what} did not happen within ${withinMs} ms`)
    await delay(10)
  }
}
