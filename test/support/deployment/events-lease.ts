import { unlessMoving, type Deployment } from './deployment.ts'
import { until } from '../until.ts'

/**
 * Resolves once a console reads what operational events come from. The first one begins at the ends as they are when it has
 * the lease, which may be long after it takes work: what happened before makes no event.
 */
export function eventsAreRead({ admin, config, topics }: Deployment): Promise<void> {
  const asked = { groupId: `${config.groupId}.events`, topics: [topics.settings, topics.deliveries] }
  const hasBegun = async () => {
    const found = await unlessMoving(() => admin.fetchOffsets(asked))
    return found?.every(({ partitions }) => partitions.every(({ offset }) => Number(offset) >= 0)) ?? false
  }
  return until(hasBegun, 60_000, 'that operational events are read')
}
