import type { AuditReport } from '../../core/ledger/audit-report.ts'
import { auditFailure, auditPassed } from '../../core/operational/failures.ts'
import type { OperationalEvent } from '../../core/operational/operational-event.ts'
import { messageOf, PostriderError } from '../../errors.ts'
import { pause } from '../../retry-forever.ts'
import { audit, type AuditOptions, type AuditSource, type KeySet } from './audit.ts'

/** Where the last report is kept, as JSON. */
export interface AuditStore {
  lastAudit(): { at: number; report: string } | null
  keepAudit(at: number, report: string): void
}

export interface AuditRunsOptions {
  /** A new view of Kafka for each run. */
  source(): AuditSource
  newKeySet(): KeySet
  store: AuditStore
  /** Resolves once all in-sync replicas have it; to false where nobody has subscribed, so that it was not sent. */
  sendEvent(event: OperationalEvent): Promise<boolean>
  log: { warn(message: string): void }
  /** Epoch ms. */
  now(): number
}

export interface AuditVerdict {
  /** When the audit ended, epoch ms. */
  at: number
  /** What was audited, epoch ms; null: all that there is. */
  since: number | null
  until: number | null
  report: AuditReport
  /** What makes its operational event this one; null where none was sent. */
  reported: string | null
}

/** A verdict in short. */
export interface AuditOutcome {
  /** When the audit ended, epoch ms. */
  at: number
  /** Everything is accounted for. */
  ok: boolean
}

const outcomeOf = ({ at, report }: Pick<AuditVerdict, 'at' | 'report'>): AuditOutcome => ({
  at,
  ok: report.ok,
})

/** Runs audits, one at a time, and keeps the last report. */
export class AuditRuns {
  readonly #options: AuditRunsOptions
  #isRunning = false
  #outcome: AuditOutcome | null

  constructor(options: AuditRunsOptions) {
    this.#options = options
    const last = this.last()
    this.#outcome = last && outcomeOf(last)
  }

  get isRunning(): boolean {
    return this.#isRunning
  }

  /** How the last audit ended; null before the first. */
  get outcome(): AuditOutcome | null {
    return this.#outcome
  }

  last(): AuditVerdict | null {
    const found = this.#options.store.lastAudit()
    return found && { at: found.at, ...(JSON.parse(found.report) as Omit<AuditVerdict, 'at'>) }
  }

  /** Rejects with `conflict` while another one runs. */
  async run(options: AuditOptions): Promise<AuditVerdict> {
    if (this.#isRunning) throw new PostriderError('conflict', 'an audit is running on this console')
    const { source, newKeySet, store, now } = this.#options
    const before = this.last()?.reported ?? null
    this.#isRunning = true
    try {
      const report = await audit(source(), newKeySet, options)
      const { since, until } = options
      const at = now()
      const reported = await this.#report(auditFailure(report, at), before, at)
      store.keepAudit(at, JSON.stringify({ since, until, report, reported }))
      this.#outcome = outcomeOf({ at, report })
      return { at, since, until, report, reported }
    } finally {
      this.#isRunning = false
    }
  }

  /** What was reported last time and is found again is no news. Returns what has been reported, and is not over. */
  async #report(failure: OperationalEvent | null, before: string | null, at: number): Promise<string | null> {
    if ((failure?.identity ?? null) === before) return before
    try {
      const wasSent = await this.#options.sendEvent(failure ?? auditPassed(before!, at))
      return wasSent && failure ? failure.identity : null
    } catch (error) {
      this.#options.log.warn(`no operational event was sent for an audit: ${messageOf(error)}`)
      // An end that could not be sent is sent after the next audit.
      return failure ? null : before
    }
  }
}

/** As the API shows it. */
export function verdictView({ at, since, until, report }: AuditVerdict) {
  const iso = (time: number) => new Date(time).toISOString()
  return {
    at: iso(at),
    since: since === null ? null : iso(since),
    until: until === null ? null : iso(until),
    ...report,
    partitions: report.partitions.map(({ since, ...rest }) => ({
      ...rest,
      since: since === null ? null : iso(since),
    })),
  }
}

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
