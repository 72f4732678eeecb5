import { clusterState } from '../../adapters/kafka/admin/cluster-state.ts'
import { Registry } from '../../adapters/schema-registry/registry.ts'
import { registeredSubjects } from '../../adapters/schema-registry/registered-subjects.ts'
import { InfrastructureView, type Infrastructure } from '../../console/infrastructure/infrastructure.ts'
import { messageOf } from '../../errors.ts'
import type { Context } from '../context.ts'

/** Kafka, the registry and the topics as they are now, for the command and the API. */
export function openInfrastructure({ config, kafka }: Context): InfrastructureView {
  const registry = new Registry(config.registry)
  return new InfrastructureView(async () => {
    const [cluster, subjects] = await Promise.allSettled([
      clusterState(kafka, config),
      registeredSubjects(registry, config),
    ])
    const { topics, ...known } =
      cluster.status === 'fulfilled' ? cluster.value : { clusterId: null, brokers: [], topics: [] }
    return {
      kafka: { problem: problemOf(cluster), addresses: [...config.kafka.brokers], ...known },
      registry: {
        problem: problemOf(subjects),
        url: registry.url,
        subjects: subjects.status === 'fulfilled' ? subjects.value : [],
      },
      topics,
    } satisfies Omit<Infrastructure, 'at'>
  }, Date.now)
}

const problemOf = (settled: PromiseSettledResult<unknown>): string | null =>
  settled.status === 'rejected' ? messageOf(settled.reason) : null
