import { readTail } from '../../adapters/kafka/read/read-range.ts'
import type { Context } from '../../cli/context.ts'
import { usersOf, type AnalyticsCall } from '../../core/call/analytics-call.ts'
import { checkCall } from '../../core/call/check-call.ts'
import type { ErasureIndex } from '../../core/erasure/erasures.ts'
import type { NewestCalls } from './preview.ts'

/** Records that are looked at, of all sources. */
const maxRecords = 2_400

/** The newest calls of the topic that are wanted, the newest first, without those that a deletion request covers. */
export function openNewestCalls(
  { kafka, log, topics, codecs }: Context,
  erased: (stop?: AbortSignal) => Promise<Pick<ErasureIndex, 'covers'>>,
): NewestCalls {
  return async (isWanted, most, signal) => {
    const found: { call: AnalyticsCall; appendedAt: number }[] = []
    await readTail({
      ...{ kafka, topic: topics.calls, log, signal, since: 0, atMost: maxRecords },
      async onRecord({ value, timestamp }) {
        const read = await codecs.calls.read(value)
        const call = read && checkCall(read).call
        if (call && isWanted(call)) found.push({ call, appendedAt: timestamp })
      },
    })
    // After the calls: users erased before they were read are known then.
    const erasures = await erased(signal)
    return (
      found
        // Of those that were appended at the same time, the last one is the newest.
        .toReversed()
        .toSorted((a, b) => b.appendedAt - a.appendedAt)
        .filter(({ call, appendedAt }) => {
          const { sourceId, type } = call
          return !erasures.covers({ sourceId, type, userIds: usersOf(call), appendedAt })
        })
        .slice(0, most)
        .map(({ call }) => call)
    )
  }
}
