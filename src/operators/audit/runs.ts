import type { AuditReport, DestinationLine } from '../../core/ledger/audit-report.ts'
import { auditFailure, auditPassed } from '../../core/operational/failures.ts'
import type { OperationalEvent } from '../../core/operational/operational-event.ts'
import { messageOf, PostriderError } from '../../errors.ts'
import { pause } from '../../retry-forever.ts'
import { audit, type AuditOptions, type AuditPhase, type AuditSource, type KeySet } from './audit.ts'

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
  /** Up to then all was audited, one time after another, epoch ms; null: that is not known. */
  coveredTo: number | null
  /** What is not over; null: nothing. */
  open: OpenFailure | null
}

/** What an audit found missing, while no later one that looked there has passed. Times in epoch ms. */
export interface OpenFailure {
  /** When it was found first. */
  at: number
  /** What was audited then begins there; null: with the ledger. */
  since: number | null
  faults: number
}

/** A verdict in short. */
export interface AuditOutcome {
  /** When the audit ended, epoch ms. */
  at: number
  /** Everything is accounted for, also where an earlier audit found something missing. */
  ok: boolean
  /** As the verdict's. */
  coveredTo: number | null
  open: OpenFailure | null
}

/** An audit, while it runs. Times in epoch ms; null: all that there is. */
export interface RunningAudit {
  startedAt: number
  since: number | null
  until: number | null
  phase: AuditPhase
  done: number
  total: number
}

const outcomeOf = ({ at, coveredTo, open }: Omit<AuditOutcome, 'ok'>): AuditOutcome => ({
  at,
  ok: open === null,
  coveredTo,
  open,
})

/** Everything of `later` is within a time that begins at `since` and has no end. */
const beginsBefore = (since: number | null, later: number | null): boolean =>
  since === null || (later !== null && since <= later)

/** What is still open once a later audit has come to its verdict. */
export function openAfter(
  before: OpenFailure | null,
  { at, since, until, report }: Pick<AuditVerdict, 'at' | 'since' | 'until' | 'report'>,
): OpenFailure | null {
  if (report.ok) return before && !(until === null && beginsBefore(since, before.since)) ? before : null
  const faults = report.faults.length
  return before === null
    ? { at, since, faults }
    : { at: before.at, since: beginsBefore(since, before.since) ? since : before.since, faults }
}

/** Up to when all is audited then: an audit that leaves something out between adds nothing. */
const coveredAfter = (
  before: number | null,
  { since, until, startedAt }: Pick<RunningAudit, 'since' | 'until' | 'startedAt'>,
  isFirst: boolean,
): number | null => {
  const goesOn = since === null || isFirst || (before !== null && since <= before)
  return goesOn ? Math.max(before ?? -Infinity, Math.min(until ?? startedAt, startedAt)) : before
}

/** Runs audits, one at a time, and keeps the last report. */
export class AuditRuns {
  readonly #options: AuditRunsOptions
  #running: { state: RunningAudit; ending: AbortController } | null = null
  #outcome: AuditOutcome | null
  #failure: string | null = null

  constructor(options: AuditRunsOptions) {
    this.#options = options
    const last = this.last()
    this.#outcome = last && outcomeOf(last)
  }

  get running(): RunningAudit | null {
    return this.#running?.state ?? null
  }

  /** How the last audit ended; null before the first. */
  get outcome(): AuditOutcome | null {
    return this.#outcome
  }

  /** Why the newest run came to no verdict; null where it came to one, or runs. */
  get failure(): string | null {
    return this.#failure
  }

  last(): AuditVerdict | null {
    const found = this.#options.store.lastAudit()
    if (!found) return null
    const { at } = found
    const kept = JSON.parse(found.report) as Omit<AuditVerdict, 'at'>
    // An earlier version kept neither.
    const { coveredTo = at, open = openAfter(null, { at, ...kept }) } = kept as Partial<AuditVerdict>
    return { at, ...kept, coveredTo, open }
  }

  /** Stops the one that runs: its `run` rejects with `conflict`. False where none does. */
  stop(): boolean {
    this.#running?.ending.abort(new PostriderError('conflict', 'the audit was stopped'))
    return this.#running !== null
  }

  /**
   * Rejects with `conflict` while another one runs.
   * @param isFirst what lies before it is not to be audited
   */
  async run(options: AuditOptions & { isFirst?: boolean }): Promise<AuditVerdict> {
    if (this.#running) throw new PostriderError('conflict', 'an audit is running on this console')
    const { source, newKeySet, store, now } = this.#options
    const last = this.last()
    const { since, until, isFirst = false } = options
    const ending = new AbortController()
    const startedAt = now()
    const state: RunningAudit = { startedAt, since, until, phase: 'tallies', done: 0, total: 0 }
    this.#running = { state, ending }
    this.#failure = null
    try {
      const report = await audit(source(), newKeySet, {
        since,
        until,
        signal: AbortSignal.any([ending.signal, ...(options.signal ? [options.signal] : [])]),
        progress: (phase, done, total) => {
          Object.assign(state, { phase, done, total })
          options.progress?.(phase, done, total)
        },
      })
      ending.signal.throwIfAborted()
      const at = now()
      const open = openAfter(last?.open ?? null, { at, since, until, report })
      const coveredTo = coveredAfter(last?.coveredTo ?? null, { since, until, startedAt }, isFirst)
      const before = last?.reported ?? null
      const failure = auditFailure(report, at)
      const isNews = failure !== null || open === null
      const reported = isNews ? await this.#report(failure, before, at) : before
      store.keepAudit(at, JSON.stringify({ since, until, report, reported, coveredTo, open }))
      this.#outcome = outcomeOf({ at, coveredTo, open })
      return { at, since, until, report, reported, coveredTo, open }
    } catch (error) {
      this.#failure = messageOf(error)
      throw error
    } finally {
      this.#running = null
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
      // The end of what was reported before is sent after another audit.
      return before
    }
  }
}

const iso = (time: number) => new Date(time).toISOString()
const isoOrNull = (time: number | null) => (time === null ? null : iso(time))

/** Of destinations, and of faults; an answer is read by a page, and there can be 100,000 destinations. */
const [maxLines, maxFaults] = [200, 1_000]

/** As the API shows it: destinations out of balance first, then those of which most was planned. */
export function verdictView({ at, since, until, report, open }: AuditVerdict) {
  const { destinations, faults, partitions } = report
  const urgency = ({ balance, planned }: DestinationLine) => (balance === 0 ? planned : Infinity)
  return {
    at: iso(at),
    since: isoOrNull(since),
    until: isoOrNull(until),
    ...report,
    open: open && { at: iso(open.at), since: isoOrNull(open.since), faultCount: open.faults },
    partitions: partitions.map(({ since, ...rest }) => ({ ...rest, since: isoOrNull(since) })),
    destinations: destinations
      .toSorted((one, other) => urgency(other) - urgency(one) || 0)
      .slice(0, maxLines),
    destinationCount: destinations.length,
    unbalancedCount: destinations.filter(({ balance }) => balance !== 0).length,
    sum: sumOf(destinations),
    faults: faults.slice(0, maxFaults),
    faultCount: faults.length,
  }
}

function sumOf(lines: readonly DestinationLine[]): Omit<DestinationLine, 'destinationId'> {
  const sum = (field: keyof Omit<DestinationLine, 'destinationId'>) =>
    lines.reduce((total, line) => total + line[field], 0)
  return {
    planned: sum('planned'),
    carried: sum('carried'),
    replayed: sum('replayed'),
    copies: sum('copies'),
    ahead: sum('ahead'),
    delivered: sum('delivered'),
    waiting: sum('waiting'),
    dead: sum('dead'),
    skipped: sum('skipped'),
    erased: sum('erased'),
    held: sum('held'),
    balance: sum('balance'),
  }
}

/** As the API shows it. */
export const runningView = ({ startedAt, since, until, ...progress }: RunningAudit) => ({
  startedAt: iso(startedAt),
  since: isoOrNull(since),
  until: isoOrNull(until),
  ...progress,
})

export interface AuditScheduleLog {
  info(fields: object, message: string): void
  warn(message: string): void
  error(fields: object, message: string): void
}

/** What two audits have in common, in ms: work that was in the middle at the end of the first is seen by the second. */
const overlapMs = 10 * 60_000
/** The wait after an audit that could not be made, in ms, unless the interval is shorter. */
const againMs = 60_000
/** For so long what was found missing is looked at again by each audit, in ms: it takes longer each time. */
const openAgainMs = 24 * 3_600_000

/**
 * How long until the next audit, and what it takes in: what came since the last, and what is open. The interval counts from
 * the last one, whoever asked for it, so that restarts do not add audits.
 */
export function nextAudit(
  last: AuditOutcome | null,
  intervalMs: number,
  now: number,
): { waitMs: number; since: number | null; isFirst: boolean } {
  // A clock that was set back must not put the audit off for longer than the interval.
  const passed = last ? Math.max(0, now - last.at) : Infinity
  const waitMs = Math.max(0, intervalMs - passed)
  const { coveredTo = null, open = null } = last ?? {}
  const since = (coveredTo === null ? now - intervalMs : Math.min(coveredTo, now)) - overlapMs
  const looksAgain = open !== null && now - open.at < openAgainMs && beginsBefore(open.since, since)
  return { waitMs, since: looksAgain ? open.since : since, isFirst: coveredTo === null }
}

/** Audits what is new every `intervalMs` until the signal aborts. Never rejects. */
export async function runAudits(
  audits: AuditRuns,
  intervalMs: number,
  { signal, log, now }: { signal: AbortSignal; log: AuditScheduleLog; now: () => number },
): Promise<void> {
  while (!signal.aborted) {
    const { waitMs, since, isFirst } = nextAudit(audits.outcome, intervalMs, now())
    await pause(waitMs, signal)
    if (signal.aborted) return
    try {
      const { report, open } = await audits.run({ since, until: null, isFirst, signal })
      const { faults, read } = report
      if (open === null) log.info({ read }, 'audit: everything is accounted for')
      else if (report.ok)
        log.error(
          { read, since: isoOrNull(open.since), faults: open.faults },
          'audit: what came since the last is accounted for, and what was missing before was not looked at',
        )
      else log.error({ read, faults: faults.slice(0, 20), count: faults.length }, 'audit: calls are missing')
    } catch (error) {
      if (signal.aborted) return
      log.warn(`no audit was made, another try follows: ${messageOf(error)}`)
      await pause(Math.min(againMs, intervalMs), signal)
    }
  }
}
