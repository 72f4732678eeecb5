import kafkajs from 'kafkajs'
import type { Kafka, LogEntry, logLevel as KafkaLogLevel } from 'kafkajs'
import type { Logger } from 'pino'
import type { Config } from '../../config.ts'
import { loginOf, noteLogin, saslOptions } from './secure/kafka-login.ts'
import './kafkajs-mends.ts'
import { tlsOptions } from './secure/tls.ts'

const { Kafka: KafkaClient, logLevel } = kafkajs

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
  const login = loginOf(config.kafka)
  const kafka = new KafkaClient({
    clientId: 'postrider',
    brokers,
    ssl: tlsOptions(ssl),
    ...(sasl && { sasl: saslOptions(sasl, login) }),
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
  noteLogin(kafka, login)
  return kafka
}
