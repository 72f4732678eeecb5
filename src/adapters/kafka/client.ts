import kafkajs from 'kafkajs'
import type { Kafka, LogEntry, logLevel as KafkaLogLevel } from 'kafkajs'
import type { Logger } from 'pino'
import type { Config } from '../../config/config.ts'
import { loginOf, noteLogin, saslOptions, tlsOptions } from './secure/kafka-login.ts'

const { Kafka: KafkaClient, logLevel } = kafkajs

type PinoLevel = 'error' | 'warn' | 'info' | 'debug'

/** kafkajs logs every pause and join at info, and as errors what it then retries by itself. */
function levelFor(level: KafkaLogLevel): PinoLevel {
  if (level === logLevel.ERROR) return 'warn'
  return 'debug'
}

/**
 * A kafkajs client on the configured brokers, of kafkajs as it is: for `postrider/kafka`, which must change nothing in
 * its application. Postrider's own processes take the one of patched-client.ts. It logs through `log`, at lower levels
 * than kafkajs would: what matters is logged by the parts that use it.
 */
export function createKafka(config: Pick<Config, 'kafka'>, log: Logger): Kafka {
  const { brokers, ssl, sasl } = config.kafka
  const login = loginOf(config.kafka)
  const kafka = new KafkaClient({
    clientId: 'postrider',
    brokers,
    ssl: tlsOptions(ssl),
    ...(sasl && { sasl: saslOptions(sasl, login) }),
    connectionTimeout: 3_000,
    // A broker that hangs is given up after this; those that are asked to wait (fetch, join) get it on top.
    requestTimeout: 12_000,
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
  noteLogin(kafka, login)
  return kafka
}
