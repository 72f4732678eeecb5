import { setFlagsFromString } from 'node:v8'

/**
 * Keeps V8's heap near what lives in it, for commands that pass millions of records on and should stay small. Flags
 * are looked at whenever a space is about to grow.
 *
 * - The space for young objects stays as large as it is by now, a few MB. Else it grows to 130 MB whatever lives in
 *   it: so it does wherever much is made and soon forgotten. That costs no time.
 * - The space for old ones may grow to twice what lived in it at its last collection; else to four times, where
 *   lots that wait for their acknowledgement outlive the young space. It is collected more often: some 3 % of a sync.
 */
export function boundHeap(): void {
  setFlagsFromString('--semi-space-growth-factor=1')
  setFlagsFromString('--heap-growing-percent=100')
}
