import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createKafka } from '../../../../src/adapters/kafka/patched-client.ts'
import { scriptedCluster } from '../../../support/deployment/scripted-cluster.ts'
import { silentLog } from '../../../support/silent-log.ts'

interface Cluster {
  connect(): Promise<void>
  disconnect(): Promise<void>
  findBroker(of: { nodeId: number }): Promise<unknown>
  brokerPool: {
    brokers: Record<string, { nodeId: number; connectionPool: { host: string; port: number } }>
    seedBroker: { connectionPool: { host: string; port: number } }
    refreshMetadata(topics: string[]): Promise<void>
    removeBroker(address: { host: string; port: number }): void
  }
}

test('when a seed broker is lost during a metadata request, every other broker keeps its own id', async (t) => {
  const scripted = await scriptedCluster(3, [1, 2, 3])
  const kafka = createKafka({ kafka: { brokers: scripted.brokers, ssl: false, sasl: null } }, silentLog)
  const create = Object.getOwnPropertySymbols(kafka).find((one) =>
    one.description?.endsWith('createCluster'),
  )!
  const cluster = (kafka as unknown as Record<symbol, (options: object) => Cluster>)[create]!({})
  t.after(async () => {
    await cluster.disconnect()
    await scripted.close()
  })
  await cluster.connect()
  const { brokerPool: pool } = cluster
  await pool.refreshMetadata(['t'])
  for (const nodeId of [1, 2, 3]) await cluster.findBroker({ nodeId })
  for (let times = 0; times < 20; times++) {
    const { host, port } = pool.seedBroker.connectionPool
    const refreshing = pool.refreshMetadata(['t'])
    await new Promise((resolve) => setImmediate(resolve))
    pool.removeBroker({ host, port })
    await refreshing
    await pool.refreshMetadata(['t'])
    const found = Object.entries(pool.brokers).map(([id, { nodeId, connectionPool }]) => {
      const address = `${connectionPool.host}:${connectionPool.port}`
      return { id: Number(id), nodeId, at: scripted.brokers.indexOf(address) + 1 }
    })
    assert.deepEqual(
      found,
      [1, 2, 3].map((id) => ({ id, nodeId: id, at: id })),
    )
  }
})
