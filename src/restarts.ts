import { PostriderError } from './errors.ts'
import { pause } from './retry-forever.ts'
import type { Part } from './supervisor.ts'

/** What is left to the part's own log; pino's logger is one. */
export interface RestartLog {
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

export interface RestartRule {
  /** Restarts after bugs that are allowed within `bugWindowMs`; one more and the part fails for good. */
  bugs: number
  bugWindowMs: number
  /** The wait before a restart, doubled at each failure in a row up to the most. */
  minWaitMs: number
  maxWaitMs: number
}

const defaultRule: RestartRule = { bugs: 5, bugWindowMs: 600_000, minWaitMs: 500, maxWaitMs: 30_000 }

/** After running this many times the longest wait without a failure, a part counts as recovered. */
const wellAfterWaits = 2

/** Why a part is run again. */
export const restartCauses = ['unavailable', 'bug'] as const
export type RestartCause = (typeof restartCauses)[number]

type Verdict = RestartCause | 'final'

/** Infrastructure that is away comes back; a wrong setting does not fix itself; anything else is a bug. */
function judge(error: unknown): Verdict {
  if (error instanceof PostriderError) return error.canRetry ? 'unavailable' : 'final'
  return error instanceof Error && error.name.startsWith('KafkaJS') ? 'unavailable' : 'bug'
}

/**
 * A part that is made and run again when it fails: for ever while infrastructure is away, a bounded number of
 * times after bugs, and not at all after errors that only a person can fix. What it rejects with at last ends
 * the process with an exit code that is not zero.
 * @param onRestart called with the cause of each restart
 */
export function restarting(
  name: string,
  make: () => Part,
  log: RestartLog,
  rule: RestartRule = defaultRule,
  onRestart: (cause: RestartCause) => void = () => {},
): Part {
  return {
    name,
    async run(signal) {
      let bugs: number[] = []
      let waitMs = rule.minWaitMs
      while (!signal.aborted) {
        const startedAt = performance.now()
        try {
          return await make().run(signal)
        } catch (error) {
          const verdict = judge(error)
          // While stopping there is nothing to restart; a failure to drain is still a failure.
          if (verdict === 'final' || signal.aborted) throw error
          const now = performance.now()
          if (verdict === 'bug') {
            bugs = [...bugs.filter((at) => now - at < rule.bugWindowMs), now]
            log.error({ err: error, part: name, bugs: bugs.length }, 'a part failed by a bug')
            if (bugs.length > rule.bugs) throw error
          }
          if (now - startedAt > rule.maxWaitMs * wellAfterWaits) waitMs = rule.minWaitMs
          log.warn({ err: error, part: name, waitMs }, 'a part is started again after a wait')
          onRestart(verdict)
          await pause(waitMs, signal)
          waitMs = Math.min(waitMs * 2, rule.maxWaitMs)
        }
      }
    },
  }
}
