import { connect } from 'node:net'
import { Kafka, logLevel, type Admin, type KafkaConfig } from 'kafkajs'
import { installPatches } from '../adapters/kafka/patches/index.ts'

/**
 * Whether the node that listens at this port of 127.0.0.1 answers, and counts all of these nodes among the
 * cluster's brokers. The node itself counts only once it is registered and takes requests.
 */
export function knowsBrokers(port: number, ids: readonly number[]): Promise<boolean> {
  const brokers = [`127.0.0.1:${port}`]
  // kafkajs asks any broker that the first one names: whatever it asks, this node has to answer.
  const socketFactory: KafkaConfig['socketFactory'] = ({ onConnect }) => connect(port, '127.0.0.1', onConnect)
  return succeeds({ brokers, socketFactory }, async (admin) => {
    const known = (await admin.describeCluster()).brokers.map(({ nodeId }) => nodeId)
    return ids.every((id) => known.includes(id))
  })
}

/** Whether a group's offsets can be had. A broker takes requests for topics before it takes those for groups. */
export function answersForGroups(brokers: string[]): Promise<boolean> {
  return succeeds({ brokers }, async (admin) => {
    await admin.listTopics() // kafkajs finds the group's coordinator only among brokers that it knows.
    await admin.fetchOffsets({ groupId: 'postrider-local-readiness' })
    return true
  })
}

async function succeeds(
  config: Pick<KafkaConfig, 'brokers' | 'socketFactory'>,
  ask: (admin: Admin) => Promise<boolean>,
): Promise<boolean> {
  // kafkajs as it is would print a warning.
  installPatches()
  const kafka = new Kafka({
    clientId: 'postrider-local',
    ...config,
    logLevel: logLevel.NOTHING,
    connectionTimeout: 1000,
    requestTimeout: 5000,
    retry: { retries: 0 },
  })
  const admin = kafka.admin()
  try {
    await admin.connect()
    return await ask(admin)
  } catch {
    return false
  } finally {
    await admin.disconnect().catch(() => {})
  }
}
