import { messageOf } from '../../errors.ts'
import { pause } from '../../retry-forever.ts'
import type { AuditOutcome, AuditRuns } from './audit-runs.ts'

export interface AuditScheduleLog {
  info(fields: object, message: string): void
  warn(message: string): void
  error(fields: object, message: string): void
}

/** What two audits have in common, in ms: work that was in the middle at the end of the first is seen by the second. */
const overlapMs = 10 * 60_000
/** The wait after an audit that could not be made, in ms, unless the interval is shorter. */
const againMs = 60_000

/**
 * How long until the next audit, and what it takes in. The interval counts from the last one, whoever asked for it, so
 * that restarts do not add audits.
 */
export function nextAudit(
  last: AuditOutcome | null,
  intervalMs: number,
  now: number,
): { waitMs: number; since: number } {
  // A clock that was set back must not put the audit off for longer than the interval.
  const passed = last ? Math.max(0, now - last.at) : Infinity
  const waitMs = Math.max(0, intervalMs - passed)
  const from = last ? Math.min(last.at, now) : now - intervalMs
  return { waitMs, since: from - overlapMs }
}

/** Audits what is new every `intervalMs` until the signal aborts. Never rejects. */
export async function runAudits(
  audits: AuditRuns,
  intervalMs: number,
  { signal, log, now }: { signal: AbortSignal; log: AuditScheduleLog; now: () => number },
): Promise<void> {
  while (!signal.aborted) {
    const { waitMs, since } = nextAudit(audits.outcome, intervalMs, now())
    await pause(waitMs, signal)
    if (signal.aborted) return
    try {
      const { report } = await audits.run({ since, until: null, signal })
      const { faults, read } = report
      if (report.ok) log.info({ read }, 'audit: everything is accounted for')
      else log.error({ read, faults: faults.slice(0, 20), count: faults.length }, 'audit: calls are missing')
    } catch (error) {
      if (signal.aborted) return
      log.warn(`no audit was made, another try follows: ${messageOf(error)}`)
      await pause(Math.min(againMs, intervalMs), signal)
    }
  }
}
