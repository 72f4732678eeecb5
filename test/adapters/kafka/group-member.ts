import type { Consumer, ConsumerConfig, Kafka } from 'kafkajs'
import { GroupSource, type GroupSourceOptions } from '../../../src/adapters/kafka/group/group-source.ts'
import type { RecordListener } from '../../../src/forwarder/consume/record-source.ts'
import type { deploy } from '../../support/deployment/deployment.ts'
import { silentLog } from '../../support/silent-log.ts'

/** A member of the deployment's group that reads its calls, not started yet. It is stopped before the deployment ends. */
export function groupMember(
  { kafka, config, topics, endFirst }: Awaited<ReturnType<typeof deploy>>,
  given: Partial<GroupSourceOptions> = {},
): GroupSource {
  const source = new GroupSource({
    kafka,
    groupId: config.groupId,
    topics: [topics.calls],
    sessionTimeoutMs: 10_000,
    maxWaitMs: 100,
    log: silentLog,
    ...given,
  })
  endFirst(() => source.stop())
  return source
}

/** Does nothing of what it is not given. */
export const listener = (given: Partial<RecordListener> = {}): RecordListener => ({
  assigned() {},
  rejoining: () => Promise.resolve(),
  lost() {},
  fetched() {},
  cutOff: () => true,
  ...given,
})

/** The client with other consumers: a copy, as what it is known by lies in members of its own. */
export const withConsumers = (kafka: Kafka, consumer: (options: ConsumerConfig) => Consumer): Kafka =>
  Object.assign(Object.create(Object.getPrototypeOf(kafka) as object) as Kafka, kafka, { consumer })
