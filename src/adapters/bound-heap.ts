import { PerformanceObserver } from 'node:perf_hooks'
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'

const megabyte = 2 ** 20

/**
 * Keeps V8's heap near what lives in it, for processes that pass millions of records on and should stay small: bounds the
 * young space, lets the old one grow to twice what lived in it, and has nothing made there from the start. Flags are
 * looked at whenever a space is about to grow (docs/performance.md has what was measured).
 * @param youngMb what the young space may grow to, both of its halves counted; else it stays as large as it is by now
 */
export function boundHeap(youngMb = 0): void {
  setFlagsFromString('--heap-growing-percent=100')
  allocateYoung()
  if (isAsLarge(youngMb)) {
    setFlagsFromString('--semi-space-growth-factor=1')
    return
  }
  // It doubles in a collection, so that is when to look.
  const collections = new PerformanceObserver(() => {
    if (!isAsLarge(youngMb)) return
    setFlagsFromString('--semi-space-growth-factor=1')
    collections.disconnect()
  })
  collections.observe({ entryTypes: ['gc'] })
}

/**
 * Has every object begin among the young ones. V8 makes objects in the old space from the start where many of their kind
 * survived once, while the process was busy; what they refer to then survives each collection of the young ones too. To
 * be called before the code that makes them has run for long.
 */
export function allocateYoung(): void {
  setFlagsFromString('--no-allocation-site-pretenuring')
}

const isAsLarge = (megabytes: number): boolean =>
  getHeapSpaceStatistics().find((space) => space.space_name === 'new_space')!.space_size >=
  megabytes * megabyte
