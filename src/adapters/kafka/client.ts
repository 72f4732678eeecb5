import { createRequire } from 'node:module'
import kafkajs from 'kafkajs'
import type { Kafka, LogEntry, SASLOptions, logLevel as KafkaLogLevel } from 'kafkajs'
import type { Logger } from 'pino'
import type { Config } from '../../config.ts'

const { Kafka: KafkaClient, logLevel } = kafkajs

interface RequestQueue {
  pending: unknown[]
  throttledUntil: number
  scheduleCheckPendingRequests(): void
}

/**
 * kafkajs 2.2.4 checks its request queue by a timer whose delay is negative while nothing throttles it: Node
 * then warns, and the check runs every millisecond for ever (tulios/kafkajs issues 1556 and 1751). With nothing
 * pending there is nothing to check: each new request looks at the queue by itself.
 */
function stopIdleSpin(): void {
  const require = createRequire(import.meta.url)
  const queue = require('kafkajs/src/network/requestQueue') as { prototype: RequestQueue }
  const schedule = queue.prototype.scheduleCheckPendingRequests
  queue.prototype.scheduleCheckPendingRequests = function (this: RequestQueue) {
    if (this.pending.length > 0 || this.throttledUntil > Date.now()) schedule.call(this)
  }
}

interface OffsetManager {
  autoCommit: boolean
  cluster: {
    fetchTopicsOffset(topics: unknown[]): Promise<{ partitions: { offset: string }[] }[]>
  }
  topicConfigurations: Record<string, object>
  resolvedOffsets: Record<string, Record<number, string>>
  setDefaultOffset(at: { topic: string; partition: number }): Promise<void>
}

/**
 * Where retention has taken what a consumer would read next, kafkajs 2.2.4 commits `earliest` in place of the
 * group's offset, also when committing is not its business (autoCommit off): what was finished, and from where on
 * records are missing, would be known to nobody. With the mend it reads on at the log's start and commits nothing.
 */
function keepCommitsWhenOutOfRange(): void {
  const require = createRequire(import.meta.url)
  const manager = require('kafkajs/src/consumer/offsetManager') as { prototype: OffsetManager }
  const commitDefault = manager.prototype.setDefaultOffset
  manager.prototype.setDefaultOffset = async function (this: OffsetManager, at) {
    if (this.autoCommit) return commitDefault.call(this, at)
    const { topic, partition } = at
    const asked = { topic, partitions: [{ partition }], ...this.topicConfigurations[topic] }
    const [found] = await this.cluster.fetchTopicsOffset([asked])
    this.resolvedOffsets[topic]![partition] = found!.partitions[0]!.offset
  }
}

stopIdleSpin()
keepCommitsWhenOutOfRange()

type PinoLevel = 'error' | 'warn' | 'info' | 'debug'

/** kafkajs speaks of every pause and join at info, and logs as errors what it then mends by itself. */
function levelFor(level: KafkaLogLevel): PinoLevel {
  if (level === logLevel.ERROR) return 'warn'
  return 'debug'
}

/**
 * A kafkajs client on the configured brokers. It logs through `log`, one level lower than kafkajs would: what
 * matters of it is said by those who use it.
 */
export function createKafka(config: Pick<Config, 'kafka'>, log: Logger): Kafka {
  const { brokers, ssl, sasl } = config.kafka
  return new KafkaClient({
    clientId: 'postrider',
    brokers,
    ssl,
    ...(sasl ? { sasl: sasl as SASLOptions } : {}),
    connectionTimeout: 3_000,
    requestTimeout: 30_000,
    retry: { initialRetryTime: 100, maxRetryTime: 5_000, retries: 5 },
    logLevel: logLevel.INFO,
    logCreator: () => {
      const child = log.child({ module: 'kafkajs' })
      return ({ namespace, level, log: entry }: LogEntry) => {
        const { message, timestamp: _timestamp, logger: _logger, ...rest } = entry
        child[levelFor(level)]({ namespace, ...rest }, message)
      }
    },
  })
}
