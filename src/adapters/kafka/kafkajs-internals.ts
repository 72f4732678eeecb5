// The one place that reaches into kafkajs 2.2.4 without changing it: connections to single brokers (TCP, TLS, SASL and
// the brokers' API versions), which its public API does not give out. Whatever is used here is checked first.
import { createRequire } from 'node:module'
import type { Socket } from 'node:net'
import kafkajs, { type Kafka } from 'kafkajs'
import { PostriderError } from '../../errors.ts'

/** Requests of one kind, by Kafka's numbers. */
export interface Api {
  apiKey: number
  apiName: string
  /** Of those versions that Postrider speaks, the oldest and the newest. */
  versions: readonly [oldest: number, newest: number]
  /** The first Kafka whose brokers speak one of them. */
  since: string
}

interface RequestKind {
  apiKey: number
  apiVersion: number
  apiName: string
}

/** An answer that says how long the client is to send nothing more, in ms (KIP-219). */
export interface Throttling {
  throttleMs: number
}

/** A request and how its answer is read, as a connection of kafkajs takes them. */
export interface WireExchange<T> {
  request: RequestKind & { encode(): Promise<unknown> }
  response: { decode(payload: Buffer): Promise<T>; parse(decoded: T): Promise<T> }
}

export interface KafkajsConnection {
  socket?: Socket
  sasl: unknown
  isConnected(): boolean
  isAuthenticated(): boolean
  authHandlers: { onError(): void } | null
  rejectRequests(error: Error): void
  disconnect(): Promise<unknown>
  send<T>(exchange: WireExchange<T>): Promise<T>
  requestQueue: { pending: unknown[]; throttledUntil: number; scheduleCheckPendingRequests(): void }
}

export interface KafkajsBroker {
  connect(): Promise<void>
  versions: Record<number, { minVersion: number; maxVersion: number }> | null
  lookupRequest<T>(apiKey: number, definition: unknown): (options: object) => WireExchange<T>
  connectionPool: { host: string; port: number; pool: KafkajsConnection[] }
}

/** Metadata as kafkajs decodes it, versions 1 to 6. */
export interface MetadataResponse {
  brokers: { nodeId: number; host: string; port: number }[]
  topicMetadata: {
    topicErrorCode: number
    topic: string
    partitionMetadata: {
      partitionErrorCode: number
      partitionId: number
      leader: number
      /** Node ids: of all replicas, and of those in sync. */
      replicas: number[]
      isr: number[]
    }[]
  }[]
}

/** Settings as kafkajs decodes them, versions 0 to 2. */
export interface SettingsResponse {
  resources: { resourceName: string; configEntries: { configName: string; configValue: string }[] }[]
}

/** Makes connections of the client's own settings. */
export interface ConnectionFactory {
  /** Not connected yet. Without an address: the next one of the client's list of brokers. */
  broker(address: { host: string; port: number } | null): Promise<KafkajsBroker>
}

interface Cluster {
  rootLogger: unknown
  connectionPoolBuilder: { build(address?: { host: string; port: number }): Promise<unknown> }
  brokerPool: { createBroker(options: { connectionPool: unknown; logger: unknown }): KafkajsBroker }
}

const require = createRequire(import.meta.url)

const { requests } = require('kafkajs/src/protocol/requests') as { requests: Record<string, unknown> }

const { errorCodes } = require('kafkajs/src/protocol/error') as {
  errorCodes: { code: number; type: string; message: string; retriable: boolean }[]
}

/** Kafka's name for an error code, and what it means; `retriable` where it may pass by itself. */
export function describeErrorCode(code: number): { type: string; message: string; retriable: boolean } {
  return (
    errorCodes.find((known) => known.code === code) ?? {
      type: `error ${code}`,
      message: 'the broker refuses',
      retriable: false,
    }
  )
}

/** The error of a broker's answer as kafkajs throws it, so that all of them are explained in one way. */
export function answerError(code: number, topic: string): Error {
  const { type, message, retriable } = describeErrorCode(code)
  return Object.assign(new Error(`${message} (${topic})`), {
    ...{ name: 'KafkaJSProtocolError', type, code, topic, retriable },
  })
}

const [metadataKey, describeConfigsKey] = [3, 32]

/** A request whose body is encoded already; errors are left in the answer. */
export function exchangeOf<T extends Throttling>(
  kind: RequestKind,
  body: Buffer,
  decode: (payload: Buffer) => T,
): WireExchange<T> {
  const encoded = { buf: body, buffer: body, size: () => body.length }
  return {
    request: { ...kind, encode: () => Promise.resolve(encoded) },
    response: {
      decode(payload) {
        const answer = decode(payload)
        // By this name kafkajs waits before its next request.
        return Promise.resolve(Object.assign(answer, { clientSideThrottleTime: answer.throttleMs }))
      },
      parse: (decoded) => Promise.resolve(decoded),
    },
  }
}

/** A request for the metadata of these topics; the answer is decoded, and its errors are left in it. */
export function metadataExchange(
  broker: KafkajsBroker,
  topics: readonly string[],
): WireExchange<MetadataResponse> {
  const make = broker.lookupRequest<MetadataResponse>(metadataKey, requests.Metadata)
  const { request, response } = make({ topics, allowAutoTopicCreation: false })
  return { request, response: { decode: response.decode, parse: (decoded) => Promise.resolve(decoded) } }
}

/** A request for the settings of these topics; an answer with an error rejects. */
export function settingsExchange(
  broker: KafkajsBroker,
  topics: readonly string[],
): WireExchange<SettingsResponse> {
  const make = broker.lookupRequest<SettingsResponse>(describeConfigsKey, requests.DescribeConfigs)
  const resources = topics.map((name) => ({ type: kafkajs.ConfigResourceTypes.TOPIC, name }))
  return make({ resources, includeSynonyms: false })
}

/**
 * Connections with the settings of a kafkajs client. Throws PostriderError `usage` when the client is not of the
 * version of kafkajs that this was written for.
 */
export function connectionFactory(kafka: Kafka): ConnectionFactory {
  const create = memberBySymbol(kafka, 'private:Kafka:createCluster')
  const cluster = create?.({ allowAutoTopicCreation: false }) as Partial<Cluster> | undefined
  const { connectionPoolBuilder, brokerPool, rootLogger } = cluster ?? {}
  if (!connectionPoolBuilder || typeof connectionPoolBuilder.build !== 'function')
    throw unexpected('cluster.connectionPoolBuilder.build')
  if (typeof brokerPool?.createBroker !== 'function') throw unexpected('cluster.brokerPool.createBroker')
  return {
    async broker(address) {
      const connectionPool = await connectionPoolBuilder.build(address ?? undefined)
      const broker = brokerPool.createBroker({ connectionPool, logger: rootLogger })
      checkBroker(broker)
      for (const connection of broker.connectionPool.pool) stopIdleTimer(connection)
      return broker
    },
  }
}

function memberBySymbol(kafka: Kafka, description: string): ((options: object) => unknown) | undefined {
  const symbol = Object.getOwnPropertySymbols(kafka).find((one) => one.description === description)
  const member = symbol && (kafka as unknown as Record<symbol, unknown>)[symbol]
  return typeof member === 'function' ? (member as (options: object) => unknown) : undefined
}

function checkBroker(broker: KafkajsBroker): void {
  const [connection] = broker.connectionPool?.pool ?? []
  if (!connection) throw unexpected('broker.connectionPool.pool')
  for (const name of ['connect', 'lookupRequest'] as const)
    if (typeof broker[name] !== 'function') throw unexpected(`broker.${name}`)
  for (const name of ['isConnected', 'isAuthenticated', 'rejectRequests', 'disconnect', 'send'] as const)
    if (typeof connection[name] !== 'function') throw unexpected(`connection.${name}`)
  if (typeof connection.requestQueue?.scheduleCheckPendingRequests !== 'function')
    throw unexpected('connection.requestQueue.scheduleCheckPendingRequests')
}

const unexpected = (member: string): PostriderError =>
  new PostriderError(
    'usage',
    `the Kafka client must be one of kafkajs 2.2.4: what it was given has no ${member}`,
  )

/**
 * kafkajs looks at its queue every millisecond while nothing waits in it, by a timer with a negative delay of which Node
 * warns (tulios/kafkajs issues 1556 and 1751). Only this connection is changed: it may live in an application that has
 * kafkajs clients of its own.
 */
function stopIdleTimer({ requestQueue }: KafkajsConnection): void {
  const schedule = requestQueue.scheduleCheckPendingRequests.bind(requestQueue)
  requestQueue.scheduleCheckPendingRequests = () => {
    if (requestQueue.pending.length > 0 || requestQueue.throttledUntil > Date.now()) schedule()
  }
}
