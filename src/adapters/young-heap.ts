import { setFlagsFromString } from 'node:v8'

/**
 * Has V8 leave the space for young objects as large as it is by now (a few MB). Else it grows to 130 MB whatever
 * lives in it: so it does wherever much is made and soon forgotten. For commands that pass millions of records on
 * and should stay small; it costs them no time. The flag is looked at whenever that space is about to grow.
 */
export function boundYoungHeap(): void {
  setFlagsFromString('--semi-space-growth-factor=1')
}
