import type { Kafka } from 'kafkajs'
import { connectionFactory, type ConnectionFactory, type MetadataResponse } from '../kafkajs-internals.ts'
import { BrokerConnection, unanswered, type BrokerAddress } from './broker-connection.ts'

/** For metadata. */
const answerWithinMs = 3_000
/** Two questions within this time: the first answer did not help, and another broker is asked. */
const doubtfulMs = 2_000
/** Brokers of the client's own list that are tried in a row. */
const maxSeeds = 3
/** Partitions that were added are found after this. */
const defaultMaxAgeMs = 10_000

interface TopicMetadata {
  /** By partition: the leader's node id, or -1 while there is none. Empty while the topic is not known. */
  leaders: number[]
  /** By partition: node ids of all replicas. */
  replicas: number[][]
  /** Partitions of which some replica is not in sync. */
  outOfSync: ReadonlySet<number>
  /** Kafka's error in the last answer; 0 for none. */
  errorCode: number
}

interface NodeLink {
  address: BrokerAddress
  open: BrokerConnection | null
  opening: Promise<BrokerConnection> | null
}

/** The cluster as a client sees it: which broker leads which partition, and a connection to each that is needed. */
export class Brokers {
  readonly #factory: ConnectionFactory
  readonly #topics = new Map<string, TopicMetadata>()
  readonly #addresses = new Map<number, BrokerAddress>()
  readonly #nodes = new Map<number, NodeLink>()
  /** For what is answered at once: a request that waits for replicas, or for records, would hold the others up. */
  #control: BrokerConnection | null = null
  /** When an address last failed; those that failed longest ago are tried first. */
  readonly #failedAt = new Map<string, number>()
  #refreshing: Promise<void> | null = null
  #refreshedAt = -Infinity
  #isClosed = false

  readonly #maxAgeMs: number

  /**
   * Throws PostriderError `usage` for a client that is not of kafkajs 2.2.4.
   *
   * @param maxAgeMs metadata are asked for again after this
   */
  constructor(kafka: Kafka, maxAgeMs = defaultMaxAgeMs) {
    this.#maxAgeMs = maxAgeMs
    this.#factory = connectionFactory(kafka)
  }

  /** The metadata are so old that partitions may have been added since. */
  get isStale(): boolean {
    return performance.now() - this.#refreshedAt > this.#maxAgeMs
  }

  /** How many partitions the topic has; null while that is not known, or when there is no such topic. */
  partitions(topic: string): number | null {
    const view = this.#topics.get(topic)
    if (view === undefined || view.leaders.length === 0) return null
    if (this.isStale) this.refresh().catch(() => {})
    return view.leaders.length
  }

  /** The node id of the partition's leader; null while there is none. */
  leader(topic: string, partition: number): number | null {
    const leader = this.#topics.get(topic)?.leaders[partition] ?? -1
    return leader < 0 ? null : leader
  }

  /** All replicas of the partition were in sync when the metadata were asked for. */
  isInSync(topic: string, partition: number): boolean {
    return this.leader(topic, partition) !== null && !this.#topics.get(topic)!.outOfSync.has(partition)
  }

  /** Node ids of all its replicas, by the newest metadata; none while the partition is not known. */
  replicas(topic: string, partition: number): readonly number[] {
    return this.#topics.get(topic)?.replicas[partition] ?? []
  }

  /** Rejects unless each replica's broker answers now: metadata may be as old as the last controller. */
  async askReplicas(topic: string, partition: number): Promise<void> {
    const ask = async (nodeId: number) => (await this.connection(nodeId)).metadata([topic], answerWithinMs)
    await Promise.all(this.replicas(topic, partition).map(ask))
  }

  /** Kafka's error for the topic in the newest metadata; 0 for none. */
  topicError(topic: string): number {
    return this.#topics.get(topic)?.errorCode ?? 0
  }

  /** How many brokers the metadata name. */
  get size(): number {
    return this.#addresses.size
  }

  /** The topic is among those whose metadata are asked for. */
  follow(topic: string): void {
    if (!this.#topics.has(topic))
      this.#topics.set(topic, { leaders: [], replicas: [], outOfSync: new Set(), errorCode: 0 })
  }

  /** Asks for the metadata of all topics that are followed. Rejects when no broker answers. */
  refresh(): Promise<void> {
    this.#refreshing ??= this.#refresh().finally(() => (this.#refreshing = null))
    return this.#refreshing
  }

  /** The connection to a node if it is open: asking costs no promise. */
  connected(nodeId: number): BrokerConnection | null {
    const open = this.#nodes.get(nodeId)?.open
    return open?.isOpen ? open : null
  }

  /** Rejects when the node cannot be reached. */
  connection(nodeId: number): Promise<BrokerConnection> {
    const address = this.#addresses.get(nodeId)
    if (address === undefined) return Promise.reject(unanswered(`broker ${nodeId} has no known address`))
    const known = this.#nodes.get(nodeId)
    if (known !== undefined && sameAddress(known.address, address)) {
      if (known.opening !== null) return known.opening
      if (known.open?.isOpen) return Promise.resolve(known.open)
    }
    known?.open?.retire()
    const node: NodeLink = { address, open: null, opening: null }
    this.#nodes.set(nodeId, node)
    node.opening = this.#connect(node).finally(() => (node.opening = null))
    return node.opening
  }

  /** For what any broker may be asked. Rejects when none answers. */
  async any(): Promise<BrokerConnection> {
    if (!this.#control?.isOpen) await this.refresh()
    if (this.#control === null) throw unanswered('no broker is connected')
    return this.#control
  }

  /** Ends the connections, and with an error what is in flight on them. */
  close(): void {
    this.#isClosed = true
    this.#control?.discard(closed())
    for (const { open } of this.#nodes.values()) open?.discard(closed())
    this.#nodes.clear()
  }

  async #connect(node: NodeLink): Promise<BrokerConnection> {
    const connection = await BrokerConnection.open(this.#factory, node.address)
    if (this.#isClosed) {
      connection.discard(closed())
      throw closed()
    }
    node.open = connection
    return connection
  }

  async #refresh(): Promise<void> {
    if (this.#control !== null) {
      const isDoubtful = performance.now() - this.#refreshedAt < doubtfulMs
      // One whose login has run out is still connected.
      if (isDoubtful || !this.#control.isOpen) this.#dropControl(unanswered('another broker is asked'))
      else if ((await this.#ask(this.#control)) === null) return
    }
    let failure: unknown = unanswered('no broker is known')
    for (const address of this.#candidates()) {
      if (this.#isClosed) throw closed()
      try {
        this.#control = await BrokerConnection.open(this.#factory, address)
        if (this.#isClosed) this.#control.discard(closed())
        const refused = await this.#ask(this.#control)
        if (refused === null) return
        failure = refused
      } catch (error) {
        failure = error
      }
      if (address !== null) this.#failedAt.set(keyOf(address), performance.now())
    }
    throw failure
  }

  /** Null, or why it did not answer. */
  async #ask(connection: BrokerConnection): Promise<Error | null> {
    try {
      this.#fold(await connection.metadata([...this.#topics.keys()], answerWithinMs))
      this.#refreshedAt = performance.now()
      return null
    } catch (error) {
      this.#dropControl(error as Error)
      return error as Error
    }
  }

  #dropControl(reason: Error): void {
    if (this.#control !== null) this.#failedAt.set(keyOf(this.#control.address), performance.now())
    this.#control?.discard(reason)
    this.#control = null
  }

  /** Known brokers, those that failed longest ago first, then the client's own list (null: its next). */
  #candidates(): (BrokerAddress | null)[] {
    const failedAt = (address: BrokerAddress) => this.#failedAt.get(keyOf(address)) ?? -Infinity
    const known = [...this.#addresses.values()].sort((a, b) => failedAt(a) - failedAt(b) || 0)
    return [...known, ...new Array<null>(maxSeeds).fill(null)]
  }

  #fold({ brokers, topicMetadata }: MetadataResponse): void {
    // A broker that is just starting may not know the others, or the topics, yet.
    for (const { nodeId, host, port } of brokers) this.#addresses.set(nodeId, { host, port })
    for (const { topicErrorCode, topic, partitionMetadata } of topicMetadata) {
      // Where none is followed, brokers tell of all topics.
      if (!this.#topics.has(topic)) continue
      if (topicErrorCode !== 0 || partitionMetadata.length === 0) {
        const known = this.#topics.get(topic)!
        this.#topics.set(topic, { ...known, errorCode: topicErrorCode })
        continue
      }
      const leaders = new Array<number>(partitionMetadata.length).fill(-1)
      const replicas: number[][] = []
      const outOfSync = new Set<number>()
      for (const { partitionId, leader, isr, ...each } of partitionMetadata) {
        leaders[partitionId] = leader
        replicas[partitionId] = each.replicas
        if (isr.length < each.replicas.length) outOfSync.add(partitionId)
      }
      this.#topics.set(topic, { leaders, replicas, outOfSync, errorCode: 0 })
    }
  }
}

const closed = (): Error => unanswered('the connections were closed')

const keyOf = ({ host, port }: BrokerAddress): string => `${host}:${port}`

const sameAddress = (a: BrokerAddress, b: BrokerAddress): boolean => a.host === b.host && a.port === b.port
