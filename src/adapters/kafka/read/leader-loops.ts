import { messageOf } from '../../../errors.ts'
import type { TopicPartition } from '../../../forwarder/consume/record-source.ts'
import { pause, retryForever } from '../../../retry-forever.ts'
import type { Logger } from '../../log.ts'
import { answerError } from '../kafkajs-internals.ts'
import type { BrokerConnection } from '../link/broker-connection.ts'
import type { Brokers } from '../link/brokers.ts'
import { aborted } from '../waiting.ts'

export interface LeaderLoopsParts<P extends TopicPartition> {
  brokers: Brokers
  /** All of which anything may be wanted. */
  topics: readonly string[]
  log: Pick<Logger, 'debug'>
  /** What is to be read now, as far as it is known. */
  wanted(): P[]
  /**
   * Asks once for partitions that this broker leads, and handles what comes. Rejects where anything of it is refused, after
   * all the rest was handled.
   * @param succeeding to be called where anything was answered: then the next wait is short
   */
  fetch(connection: BrokerConnection, partitions: readonly P[], succeeding: () => void): Promise<void>
  /** These could not be read: they are asked for again. */
  failed(partitions: readonly P[]): void
  /** Leaders move, and what brokers say meanwhile is no reason to tell anybody. */
  isQuiet(error: unknown, waitMs: number): boolean
  onTrouble(error: unknown): void | Promise<void>
  signal: AbortSignal
}

/** How often partitions that have no leader are looked for, and new ones begun. */
const lookMs = 1_000
/** Kafka's error code for a topic that a broker does not know (Kafka protocol, Error Codes). */
const unknownTopic = 3

/** Asks each broker, for as long as it leads anything that is wanted: one loop a broker, none of which waits for another. */
export class LeaderLoops<P extends TopicPartition> {
  readonly #parts: LeaderLoopsParts<P>
  /** By node id. */
  readonly #loops = new Map<number, Promise<void>>()
  #watch: Promise<void> | null = null

  constructor(parts: LeaderLoopsParts<P>) {
    this.#parts = parts
    for (const topic of parts.topics) parts.brokers.follow(topic)
  }

  /** Looks for leaders from now on. Idempotent. */
  start(): void {
    this.#watch ??= this.#watchLeaders()
  }

  /** More may be wanted now. */
  begin(): void {
    const { brokers, signal } = this.#parts
    if (signal.aborted) return
    for (const { topic, partition } of this.#parts.wanted()) {
      const leader = brokers.leader(topic, partition)
      if (leader === null || this.#loops.has(leader)) continue
      const loop = this.#ask(leader).finally(() => {
        this.#loops.delete(leader)
        // Something may have become wanted in its last turn.
        if (this.#ledBy(leader).length > 0) this.begin()
      })
      this.#loops.set(leader, loop)
    }
  }

  /** Resolves once nothing is asked any more, after the signal has aborted. */
  async ended(): Promise<void> {
    await this.#watch?.catch(() => {})
    await Promise.allSettled(this.#loops.values())
  }

  /** Null once all of it is to stop: a broker may not answer for a long time. */
  async unlessStopped<T>(promise: Promise<T>): Promise<T | null> {
    const stopped = aborted(this.#parts.signal)
    try {
      return await Promise.race([promise, stopped.promise])
    } finally {
      stopped.release()
    }
  }

  async #watchLeaders(): Promise<void> {
    const { signal, brokers, wanted, failed, onTrouble } = this.#parts
    const look = async () => {
      await this.#findLeaders()
      this.begin()
    }
    await retryForever(look, { signal, onError: onTrouble })
    while (!signal.aborted) {
      await pause(lookMs, signal)
      if (signal.aborted) return
      const leaderless = wanted().filter(({ topic, partition }) => brokers.leader(topic, partition) === null)
      if (leaderless.length > 0) {
        failed(leaderless)
        await this.#findLeaders().catch(onTrouble)
      }
      this.begin()
    }
  }

  /** Throws as a broker does that refuses, or what keeps all of them from an answer. */
  async #findLeaders(): Promise<void> {
    const { brokers, topics, signal } = this.#parts
    await this.unlessStopped(brokers.refresh())
    if (signal.aborted) return
    for (const topic of topics) {
      const code = brokers.topicError(topic)
      if (code !== 0) throw answerError(code, topic)
      if (brokers.partitions(topic) === null) throw answerError(unknownTopic, topic)
    }
  }

  #ledBy(leader: number): P[] {
    const { brokers, wanted } = this.#parts
    return wanted().filter(({ topic, partition }) => brokers.leader(topic, partition) === leader)
  }

  /** Resolves once it leads nothing that is wanted, or all of it stops. */
  async #ask(leader: number): Promise<void> {
    const { brokers, log, signal, fetch, failed, isQuiet, onTrouble } = this.#parts
    const work = async (succeeding: () => void): Promise<void> => {
      for (;;) {
        const partitions = this.#ledBy(leader)
        if (partitions.length === 0 || signal.aborted) return
        const connection = brokers.connected(leader) ?? (await this.unlessStopped(brokers.connection(leader)))
        if (connection) await fetch(connection, partitions, succeeding)
      }
    }
    await retryForever(work, {
      signal,
      onError: async (error, waitMs) => {
        failed(this.#ledBy(leader))
        if (isQuiet(error, waitMs))
          log.debug({ node: leader, error: messageOf(error) }, 'leaders are looked for')
        else await onTrouble(error)
        // It may lead them no more.
        await this.#findLeaders().catch(onTrouble)
        this.begin()
      },
    })
  }
}
