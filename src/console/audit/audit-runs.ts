import type { AuditReport } from '../../core/ledger/audit-report.ts'
import { auditFailure } from '../../core/operational/audit-failure.ts'
import type { OperationalEvent } from '../../core/operational/operational-event.ts'
import { messageOf, PostriderError } from '../../errors.ts'
import { audit, type AuditOptions } from './audit.ts'
import type { AuditSource, KeySet } from './audit-source.ts'

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
      const reported = await this.#report(auditFailure(report, at), before)
      store.keepAudit(at, JSON.stringify({ since, until, report, reported }))
      this.#outcome = outcomeOf({ at, report })
      return { at, since, until, report, reported }
    } finally {
      this.#isRunning = false
    }
  }

  /** What was reported last time and is found again is no news. Returns what has been reported. */
  async #report(failure: OperationalEvent | null, before: string | null): Promise<string | null> {
    if (failure === null || failure.identity === before) return failure && before
    try {
      return (await this.#options.sendEvent(failure)) ? failure.identity : null
    } catch (error) {
      this.#options.log.warn(`no operational event was sent for an audit that failed: ${messageOf(error)}`)
      return null
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
