import type { Kafka } from 'kafkajs'
import { Brokers } from '../link/brokers.ts'
import {
  ackMs,
  byTopic,
  PartitionWrite,
  FailingWrites,
  ProduceFailure,
  kafkaErrors,
  miscount,
  type PartitionBatch,
  type AppendPlace,
  type ProducerLog,
  type WriteLimits,
  type WriteReport,
} from './partition-write.ts'
import { produce, type PartitionAnswer } from './produce-request.ts'
import { newIdentity, Sequences, anonymous, type ProducerIdentity } from './sequences.ts'
import { TopicMetadata, sendAgainMs, wasClosed } from './topic-metadata.ts'

const defaultMetadataMaxAgeMs = 5 * 60_000

/**
 * Writes record batches to Kafka with acks=all. A batch counts as written only when the answer of its leader names its
 * partition without an error; until then it is sent again, to the leader of that moment, after a wait. Only
 * what failed is sent again. The batches of one partition are written one after another, in the order of the calls.
 *
 * Brokers recognise a batch that they have appended already, and append it no second time (KIP-98). Only records that
 * were reported as failed, and are written again by their caller, may lie in the topic twice.
 */
export class KafkaProducer {
  readonly #brokers: Brokers
  readonly #log: ProducerLog
  readonly #topics: TopicMetadata
  readonly #closing = new AbortController()
  /**
   * By topic and partition: the batch whose turn it is. Partitions stay in it, because a Map of what comes and goes would
   * keep what it held (see HashChains).
   */
  readonly #current = new Map<string, PartitionWrite | null>()
  /** By node: what goes out together, in this turn of the event loop. */
  readonly #outgoing = new Map<number, PartitionWrite[]>()
  readonly #failing: FailingWrites
  readonly #sequences = new Sequences()
  #identifying: Promise<void> | null = null

  /** Connects at the first write. Throws PostriderError `usage` for a client that is not of kafkajs 2.2.4. */
  constructor(kafka: Kafka, log: ProducerLog, metadataMaxAgeMs = defaultMetadataMaxAgeMs) {
    this.#brokers = new Brokers(kafka, metadataMaxAgeMs)
    this.#log = log
    this.#failing = new FailingWrites(log)
    this.#topics = new TopicMetadata(kafka, this.#brokers, log, this.#closing.signal)
  }

  /** Null while all goes well; else what Kafka has not acknowledged for seconds, in one line for people. */
  problem(): string | null {
    return this.#failing.problem()
  }

  /** How many partitions the topic has, as far as is known: null before `ready`. */
  partitions(topic: string): number | null {
    return this.#brokers.partitions(topic)
  }

  /** Whether each partition of the topic has a leader, by the newest metadata. */
  hasLeaders(topic: string): boolean {
    return this.#topics.hasLeaders(topic)
  }

  /** Asks the brokers for metadata now. Rejects when none answers. */
  refresh(topic: string): Promise<void> {
    return this.#topics.refresh(topic)
  }

  /**
   * Resolves to the topic's number of partitions once a broker has said it. Rejects with a ProduceFailure at the
   * deadline: code 3 where there is no such topic.
   */
  ready(topic: string, limits: WriteLimits = {}): Promise<number> {
    return this.#topics.ready(topic, limits)
  }

  /**
   * Writes batches of one topic, at most one a partition. Resolves once each has been acknowledged or has failed:
   * at the deadline, or because the broker will not take it. Without a deadline only batches that are too large fail.
   * Rejects with PostriderError `invariant` when `records`, the number of all their records, is not accounted for.
   */
  write(
    topic: string,
    batches: readonly PartitionBatch[],
    records: number,
    limits: WriteLimits = {},
  ): Promise<WriteReport> {
    const { deadline } = limits
    if (this.#closing.signal.aborted) return Promise.reject(wasClosed())
    this.#brokers.follow(topic)
    return new Promise<WriteReport>((resolve, reject) => {
      const report: WriteReport = { acknowledged: [], failed: [] }
      const open = new Set<PartitionWrite>()
      let timer: NodeJS.Timeout | undefined
      const end = () => {
        clearTimeout(timer)
        const fault = miscount(topic, records, report)
        if (fault === null) resolve(report)
        else reject(fault)
      }
      for (const batch of batches) {
        const one = new PartitionWrite(topic, batch, limits, (result) => {
          if (result === 'closed') {
            clearTimeout(timer)
            return reject(wasClosed())
          }
          open.delete(one)
          if (result instanceof ProduceFailure) report.failed.push({ batch, failure: result })
          else
            report.acknowledged.push({ batch, baseOffset: result.baseOffset, appendTime: result.appendTime })
          if (open.size === 0) end()
        })
        open.add(one)
      }
      if (open.size === 0) return end()
      if (deadline !== undefined)
        timer = setTimeout(
          () => {
            for (const one of [...open]) this.#end(one, one.failure ?? notInTime())
          },
          Math.max(0, deadline - performance.now()),
        )
      for (const one of [...open]) this.#begin(one)
    })
  }

  /** What is not acknowledged yet is given up: its writes reject. Idempotent. */
  close(): void {
    if (this.#closing.signal.aborted) return
    this.#closing.abort()
    const turns = [...this.#current.values()]
    // Now the end of one lets no other go.
    this.#current.clear()
    for (const first of turns) {
      for (let one = first; one !== null; one = one.next) {
        if (one.isDone) continue
        this.#finish(one)
        one.settle('closed')
      }
    }
    this.#brokers.close()
  }

  #begin(one: PartitionWrite): void {
    const before = this.#current.get(one.key) ?? null
    if (before === null) {
      this.#current.set(one.key, one)
      this.#send(one)
    } else before.append(one)
  }

  /** Its turn is over: the next batch of the partition may go. */
  #finish(one: PartitionWrite): void {
    one.isDone = true
    this.#failing.forget(one)
    if (this.#current.get(one.key) !== one) return
    let next = one.next
    while (next?.isDone) next = next.next
    if (next) {
      next.follow(one)
      this.#current.set(one.key, next)
      this.#send(next)
    } else this.#current.set(one.key, null)
  }

  #end(one: PartitionWrite, result: ProduceFailure | AppendPlace): void {
    if (one.isDone) return
    if (one.sequence !== null) {
      if (result instanceof ProduceFailure) this.#sequences.abandon(one.key, one.sequence)
      else this.#sequences.advance(one.key, one.sequence, one.batch.count)
    }
    if (!(result instanceof ProduceFailure)) this.#failing.acknowledged(one)
    this.#finish(one)
    one.settle(result)
  }

  #send(one: PartitionWrite): void {
    const leader = this.#brokers.leader(one.topic, one.batch.partition)
    if (leader === null) {
      const failure =
        this.#topics.topicFailure(one.topic) ??
        this.#topics.refusal(one.topic, kafkaErrors.leaderNotAvailable)
      this.#retry(one, failure)
      return
    }
    one.sequence ??= this.#sequences.assign(one.key)
    if (one.sequence === null) {
      void this.#identify(one)
      return
    }
    const outgoing = this.#outgoing.get(leader)
    if (outgoing !== undefined) {
      outgoing.push(one)
      return
    }
    this.#outgoing.set(leader, [one])
    queueMicrotask(() => void this.#flush(leader))
  }

  /** Sends it once there is an identity to send it under. Never rejects. */
  async #identify(one: PartitionWrite): Promise<void> {
    try {
      this.#identifying ??= this.#newIdentity().then((identity) => {
        if (identity === anonymous) this.#log.info({}, notRecognised)
        this.#sequences.begin(identity)
      })
      await this.#identifying
      if (!one.isDone) this.#send(one)
    } catch (error) {
      this.#retry(one, this.#topics.failure(error))
    } finally {
      this.#identifying = null
    }
  }

  async #newIdentity(): Promise<ProducerIdentity> {
    return newIdentity(await this.#brokers.any())
  }

  /** One request for all that goes to the node. Never rejects. */
  async #flush(nodeId: number): Promise<void> {
    let sent = this.#outgoing.get(nodeId)!
    this.#outgoing.delete(nodeId)
    let answers: PartitionAnswer[]
    try {
      const connection = this.#brokers.connected(nodeId) ?? (await this.#brokers.connection(nodeId))
      // The deadline may have passed while it connected: its caller knows that and may send it again by itself.
      sent = sent.filter((one) => this.#mayGo(one))
      if (sent.length === 0) return
      answers = (await produce(connection, byTopic(sent), ackMs(sent))).partitions
    } catch (error) {
      const failure = this.#topics.failure(error)
      for (const one of sent) this.#retry(one, failure)
      return
    }
    for (const one of sent) {
      const answer = answers.find(
        ({ topic, partition }) => partition === one.batch.partition && topic === one.topic,
      )
      if (answer === undefined) this.#retry(one, unnamed())
      else if (answer.errorCode === 0) this.#end(one, answer)
      // It was appended so long ago that the broker does not know where.
      else if (answer.errorCode === kafkaErrors.duplicateSequence) this.#end(one, unknownPlace)
      else this.#retry(one, this.#topics.refusal(one.topic, answer.errorCode))
    }
  }

  #mayGo(one: PartitionWrite): boolean {
    if (!one.isDone && one.mayWrite?.() === false) this.#end(one, notAllowed())
    return !one.isDone
  }

  #retry(one: PartitionWrite, failure: ProduceFailure): void {
    if (one.isDone) return
    one.fail(failure)
    if (failure.isOutOfSequence && one.sequence !== null) {
      this.#sequences.abandon(one.key, one.sequence)
      one.sequence = null
    }
    this.#failing.failed(one, failure)
    if (failure.isTooLarge || (failure.isFinal && one.deadline !== null)) {
      this.#end(one, failure)
      return
    }
    this.#failing.sentAgain(one, failure)
    setTimeout(() => void this.#sendAgain(one), sendAgainMs(one.failures - 1))
  }

  /** The leader may have moved. What cannot be learnt now is asked for again after the next failure. */
  async #sendAgain(one: PartitionWrite): Promise<void> {
    if (one.isDone) return
    await this.#brokers.refresh().catch(() => {})
    if (!one.isDone) this.#send(one)
  }
}

const unknownPlace: AppendPlace = { baseOffset: -1, appendTime: -1 }

const notRecognised =
  'the brokers give this producer no identity (InitProducerId): a batch whose answer is lost may be written twice'

const notInTime = (): ProduceFailure => new ProduceFailure('Kafka did not acknowledge in time', null)

const notAllowed = (): ProduceFailure => new ProduceFailure('another process may have taken over', null)

const unnamed = (): ProduceFailure =>
  new ProduceFailure("the broker's answer does not name the partition", null)
