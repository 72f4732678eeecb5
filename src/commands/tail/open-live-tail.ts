import { openLiveCalls } from '../../adapters/kafka/live/live-calls.ts'
import { LiveTail } from '../../console/live-tail/live-tail.ts'
import type { Context } from '../context.ts'

/** Asks for nothing yet. */
export function openLiveTail({ kafka, log, topics, codecs }: Context): LiveTail {
  const options = {
    kafka,
    topic: topics.calls,
    log,
    codec: codecs.calls,
  }
  return new LiveTail({ open: (onCall) => openLiveCalls(options, onCall) })
}
