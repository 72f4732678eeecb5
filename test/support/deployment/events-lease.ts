import { unlessMoving, type Deployment } from './deployment.ts'
import { until } from '../until.ts'

/**
 * Resolves once a console reads what operational events come from. The first one begins at the ends as they are when it has
 * the lease, which may be long after it takes work: what happened before makes no event.
 */
export function eventsAreRead({ admin, config, topics }: Deployment): Promise<void> {
  const asked = { groupId: `${config.groupId}.events`, topics: [topics.settings] }
  const hasBegun = async () => {
    const found = await unlessMoving(() => admin.fetchOffsets(asked))
    return found?.[0]?.partitions.some(({ offset }) => offset !== '-1') ?? false
  }
  return until(hasBegun, 30_000, 'that operational events are read')
}
