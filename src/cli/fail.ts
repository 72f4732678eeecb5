// How the program ends when something goes wrong.
import { inspect } from 'node:util'
import { describeKafkaError } from '../adapters/kafka/kafka-error.ts'
import type { KafkaLogin } from '../adapters/kafka/secure/kafka-login.ts'
import type { Logger } from '../adapters/log.ts'
import { PostriderError, messageOf } from '../errors.ts'
import { io, type ProgramIo } from './io.ts'
import { processIo } from './process-io.ts'
import { printAside } from './terminal.ts'

/** How long a failed command may take to close what it had opened before it is ended regardless. */
const closingMs = 2_000

const logins = new WeakMap<ProgramIo, KafkaLogin>()

/** How this run logs in to the brokers, for messages about their refusals. */
export const failAs = (login: KafkaLogin): void => void logins.set(io(), login)

/** Says on stderr what went wrong and sets the exit code: 2 for wrong usage, else 1. */
export function failWith(error: unknown): void {
  const { env, ownsProcess } = io()
  printAside(describeError(error))
  io().exitCode = error instanceof PostriderError && error.code === 'usage' ? 2 : 1
  if (env.LOG_LEVEL === 'debug' || env.LOG_LEVEL === 'trace') printAside(inspect(error))
  if (ownsProcess) setTimeout(() => process.exit(), closingMs).unref()
}

function describeError(error: unknown): string {
  // Wrong settings are a line each; everything else is one line.
  if (error instanceof PostriderError && error.code === 'usage') return `postrider: ${error.message}`
  const login = logins.get(io())
  const refused = login && describeKafkaError(error, login)
  if (refused?.isRefusal && !(error instanceof PostriderError)) return `postrider: ${refused.message}`
  if (error instanceof Error && error.name.startsWith('KafkaJS'))
    return `postrider: Kafka: ${messageOf(error)}. Check KAFKA_BROKERS and that Kafka is up (\`postrider dev\` starts one)`
  if (error instanceof PostriderError) return `postrider: ${messageOf(error)}`
  return `postrider: ${messageOf(error)} (LOG_LEVEL=debug shows where)`
}

const logs = new WeakMap<ProgramIo, Logger>()

/** From now on stray errors of this run go to this log instead of plain stderr. */
export const logStrayErrorsTo = (log: Logger): void => void logs.set(io(), log)

const logOfProcess = (): Logger | undefined => logs.get(processIo)

const unread = new WeakSet<ProgramIo>()

/** From now on this run changes something: it goes on to its end, also where nobody reads what it prints any more. */
export const goOnUnread = (): void => void unread.add(io())

/**
 * Errors that are not awaited are bugs and end the process with exit code 1. All but one: kafkajs lets the
 * time-out of a produce request surface as an unhandled rejection when a broker restarts (tulios/kafkajs issue
 * 1686), while the caller's own promise rejects or is retried as it should; that must not end a forwarder.
 */
export function guardProcess(): void {
  process.on('unhandledRejection', (reason) => {
    if (isKafkaError(reason)) {
      logOfProcess()?.warn({ err: reason }, 'kafkajs dropped a rejected request')
      return
    }
    endWith(reason)
  })
  process.on('uncaughtException', endWith)
  // A reader that has seen enough (`| head`) is no error.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') endWith(error)
    if (!unread.has(processIo)) process.exit()
  })
  // Nobody is left to be told.
  process.stderr.on('error', () => {})
}

const isKafkaError = (reason: unknown): boolean =>
  reason instanceof Error && reason.name.startsWith('KafkaJS')

function endWith(reason: unknown): never {
  const log = logOfProcess()
  if (log?.isLevelEnabled('fatal')) log.fatal({ err: reason }, 'a bug: an error that nothing handles')
  printAside(`postrider: a bug: ${messageOf(reason)}`)
  process.exit(1)
}
