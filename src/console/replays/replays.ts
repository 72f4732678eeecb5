import { isoOf, isoOrNull } from '../../core/iso-time.ts'
import {
  addTotals,
  isUnfinished,
  noTotals,
  overlaps,
  sentOf,
  type ReplayJob,
  type ReplayRange,
  type ReplayTotals,
} from '../../core/replay/replay-job.ts'
import { termsFaults } from '../../core/replay/replay-rules.ts'
import type { RequestKey } from '../../core/settings/command-id.ts'
import { PostriderError } from '../../errors.ts'
import { SettingsRefused } from '../settings-writer.ts'
import { waitsFor } from './chosen-calls.ts'
import { dryRun, type DryRunReport } from './dry-run.ts'
import { keptSince } from './kept-since.ts'
import type { ReplayRig } from './replay-source.ts'

/** A replay as it is now. */
export interface ReplayStatus {
  job: ReplayJob
  totals: ReplayTotals
  /** About how many records are to be looked at; null where that is not known. */
  toLook: number | null
  /** Why it sends nothing at the moment. */
  waitsFor: 'disabled' | 'paused' | null
  /** Unfinished replays that were there before and may send the same calls. */
  overlapping: string[]
}

/** Replays, for commands and API alike. */
export interface Replays {
  /** Throws SettingsRefused with every fault. `repeated`: the request had been made before. */
  start(
    terms: ReplayRange,
    request: RequestKey | null,
    signal: AbortSignal,
  ): Promise<{ status: ReplayStatus; repeated: boolean }>
  dryRun(
    terms: ReplayRange,
    signal: AbortSignal,
    progress: (looked: number, total: number) => void,
  ): Promise<DryRunReport>
  /** The oldest first. */
  list(): ReplayJob[]
  /** Throws `not_found`. */
  show(id: string): Promise<ReplayStatus>
  /** Throws SettingsRefused: `not_found`, or `conflict` where it has ended. */
  turn(id: string, turn: 'pause' | 'resume' | 'cancel'): Promise<ReplayStatus>
}

export function replaysOf(rig: ReplayRig): Replays {
  const { settings, source, topics, now } = rig
  const jobOf = (id: string): ReplayJob => {
    const job = settings.state.replays.get(id)
    if (job) return job
    throw new PostriderError(
      'not_found',
      `replay ${JSON.stringify(id)} does not exist; \`postrider replays list\` shows those of the last 30 days`,
    )
  }
  const totalsOf = async (job: ReplayJob): Promise<ReplayTotals> => {
    if (job.totals) return job.totals
    const sum = noTotals()
    for (const { totals } of await rig.progress(job.id)) addTotals(sum, totals)
    return sum
  }
  const statusOf = async (job: ReplayJob): Promise<ReplayStatus> => {
    const { destinations, replays } = settings.state
    const others = [...replays.values()].filter(
      (other) =>
        other.id !== job.id &&
        isUnfinished(other) &&
        other.createdAt <= job.createdAt &&
        overlaps(job, other),
    )
    return {
      job,
      totals: await totalsOf(job),
      toLook: isUnfinished(job) && job.pauseId === null ? await toLook(job) : null,
      waitsFor: job.state === 'running' ? waitsFor(destinations.get(job.destinationId) ?? null) : null,
      overlapping: isUnfinished(job) ? others.map(({ id }) => id) : [],
    }
  }
  const toLook = async ({ since, until }: ReplayJob): Promise<number> => {
    const [from, to] = [await source.spans(topics.calls, since), await source.spans(topics.calls, until)]
    const sum = (spans: typeof from) => spans.reduce((total, { low }) => total + low, 0)
    return Math.max(0, sum(to) - sum(from))
  }
  return {
    async start(terms, request, signal) {
      await settings.catchUp(signal)
      const at = now()
      // Before retention is looked at, which takes a moment.
      const faults = termsFaults(terms, settings.state.destinations.get(terms.destinationId), at)
      if (faults.length > 0) throw new SettingsRefused(faults)
      const kept = await keptSince(terms.since, source, topics.calls, at, signal)
      const id = rig.newId(at)
      const { event, repeated } = await settings.perform(
        { type: 'start_replay', id, terms, pauseId: null, keptSince: kept, at },
        { request },
      )
      const made = (event as { replay: ReplayJob }).replay
      return { status: await statusOf(settings.state.replays.get(made.id) ?? made), repeated }
    },
    dryRun: (terms, signal, progress) => dryRun(terms, rig, signal, progress),
    list: () => [...settings.state.replays.values()],
    show: (id) => statusOf(jobOf(id)),
    async turn(id, turn) {
      if (turn === 'cancel') {
        const totals = await totalsOf(jobOf(id))
        await settings.perform({ type: 'cancel_replay', id, at: now(), totals })
      } else await settings.perform({ type: `${turn}_replay`, id, at: now() })
      return statusOf(jobOf(id))
    },
  }
}

// As JSON, for the admin API and `--json` alike.
export const jobView = ({
  since,
  until,
  createdAt,
  keptSince: kept,
  changedAt,
  totals: _,
  ...job
}: ReplayJob) => ({
  ...job,
  since: isoOf(since),
  until: isoOf(until),
  keptSince: isoOrNull(kept),
  createdAt: isoOf(createdAt),
  changedAt: isoOf(changedAt),
})

export const statusView = ({ job, totals, toLook, waitsFor: waits, overlapping }: ReplayStatus) => ({
  ...jobView(job),
  sent: sentOf(totals),
  totals,
  toLook,
  waitsFor: waits,
  overlapping,
})

export const dryRunView = ({ since, until, keptSince: kept, ...report }: DryRunReport) => ({
  ...report,
  since: isoOf(since),
  until: isoOf(until),
  keptSince: isoOrNull(kept),
})
