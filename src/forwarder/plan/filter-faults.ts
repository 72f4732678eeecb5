import type { Log } from '../log.ts'
import { steadyClock } from '../steady-clock.ts'
import type { DestinationRuntime } from './destination-runtime.ts'

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
