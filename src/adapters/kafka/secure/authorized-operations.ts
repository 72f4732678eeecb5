import type { Kafka } from 'kafkajs'
import type { KafkaOperation, Permission } from '../../../core/permissions.ts'
import type { Api } from '../kafkajs-internals.ts'
import type { BrokerConnection } from '../link/broker-connection.ts'
import { Brokers } from '../link/brokers.ts'
import { WireReader, flags, int32, text } from '../wire/kafka-wire.ts'

/** For a question to one broker, in ms. */
const withinMs = 5_000

/** Kafka's codes of operations, which are also their bits. */
const bitOf: Record<KafkaOperation, number> = {
  READ: 3,
  WRITE: 4,
  CREATE: 5,
  DESCRIBE: 8,
  DESCRIBE_CONFIGS: 10,
  ALTER_CONFIGS: 11,
}
const configBits = (1 << bitOf.DESCRIBE_CONFIGS) | (1 << bitOf.ALTER_CONFIGS)
/** What brokers give where they do not say (KIP-430): of what does not exist, say. */
const notSaid = -(2 ** 31)
const [topicAuthorizationFailed, groupAuthorizationFailed] = [29, 30]

/** Versions of requests that ask for operations (KIP-430), all before Kafka's flexible encoding. */
const since = 'Kafka 2.3'
const metadataApi: Api = { apiKey: 3, apiName: 'Metadata', versions: [8, 8], since }
const findCoordinatorApi: Api = { apiKey: 10, apiName: 'FindCoordinator', versions: [2, 2], since }
const describeGroupsApi: Api = { apiKey: 15, apiName: 'DescribeGroups', versions: [3, 3], since }

/**
 * Those of `needs` that this client's user does not have, as the brokers say; what they do not say counts as given.
 * CREATE is never asked for: brokers say it only of what exists. Throws what kafkajs throws when no broker answers, and
 * where brokers are older than such questions.
 */
export async function missingPermissions(kafka: Kafka, needs: readonly Permission[]): Promise<Permission[]> {
  const brokers = new Brokers(kafka, Infinity)
  try {
    const asked = needs.filter(({ operation }) => operation !== 'CREATE')
    const namesOf = (resource: Permission['resource']) => [
      ...new Set(asked.filter((need) => need.resource === resource).map(exampleOf)),
    ]
    const topics = namesOf('topic')
    for (const topic of topics) brokers.follow(topic)
    const operations = {
      topic:
        topics.length > 0 ? await topicOperations(await brokers.any(), topics) : new Map<string, number>(),
      group: new Map<string, number>(),
    }
    for (const group of namesOf('group')) operations.group.set(group, await groupOperations(brokers, group))
    return asked.filter((need) => {
      const bits = operations[need.resource].get(exampleOf(need)) ?? notSaid
      return bits !== notSaid && (bits & (1 << bitOf[need.operation])) === 0
    })
  } finally {
    // Without waiting: what was asked of a broker that hangs would hold it up.
    brokers.close()
  }
}

/** A resource that the permission is about. */
const exampleOf = ({ name, isPrefix }: Permission): string => (isPrefix ? `${name}-` : name)

/** By topic the bits of what is allowed. */
async function topicOperations(
  broker: BrokerConnection,
  topics: readonly string[],
): Promise<Map<string, number>> {
  if (broker.versionOf(metadataApi) === null)
    throw new Error('the brokers do not say what a user may do (Kafka 2.3 does)')
  const answer = await ask(broker, metadataApi, [
    int32(topics.length),
    ...topics.map(text),
    flags(false, false, true),
  ])
  answer.pass(4) // throttle time
  answer.list(() => {
    answer.pass(4)
    answer.text()
    answer.pass(4)
    answer.text()
  }) // brokers
  answer.text() // cluster
  answer.pass(4) // controller
  const found = new Map<string, number>()
  answer.list(() => {
    const error = answer.int16()
    const name = answer.text()!
    answer.pass(1) // is it internal?
    answer.list(() => {
      answer.pass(14) // error, number, leader and its epoch
      for (let lists = 3; lists > 0; lists--) answer.list(() => answer.pass(4))
    }) // partitions
    const operations = answer.int32()
    // It must not be looked at, hence neither read nor written; of its settings that says nothing.
    if (error === topicAuthorizationFailed) found.set(name, configBits)
    else if (error === 0) found.set(name, believable(operations))
  })
  return found
}

/** A client that gets an answer may DESCRIBE: an answer without that is from a broker that does not know such requests. */
const believable = (bits: number): number => ((bits & (1 << bitOf.DESCRIBE)) === 0 ? notSaid : bits)

/** The bits of what is allowed with a group, be it one that there is not. Its coordinator is to be asked. */
async function groupOperations(brokers: Brokers, group: string): Promise<number> {
  const first = await brokers.any()
  if (first.versionOf(findCoordinatorApi) === null) return notSaid
  const found = await ask(first, findCoordinatorApi, [text(group), flags(false)])
  found.pass(4)
  const error = found.int16()
  found.text()
  if (error === groupAuthorizationFailed) return 0
  if (error !== 0) return notSaid
  const coordinator = await brokers.connection(found.int32())
  if (coordinator.versionOf(describeGroupsApi) === null) return notSaid
  const answer = await ask(coordinator, describeGroupsApi, [int32(1), text(group), flags(true)])
  answer.pass(4)
  let operations = notSaid
  answer.list(() => {
    const refused = answer.int16()
    for (let texts = 4; texts > 0; texts--) answer.text()
    answer.list(() => {
      for (let texts = 3; texts > 0; texts--) answer.text()
      answer.passBytes()
      answer.passBytes()
    }) // members
    const its = answer.int32()
    operations = refused === groupAuthorizationFailed ? 0 : refused === 0 ? believable(its) : notSaid
  })
  return operations
}

/** The answer, to be read from its beginning on. */
async function ask(broker: BrokerConnection, api: Api, body: readonly Buffer[]): Promise<WireReader> {
  const read = (payload: Buffer) => ({ payload, throttleMs: payload.readInt32BE(0) })
  const { payload } = await broker.ask(api, Buffer.concat(body), read, withinMs)
  return new WireReader(payload)
}
