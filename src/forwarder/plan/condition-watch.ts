import { leftOutBy, type LeftOut } from '../../core/call/filter.ts'
import type { AnalyticsCall } from '../../core/call/analytics-call.ts'
import type { CallValues } from '../../core/expression/call-values.ts'
import type { Log } from '../log.ts'
import { steadyClock } from '../steady-clock.ts'
import type { DestinationRuntime } from './destination-runtime.ts'

/**
 * What an evaluation may take, in ms. All that it does is counted (core/expression/evaluation.ts) and takes a few ms
 * at most, so one beyond this is a fault of ours that a sender has found, and its next call would find it again.
 */
export const maxEvaluationMs = 20
/** A pause of the process, or a collection of garbage, does not fall into the evaluation each time. */
const repetitions = 3

/** Where a call is in Kafka, as far as it is known. */
export interface CallPlace {
  topic: string
  partition: number | null
  offset: number
}

export interface SlowEvaluation extends CallPlace {
  messageId: string
  /** CPU time, the least of some evaluations. */
  cpuMs: number
}

/** Finds the condition that takes too long for a call. */
export class ConditionWatch {
  readonly #isSlow: (destinationId: string, slow: SlowEvaluation) => void

  constructor(isSlow: (destinationId: string, slow: SlowEvaluation) => void) {
    this.#isSlow = isSlow
  }

  /** What the destination's filter says of the call. */
  leftOutBy(
    { id, filter }: DestinationRuntime,
    { type, event, messageId }: AnalyticsCall,
    values: () => CallValues,
    place: () => CallPlace,
  ): LeftOut | null {
    if (filter === null || type === 'unknown') return null
    const evaluate = () => leftOutBy(filter, type, event, values)
    const begin = steadyClock.now()
    const leftOut = evaluate()
    if (steadyClock.now() - begin > maxEvaluationMs) {
      const cpuMs = leastCpuMs(evaluate)
      if (cpuMs > maxEvaluationMs) this.#isSlow(id, { messageId, ...place(), cpuMs: Math.round(cpuMs) })
    }
    return leftOut
  }
}

/** Of some repetitions, and of no more once one was quick enough. The call's values were parsed before. */
export function leastCpuMs(work: () => void): number {
  let least = Infinity
  for (let count = 0; count < repetitions && least > maxEvaluationMs; count++) {
    const before = process.threadCpuUsage()
    work()
    const { user, system } = process.threadCpuUsage(before)
    least = Math.min(least, (user + system) / 1_000)
  }
  return least
}

/** A destination's faults are logged once in that time, in ms: a condition can fail for every call. */
const logIntervalMs = 60_000

/** Counts calls that a condition leaves out, and reports the conditions that cannot be evaluated. */
export class FilterFaults {
  readonly #log: Pick<Log, 'warn'>
  readonly #reports = new Map<string, { at: number; faults: number }>()

  constructor(log: Pick<Log, 'warn'>) {
    this.#log = log
  }

  /** @param fault why the condition could not be evaluated, without anything of the call; null: it does not hold */
  filtered({ id, metrics }: DestinationRuntime, fault: string | null): void {
    metrics.filtered(fault !== null)
    if (fault === null) return
    const now = steadyClock.now()
    const report = this.#reports.get(id) ?? { at: -Infinity, faults: 0 }
    this.#reports.set(id, report)
    report.faults++
    if (now - report.at < logIntervalMs) return
    this.#log.warn(
      { destination: id, reason: fault, calls: report.faults },
      'a condition (--where) cannot be evaluated for a call: the destination does not get it',
    )
    report.at = now
    report.faults = 0
  }
}
