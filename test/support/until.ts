import { setTimeout as delay } from 'node:timers/promises'

/** A look may take longer than the wait; one that takes so much longer will never end. */
const lookMs = 60_000

/** Between two looks: twice as long as the last one took, so that most of the machine is left to what is waited for. */
const pause = { factor: 2, minMs: 10, minAskingMs: 25, maxMs: 50 }

/** Looks every few milliseconds until the condition holds; rejects when it does not within `withinMs`. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  withinMs = 10_000,
  what = 'what was waited for',
): Promise<void> {
  const deadline = performance.now() + withinMs
  for (let isLast = false; ;) {
    const began = performance.now()
    const looked = condition()
    const holds =
      typeof looked === 'boolean'
        ? looked
        : await within(withinMs + lookMs, looked, `an answer whether ${what} happened`)
    if (holds) return
    if (isLast) throw new Error(`${what} did not happen within ${withinMs} ms`)
    // After a pause of this process what has come in meanwhile is read first.
    isLast = performance.now() > deadline
    const took = performance.now() - began
    const minMs = typeof looked === 'boolean' ? pause.minMs : pause.minAskingMs
    await delay(Math.min(Math.max(took * pause.factor, minMs), pause.maxMs))
  }
}

/** Passes on what the promise comes to; rejects when it has not settled within `ms`. */
export async function within<T>(ms: number, promise: Promise<T>, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} did not come within ${ms} ms`)), ms)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
