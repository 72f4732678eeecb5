import { connect } from 'node:net'
import { Kafka, logLevel, type Admin, type KafkaConfig } from 'kafkajs'
import { installPatches } from '../adapters/kafka/patches/index.ts'
import { PostriderError } from '../errors.ts'
import type { ChildExit } from './child-process.ts'
import { startJavaServer, type LocalServer } from './java-server.ts'
import type { KafkaNodeAddress } from './kafka-storage.ts'
import type { LocalParts } from './parts.ts'
import { isPortFree } from './ports.ts'
import { claimStateFolder } from './state-folder.ts'

export interface KafkaNodeOptions {
  parts: LocalParts
  /** As a reader knows it: `Kafka`, `Kafka node 2`. */
  name: string
  address: KafkaNodeAddress
  dataDir: string
  heapMb: number
  /** Aborted at the end of the whole Kafka; nothing starts from then on. */
  closing: AbortSignal
  /** Called when the process has ended. `isAsked`: by `stop` or `kill`, not by itself. */
  onExit: (exit: ChildExit, isAsked: boolean) => void
}

const logName = 'kafka.log'

/** One broker of a local Kafka; it is also one of its controllers. */
export class LocalKafkaNode {
  readonly id: number
  readonly port: number
  readonly controllerPort: number
  /** `host:port`, for clients. */
  readonly broker: string
  /** Its records, its properties and its log file. */
  readonly dataDir: string
  /** Begun again by each start. */
  readonly logFile: string
  readonly #options: KafkaNodeOptions
  #server: LocalServer | null = null
  #starting: { abort: AbortController; ended: Promise<unknown> } | null = null
  #isEndAsked = false

  constructor(options: KafkaNodeOptions) {
    this.#options = options
    this.id = options.address.id
    this.port = options.address.port
    this.controllerPort = options.address.controllerPort
    this.broker = `127.0.0.1:${this.port}`
    this.dataDir = options.dataDir
    this.logFile = `${options.dataDir}/${logName}`
  }

  /** Of its newest process. */
  get pid(): number {
    return this.#server!.pid
  }

  /** True from `start()` until the process has ended. A frozen node runs. */
  isRunning(): boolean {
    return this.#starting !== null || this.#server?.isRunning() === true
  }

  /**
   * SIGTERM: a controlled shutdown, which moves its leaders first; SIGKILL after `deadlineMs` (10 s unless set).
   * Resolves once it is gone; idempotent. A node that starts is ended, and its `start()` rejects.
   */
  async stop(deadlineMs?: number): Promise<void> {
    await this.#abortStart()
    this.#isEndAsked = true
    const stopped = this.#server?.stop(deadlineMs)
    // A frozen process takes the signal only now.
    this.thaw()
    await stopped
  }

  /** SIGKILL: what a crash looks like. Resolves once it is gone; idempotent. Ends frozen nodes too. */
  async kill(): Promise<void> {
    await this.#abortStart()
    this.#isEndAsked = true
    await this.#server?.kill()
  }

  /** SIGSTOP: it answers nothing, and its connections stay open. */
  freeze(): void {
    if (!this.#server?.isRunning()) throw new PostriderError('local', `${this.#options.name} does not run`)
    process.kill(this.#server.pid, 'SIGSTOP')
  }

  /** SIGCONT. Does nothing when the node is not frozen. */
  thaw(): void {
    if (this.#server?.isRunning()) process.kill(this.#server.pid, 'SIGCONT')
  }

  /**
   * Starts it again after `stop` or `kill`, as the same broker: on its ports, with its records. Resolves once it is
   * a broker of the cluster again, which takes a majority of controllers: when most nodes are gone, do not await
   * the first before you start the next. Throws a `local` error when it runs, when a port is taken, and after
   * `stop()` or `kill()` of the whole Kafka.
   */
  start(): Promise<void> {
    return this.#begin(async (signal) => {
      const { name, closing } = this.#options
      if (closing.aborted)
        throw new PostriderError('local', `${name} cannot start: the whole Kafka was ended`)
      for (const port of [this.port, this.controllerPort]) {
        if (await isPortFree(port)) continue
        throw new PostriderError('local', `${name} cannot start again: its port ${port} is taken`)
      }
      await claimStateFolder(this.dataDir, name)
      return this.#startServer(() => knowsBrokers(this.port, [this.id]), signal)
    })
  }

  /** The start of a new Kafka, whose folders and ports are prepared. `isReady` says when the node counts as started. */
  startFirst(isReady: () => Promise<boolean>, signal?: AbortSignal): Promise<void> {
    return this.#begin((aborted) =>
      this.#startServer(isReady, signal ? AbortSignal.any([aborted, signal]) : aborted),
    )
  }

  async #begin(run: (signal: AbortSignal) => Promise<LocalServer>): Promise<void> {
    const { name, closing, onExit } = this.#options
    if (this.isRunning()) throw new PostriderError('local', `${name} runs already`)
    const abort = new AbortController()
    const running = run(AbortSignal.any([abort.signal, closing]))
    this.#starting = { abort, ended: running.catch(() => {}) }
    try {
      const server = await running
      this.#server = server
      this.#isEndAsked = false
      void server.exited.then((exit) => onExit(exit, this.#isEndAsked))
    } finally {
      this.#starting = null
    }
  }

  #startServer(isReady: () => Promise<boolean>, signal: AbortSignal): Promise<LocalServer> {
    const { parts, name, heapMb } = this.#options
    return startJavaServer({
      name,
      java: parts.java,
      args: [
        `-Xmx${heapMb}m`,
        ...parts.kafkaFlags,
        '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn',
        '-Dorg.slf4j.simpleLogger.showDateTime=true',
        '-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd HH:mm:ss,SSS',
        ...['-cp', parts.kafkaClassPath, 'kafka.Kafka', 'server.properties'],
      ],
      env: {},
      dataDir: this.dataDir,
      port: this.port,
      logName,
      isReady,
      signal,
    })
  }

  async #abortStart(): Promise<void> {
    this.#starting?.abort.abort(
      new PostriderError('local', `${this.#options.name} was ended while it started`),
    )
    await this.#starting?.ended
  }
}

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
