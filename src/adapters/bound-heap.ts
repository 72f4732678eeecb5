import { PerformanceObserver } from 'node:perf_hooks'
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'

const megabyte = 2 ** 20

/**
 * Keeps V8's heap near what lives in it, for processes that pass millions of records on and should stay small. Flags
 * are looked at whenever a space is about to grow.
 *
 * - The space for young objects grows no more once it has `youngMb`, both of its halves counted; without it, it stays
 *   as large as it is by now, a few MB. Else it grows to 130 MB whatever lives in it: so it does wherever much is made
 *   and soon forgotten. A sync is as fast with a few MB; a forwarder, where what is on its way outlives a small space
 *   and is copied out of it, was a tenth slower with 16 MB, and is not with 32 (measured while its lanes were a Map:
 *   see HashChains).
 * - The space for old ones may grow to twice what lived in it at its last collection; else to four times, where
 *   batches that wait for their acknowledgement outlive the young space. It is collected more often: some 3 % of a sync.
 * - Nothing is made in the old space from the start. V8 does so at places whose objects outlived the young space before,
 *   and stays with it: after a while with a bad endpoint, headers of all answers were made there, the whole heap was
 *   collected every 1.4 s, for 25 ms, instead of every 4, and a delivery cost 5 % more.
 */
export function boundHeap(youngMb = 0): void {
  setFlagsFromString('--heap-growing-percent=100')
  setFlagsFromString('--no-allocation-site-pretenuring')
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

const isAsLarge = (megabytes: number): boolean =>
  getHeapSpaceStatistics().find((space) => space.space_name === 'new_space')!.space_size >=
  megabytes * megabyte
