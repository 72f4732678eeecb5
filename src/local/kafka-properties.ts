export type KafkaProperties = Record<string, string | number | boolean>

/** Where a node listens on 127.0.0.1: for clients, and for the controllers of the other nodes. */
export interface KafkaNodeAddress {
  /** `node.id`: 1, 2 or 3. */
  id: number
  port: number
  controllerPort: number
}

/**
 * The server properties of one node of a cluster whose nodes are `all`. Paths are relative to the node's folder,
 * so that it can be moved and its name needs no escaping.
 */
export function serverProperties(node: KafkaNodeAddress, all: readonly KafkaNodeAddress[]): KafkaProperties {
  const voters = all.map(({ id, controllerPort }) => `${id}@127.0.0.1:${controllerPort}`)
  return {
    'process.roles': 'broker,controller',
    'node.id': node.id,
    'controller.quorum.voters': voters.join(),
    listeners: `PLAINTEXT://127.0.0.1:${node.port},CONTROLLER://127.0.0.1:${node.controllerPort}`,
    'advertised.listeners': `PLAINTEXT://127.0.0.1:${node.port}`,
    'controller.listener.names': 'CONTROLLER',
    'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT',
    'log.dirs': 'log',
    ...(all.length === 1 ? oneCopy : threeCopies),
    // Few users: small internal topics make for a quick start.
    'offsets.topic.num.partitions': 4,
    'transaction.state.log.num.partitions': 4,
    'group.initial.rebalance.delay.ms': 0,
    // A misspelt topic is an error, not a new topic.
    'auto.create.topics.enable': false,
    // A project left alone for weeks goes on where it stopped (7 days is the default).
    'offsets.retention.minutes': 30 * 24 * 60,
    // Deleted topics leave the disk soon, and thousands of small partitions take little of it.
    'log.segment.delete.delay.ms': 1000,
    'log.index.size.max.bytes': 1024 * 1024,
    'log.cleaner.dedupe.buffer.size': 16 * 1024 * 1024,
  }
}

/** One node: nothing can be kept twice. */
const oneCopy: KafkaProperties = {
  'offsets.topic.replication.factor': 1,
  'transaction.state.log.replication.factor': 1,
  'transaction.state.log.min.isr': 1,
  'share.coordinator.state.topic.replication.factor': 1,
  'share.coordinator.state.topic.min.isr': 1,
  // After a kill the next start has to wait this long (9 s unless set), until the broker of before counts as gone.
  'broker.session.timeout.ms': 3000,
  'broker.heartbeat.interval.ms': 500,
}

/** As production clusters are set: three copies, and what is acknowledged lies in at least two of them. */
const threeCopies: KafkaProperties = {
  'default.replication.factor': 3,
  'min.insync.replicas': 2,
  'offsets.topic.replication.factor': 3,
  'transaction.state.log.replication.factor': 3,
  'transaction.state.log.min.isr': 2,
  'share.coordinator.state.topic.replication.factor': 3,
  'share.coordinator.state.topic.min.isr': 2,
  'unclean.leader.election.enable': false,
  // Leaders of a node that is killed or frozen move after this time (9 s unless set).
  'broker.session.timeout.ms': 6000,
  'broker.heartbeat.interval.ms': 500,
  // A node that is back leads its partitions again this soon (5 min unless set).
  'leader.imbalance.check.interval.seconds': 5,
}

export function propertiesText(properties: KafkaProperties): string {
  return Object.entries(properties)
    .map(([key, value]) => `${key}=${String(value).replaceAll('\\', '\\\\')}\n`)
    .join('')
}
