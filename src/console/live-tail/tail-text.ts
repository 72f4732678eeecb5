import { maxCallsPerSecond } from '../../core/live-tail/tail-sample.ts'
import { callText } from '../messages/call-text.ts'
import type { TailLine } from './live-tail.ts'

/** A line of NDJSON, without its end. */
export function tailText(line: TailLine): string {
  switch (line.kind) {
    case 'call':
      return `{"call":${callText(line.call)}}`
    case 'left_out': {
      const { sampled, dropped } = line.leftOut
      return JSON.stringify({
        ...(sampled > 0 && { sampled: { leftOut: sampled, shownPerSecond: maxCallsPerSecond } }),
        ...(dropped > 0 && { dropped: { leftOut: dropped } }),
      })
    }
    case 'waiting':
      return JSON.stringify({ waiting: new Date().toISOString() })
  }
}
