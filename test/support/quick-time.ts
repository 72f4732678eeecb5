// Time that passes as fast as anybody waits for it.
import { syncBuiltinESMExports } from 'node:module'
import type { TestContext } from 'node:test'
import promises from 'node:timers/promises'
import { setImmediate as soon } from 'node:timers/promises'

/** Epoch ms. */
let now = Date.UTC(2026, 0, 1)
let onWait: () => void = () => {}

export const timeNow = (): number => now

/** Something takes its time. */
export const timePasses = (ms: number): void => void (now += ms)

/** Called with each wait. */
export const watchWaits = (watch: () => void): void => void (onWait = watch)

/** Until the test ends, waits of `node:timers/promises` end at once, and `performance.now` counts them. */
export function quickTime(t: TestContext): void {
  const { setTimeout: real } = promises
  promises.setTimeout = (async (ms: number, value: unknown, { signal } = {} as { signal?: AbortSignal }) => {
    await soon()
    now += ms
    onWait()
    signal?.throwIfAborted()
    return value
  }) as typeof real
  syncBuiltinESMExports()
  t.mock.method(performance, 'now', () => now)
  t.after(() => {
    promises.setTimeout = real
    syncBuiltinESMExports()
  })
}
