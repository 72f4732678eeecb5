import type { ReplayProgress } from '../../../console/replays/replay-source.ts'
import { noTotals, type ReplayTotals } from '../../../core/replay/replay-job.ts'

/** The order in which a commit's metadata holds them: later ones are added at the end. */
const columns: readonly (keyof ReplayTotals)[] = [
  'held',
  'skipped',
  'failed',
  'delivered',
  'looked',
  'erased',
  'refused',
  'lost',
  'raw',
  'repeated',
]

/** How far a replay is in a partition, as it is committed. */
export const commitOf = ({ topic, partition, position, totals }: ReplayProgress) => ({
  topic,
  partition,
  offset: position,
  metadata: columns.map((column) => totals[column]).join(),
})

/** Null where nothing was committed. */
export function progressOf(commit: {
  topic: string
  partition: number
  position: number | null
  metadata: string | null
}): ReplayProgress | null {
  const { topic, partition, position, metadata } = commit
  if (position === null) return null
  const totals = noTotals()
  const counts = (metadata ?? '').split(',').map(Number)
  for (const [index, column] of columns.entries()) totals[column] = counts[index] || 0
  return { topic, partition, position, totals }
}
