import { methodPatch } from './patch.ts'

interface BrokerPool {
  brokers: Record<string, { nodeId: number; connectionPool: { host: string; port: number } }>
  metadata: { brokers: { nodeId: number; host: string; port: number }[] } | null
}

/**
 * kafkajs remembers the address of its seed broker, waits for metadata, and then gives the seed broker the node id that
 * belongs to the address. If the seed's connection closed meanwhile, another broker is the seed by then, and gets a node
 * id that is not its own, for good. Now each broker of the pool has the node id of its address after a refresh, and one
 * at another address is let go of.
 */
export const keepBrokerIds = methodPatch({
  name: 'keep-broker-ids',
  file: 'src/cluster/brokerPool',
  method: 'refreshMetadata',
  fields: { brokers: 'object' },
  async instead(this: BrokerPool, refresh: (topics: string[]) => Promise<unknown>, topics: string[]) {
    await refresh.call(this, topics)
    for (const { nodeId, host, port } of this.metadata?.brokers ?? []) {
      const broker = this.brokers[nodeId]
      if (broker === undefined) continue
      const { connectionPool } = broker
      if (connectionPool.host === host && connectionPool.port === port) broker.nodeId = nodeId
      else delete this.brokers[nodeId]
    }
  },
})
