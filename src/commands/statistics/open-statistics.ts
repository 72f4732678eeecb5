import { Statistics } from '../../adapters/store/statistics/statistics-follower.ts'
import type { Context } from '../context.ts'

/** The statistics of the deployment, for commands and API alike. Rejects with `kafka_unavailable`, and `local` for the file. */
export function openStatistics({ config, kafka, log, topics, codecs }: Context): Promise<Statistics> {
  return Statistics.open({ kafka, topics, groupId: config.groupId, folder: config.storePath, codecs, log })
}
