import type { Logger } from '../adapters/log.ts'
import { messageOf } from '../errors.ts'

let log: Logger | null = null

/** From now on stray errors go to this log instead of plain stderr. */
export function logStrayErrorsTo(target: Logger): void {
  log = target
}

/**
 * Errors that are not awaited are bugs and end the process with exit code 1. All but one: kafkajs lets the
 * time-out of a produce request surface as an unhandled rejection when a broker restarts (tulios/kafkajs issue
 * 1686), while the caller's own promise rejects or is retried as it should; that must not end a forwarder.
 */
export function guardProcess(): void {
  process.on('unhandledRejection', (reason) => {
    if (isKafkaError(reason)) {
      if (log) log.warn({ err: reason }, 'kafkajs dropped a rejected request')
      return
    }
    endWith(reason)
  })
  process.on('uncaughtException', endWith)
  // A reader that has seen enough (`| head`) is no error.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit()
    endWith(error)
  })
}

const isKafkaError = (reason: unknown): boolean =>
  reason instanceof Error && reason.name.startsWith('KafkaJS')

function endWith(reason: unknown): void {
  if (log?.isLevelEnabled('fatal')) log.fatal({ err: reason }, 'a bug: an error that nothing handles')
  console.error(`postrider: a bug: ${messageOf(reason)}`)
  process.exit(1)
}
